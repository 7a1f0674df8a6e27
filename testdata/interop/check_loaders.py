"""Loads what reprise exported with the loaders of the programs it is for, and holds
what they made of it against the canonical rows."""

import importlib.util
import json
import sys
import types
from pathlib import Path
from unittest import mock

OUT = Path(sys.argv[1])


def lines(name):
    return [json.loads(line) for line in (OUT / name).read_text().splitlines()]


def equal(what, got, want):
    if got != want:
        raise SystemExit(f"{what}: got {got!r}, want {want!r}")


def tokenizer():
    """A tokenizer of a token a byte, made here: nothing is fetched."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    tokens = ["<s>", "</s>"] + sorted(pre_tokenizers.ByteLevel.alphabet())
    made = Tokenizer(models.BPE({t: i for i, t in enumerate(tokens)}, []))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    made.decoder = decoders.ByteLevel()
    fast = PreTrainedTokenizerFast(tokenizer_object=made, bos_token="<s>", eos_token="</s>")
    fast.save_pretrained(OUT / "tokenizer")
    return fast


def aiperf(fast):
    """AIPerf takes every row, in sessions it can replay, with prompts of the right
    number of tokens."""
    from aiperf.common import random_generator
    from aiperf.common.tokenizer import Tokenizer
    from aiperf.dataset.generator.prompt import PromptGenerator
    from aiperf.dataset.loader.mooncake_trace import MooncakeTraceDatasetLoader

    random_generator.init(1)
    prompts = PromptGenerator(prompts=None, prefix_prompts=None, tokenizer=Tokenizer._build_with_kwargs(fast, resolved_name=str(OUT / "tokenizer")))
    for name, size in [("blocks", 512), ("lengths", 512), ("turns", 512), ("agents", 64), ("texts", 512)]:
        rows, exported = lines(f"{name}.rows.jsonl"), lines(f"{name}.aiperf.jsonl")
        loader = MooncakeTraceDatasetLoader(filename=str(OUT / f"{name}.aiperf.jsonl"), prompt_generator=prompts, default_block_size=size)
        equal(f"aiperf takes {name}", loader.can_load(exported[0]), True)
        sessions = loader.load_dataset()
        equal(f"aiperf rows of {name}", sum(map(len, sessions.values())), len(exported))
        tokens = 0
        for traces in sessions.values():
            loader._infer_context_mode(traces)
            for t in traces:
                if t.hash_ids:
                    tokens += len(prompts._build_token_sequence(t.input_length, t.hash_ids, size))
        equal(f"aiperf prompt tokens of {name}", tokens, sum(r["input_tokens"] for r in rows if r.get("block_ids")))
        if name != "texts":
            equal(f"aiperf output tokens of {name}", sum(t.output_length or 0 for s in sessions.values() for t in s), sum(r.get("output_tokens", 0) for r in rows))
        print(f"aiperf: {name}: {len(exported)} rows in {len(sessions)} sessions, {tokens} tokens in blocks")


def aiperf_run(run):
    """AIPerf loads the files of a run as its own; every statistic of the summary is
    what AIPerf's code makes of the records, and names, headers and units are those
    of its registry."""
    import csv

    import numpy
    from aiperf.common.models.export_models import JsonExportData
    from aiperf.common.models.record_models import MetricRecordInfo
    from aiperf.metrics.metric_dicts import metric_result_from_array
    from aiperf.metrics.metric_registry import MetricRegistry
    from aiperf.plot.core.data_loader import DataLoader

    directory = OUT / run
    loaded = DataLoader().load_run(directory)
    records = [MetricRecordInfo.model_validate(r) for r in lines(f"{run}/profile_export.jsonl")]
    equal(f"aiperf records of {run}", len(loaded.requests), len(records))
    summary = JsonExportData.model_validate_json((directory / "profile_export_aiperf.json").read_text())
    metrics = {k: v for k, v in summary.model_dump().items() if isinstance(v, dict) and "unit" in v}
    measured = [r for r in records if r.metadata.benchmark_phase == "profiling"]
    equal(f"aiperf warm-up of {run}", len(records) - len(measured), 5)
    values = {}
    for r in measured:
        for tag, m in r.metrics.items():
            unit = MetricRegistry.get_class(tag).display_unit or MetricRegistry.get_class(tag).unit
            equal(f"aiperf unit of {tag}", m.unit, str(unit))
            values.setdefault(tag, []).extend(m.value if isinstance(m.value, list) else [m.value])
    headers = {row[0] for row in csv.reader((directory / "profile_export_aiperf.csv").open()) if row}
    for tag, m in metrics.items():
        known = MetricRegistry.get_class(tag)
        unit = str(known.display_unit or known.unit)
        equal(f"aiperf unit of {tag}", m["unit"], unit)
        title = known.header if unit.lower() in {"count", "requests"} else f"{known.header} ({unit})"
        equal(f"aiperf column {title}", title in headers, True)
        if tag not in values:
            equal(f"aiperf {tag} is a single number", m.get("p50"), None)
            continue
        want = metric_result_from_array(tag, known.header, unit, numpy.array(values[tag], dtype=float), float(sum(values[tag])))
        slack = 0.002 if tag == "inter_chunk_latency" else 1e-6  # a histogram's samples
        for stat in ["avg", "min", "max", "sum", "std", "count"] + ([] if slack > 1e-3 else ["p1", "p5", "p10", "p25", "p50", "p75", "p90", "p95", "p99"]):
            a, b = m.get(stat), getattr(want, stat)
            equal(f"aiperf {tag} {stat}: {a} against {b}", abs(a - b) <= slack * abs(b) + 1e-6, True)
    good = [r for r in measured if r.error is None]
    equal(f"aiperf request_count of {run}", metrics["request_count"]["avg"], len(good))
    equal(f"aiperf errors of {run}", sum(e.count for e in summary.error_summary), len(measured) - len(good))
    start = min(r.metadata.request_start_ns for r in good)
    end = max(r.metadata.request_start_ns + r.metrics["request_latency"].value * 1e6 for r in good)
    equal(f"aiperf benchmark_duration of {run}", abs(metrics["benchmark_duration"]["avg"] - (end - start) / 1e9) < 1e-5, True)
    met = sum(r.metrics["time_to_first_token"].value < 40 for r in good)
    equal(f"aiperf good_request_count of {run}", metrics["good_request_count"]["avg"], met)
    print(f"aiperf: {run}: {len(records)} records, {len(metrics)} metrics as AIPerf computes them, {len(measured) - len(good)} errors")


def without_torch():
    """guidellm imports PyTorch for what is not loading; a stand-in is enough."""
    import datasets  # noqa: F401 - both look for PyTorch when they are imported
    import transformers  # noqa: F401

    class Anything(types.ModuleType):
        __path__ = []

        def __getattr__(self, name):
            if name.startswith("__"):
                raise AttributeError(name)
            return mock.MagicMock(name=name)

    names = ["torch", "torch.utils", "torch.utils.data", "torch.utils.data.dataloader", "torch.utils.data.dataset"]
    for name in names:
        sys.modules[name] = Anything(name)
    generic = type("Generic", (), {"__class_getitem__": classmethod(lambda cls, item: cls)})
    sys.modules["torch.utils.data.dataloader"].DataLoader = type("DataLoader", (generic,), {})
    sys.modules["torch.utils.data.dataset"].IterableDataset = type("IterableDataset", (generic,), {})
    import guidellm.data.deserializers  # noqa: F401

    for name in names:
        sys.modules.pop(name)


def guidellm(fast):
    without_torch()
    from guidellm.data.deserializers import DatasetDeserializerFactory
    from guidellm.schemas.data.deserializers import MinimalTraceFormatArgs, MooncakeTraceFormatArgs

    for name, kind, args in [("blocks", "mooncake", MooncakeTraceFormatArgs), ("lengths", "trace_synthetic", MinimalTraceFormatArgs), ("turns", "trace_synthetic", MinimalTraceFormatArgs)]:
        config = args(kind=kind, source={"kind": "json_file", "path": str(OUT / f"{name}.guidellm.jsonl")})
        data = DatasetDeserializerFactory.deserialize(config=config, processor_factory=lambda: fast, random_seed=1)
        turns = [t["columns"] for row in data for t in json.loads(row["conversation_turns"])["turns"]]
        rows = [r for r in lines(f"{name}.rows.jsonl") if "input_tokens" in r and "output_tokens" in r]
        for what, column, want in [
            ("input", "prompt_tokens_count_column", [r["input_tokens"] for r in rows]),
            ("output", "output_tokens_count_column", [r["output_tokens"] for r in rows]),
        ]:
            equal(f"guidellm {what} of {name}", [t[column][0] for t in turns], want)
        equal(f"guidellm prompts of {name}", [len(fast.encode(t["text_column"][0])) for t in turns], [r["input_tokens"] for r in rows])
        first = rows[0]["arrival_ns"]
        late = max(abs(t["relative_timestamp_column"][0] - (r["arrival_ns"] - first) / 1e9) for t, r in zip(turns, rows))
        equal(f"guidellm times of {name} within 1 us", late < 1e-6, True)
        print(f"guidellm: {name}: {len(turns)} rows as {kind}")


def inference_perf():
    """Only the reader, a file that needs nothing else of its package."""
    found = importlib.util.find_spec("inference_perf").submodule_search_locations[0]
    spec = importlib.util.spec_from_file_location("trace_reader", Path(found) / "utils" / "trace_reader.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name in ["blocks", "lengths", "turns"]:
        got = module.AzurePublicDatasetReader().load_traces(OUT / f"{name}.inference-perf.jsonl")
        rows = [r for r in lines(f"{name}.rows.jsonl") if "input_tokens" in r and "output_tokens" in r]
        equal(f"inference-perf lengths of {name}", [t[1:] for t in got], [(r["input_tokens"], r["output_tokens"]) for r in rows])
        first = rows[0]["arrival_ns"]
        late = max(abs(t[0] - (r["arrival_ns"] - first) / 1e9) for t, r in zip(got, rows))
        equal(f"inference-perf times of {name} within 2 us", late < 2e-6, True)
        print(f"inference-perf: {name}: {len(got)} rows")


fast = tokenizer()
aiperf(fast)
for run in ["run-a", "run-b"]:
    aiperf_run(run)
guidellm(fast)
inference_perf()
