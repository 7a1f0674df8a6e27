"""Opens a canonical trace and a run's results in pyarrow, DuckDB, pandas and polars,
each without options, and holds what they read against the sources and against
what reprise prints.

usage: check_parquet.py TRACE INFO.json REQUESTS REPORT.json SOURCE.jsonl...
"""

import json
import os
import statistics
import sys

import duckdb
import pandas
import polars
import pyarrow as pa
import pyarrow.parquet as pq

LIST_OF_AFTER = pa.list_(pa.struct({"id": pa.int64(), "kind": pa.string()}))
LIST_OF_MEDIA = pa.list_(pa.struct({"kind": pa.string(), "count": pa.int32(), "tokens": pa.int64()}))
LIST_OF_LEDGER = pa.list_(pa.struct({
    "at_us": pa.int64(), "tokens": pa.int32(), "kind": pa.string(), "choice": pa.int32(),
    "source": pa.string(), "event": pa.int32(), "shared_read": pa.bool_()}))


def columns(**by_type):
    types = {"i64": pa.int64(), "i32": pa.int32(), "s": pa.string(), "b": pa.bool_()}
    return {name: types[t] for t, names in by_type.items() for name in names.split()}


# The canonical trace, schema 1.
TRACE = columns(
    i64="""id origin_id arrival_ns delay_ns input_tokens new_input_tokens output_tokens reasoning_tokens max_output_tokens
        cached_tokens cache_write_tokens recorded_ttft_ns recorded_e2e_ns cancel_ns source_row""",
    i32="copy turn choices block_tokens",
    s="""source_id operation session_id agent client_id model block_tail prompt messages messages_mode tools body extra
        output_text output_message status finish_reason source_file""",
    b="streaming",
) | {
    "after": LIST_OF_AFTER,
    "block_ids": pa.list_(pa.uint64()),
    "media": LIST_OF_MEDIA,
    "attributes": pa.map_(pa.string(), pa.string()),
}

# The results of a run, schema 1.
RESULTS = columns(
    i64="""id due_ns eligible_ns dispatched_ns connected_ns sent_ns sent_end_ns first_byte_ns first_token_ns first_output_ns
        last_token_ns end_ns bytes_out bytes_in planned_input_tokens counted_input_tokens cached_tokens
        planned_output_tokens output_tokens reasoning_tokens ledger_difference recorded_ttft_ns recorded_e2e_ns""",
    i32="pass turn http_status",
    s="""phase worker url protocol model session_id agent hold_cause outcome cause finish_reason note output_source""",
    b="conn_reused",
) | {"ledger": LIST_OF_LEDGER}


def same(what, got, want):
    if got != want:
        sys.exit(f"{what}: got {got}, want {want}")
    print(f"ok  {what}: {got}")


def plain(t):
    """A type as it counts: names of list elements and dictionaries aside."""
    if pa.types.is_dictionary(t):
        return plain(t.value_type)
    if pa.types.is_map(t):
        return ("map", plain(t.key_type), plain(t.item_type))
    if pa.types.is_list(t) or pa.types.is_large_list(t):
        return ("list", plain(t.value_type))
    if pa.types.is_struct(t):
        return ("struct", tuple((f.name, plain(f.type)) for f in t))
    return "string" if pa.types.is_large_string(t) else str(t)


def check_types(path, want):
    got = {f.name: plain(f.type) for f in pq.read_schema(path)}
    extra = set(got) - set(want)
    missing = set(want) - set(got)
    wrong = {n: (got[n], plain(want[n])) for n in set(got) & set(want) if got[n] != plain(want[n])}
    same(f"{os.path.basename(path)}: columns {len(got)}, not as documented", (extra, missing, wrong), (set(), set(), {}))


def list_kinds(values):
    """How many are null, empty and filled."""
    values = list(values)
    return (sum(v is None for v in values), sum(v is not None and len(v) == 0 for v in values),
            sum(v is not None and len(v) > 0 for v in values))


def read_sources(paths):
    rows = {}
    for path in paths:
        with open(path, encoding="utf-8") as f:
            for n, line in enumerate(f, 1):
                rows[os.path.basename(path), n] = json.loads(line)
    return rows


def check_trace(path, info, sources):
    check_types(path, TRACE)
    table = pq.read_table(path)
    want_rows, want_in, want_out = info["rows"], info["input_tokens"]["sum"], info["output_tokens"]["sum"]
    want_lists = list_kinds(r.get("hash_ids") for r in sources.values())

    rows = table.to_pylist()
    same("pyarrow: rows", len(rows), want_rows)
    for r in rows:
        src = sources[r["source_file"], r["source_row"]]
        for column, field in (("block_ids", "hash_ids"), ("input_tokens", "input_length"), ("output_tokens", "output_length")):
            if r[column] != src.get(field):
                sys.exit(f"pyarrow: {r['source_file']}:{r['source_row']}: {column} {r[column]}, source has {src.get(field)}")
        known = {"timestamp", "hash_ids", "input_length", "output_length"}
        attributes = {k: json.loads(v) for k, v in (r["attributes"] or [])}
        if attributes != {k: v for k, v in src.items() if k not in known}:
            sys.exit(f"pyarrow: {r['source_file']}:{r['source_row']}: attributes {attributes}")
    print("ok  pyarrow: ids, lengths and attributes of every row are those of the source")
    same("pyarrow: lists null, empty, filled", list_kinds(r["block_ids"] for r in rows), want_lists)
    same("pyarrow: metadata", pq.read_metadata(path).metadata.get(b"reprise.schema"), b"1")

    sql = f"""select count(*), sum(input_tokens), sum(output_tokens), count(*) filter (block_ids is null),
        count(*) filter (len(block_ids) = 0), count(*) filter (len(block_ids) > 0), sum(len(block_ids)) from '{path}'"""
    got = duckdb.sql(sql).fetchall()[0]
    blocks = info["reuse"]["blocks"]
    same("DuckDB: rows, tokens in, tokens out, lists, blocks", got, (want_rows, want_in, want_out, *want_lists, blocks))
    most = duckdb.sql(f"select max(b) from (select unnest(block_ids) b from '{path}')").fetchall()[0][0]
    same("DuckDB: largest id", most, max(max(r.get("hash_ids") or [0]) for r in sources.values()))
    note = duckdb.sql(f"select attributes['score'] from '{path}' where attributes is not null").fetchall()
    same("DuckDB: attribute", note, [("0.5",)])

    frame = pandas.read_parquet(path)
    same("pandas: rows, tokens in, tokens out", (len(frame), int(frame.input_tokens.sum()), int(frame.output_tokens.sum())), (want_rows, want_in, want_out))
    same("pandas: lists null, empty, filled", list_kinds(frame.block_ids), want_lists)
    same("pandas: largest id", max(int(i) for ids in frame.block_ids.dropna() for i in ids), most)

    frame = polars.read_parquet(path)
    same("polars: rows, tokens in, tokens out", (len(frame), frame["input_tokens"].sum(), frame["output_tokens"].sum()), (want_rows, want_in, want_out))
    same("polars: lists null, empty, filled", list_kinds(frame["block_ids"].to_list()), want_lists)
    same("polars: largest id", frame["block_ids"].explode().max(), most)
    window = polars.scan_parquet(path).filter(polars.col("arrival_ns") < 10**10).collect()
    same("polars: rows of the first 10 s", len(window), sum(r["arrival_ns"] < 10**10 for r in rows))


def check_results(path, report):
    check_types(path, RESULTS)
    rows = pq.read_table(path).to_pylist()
    want = report["requests"]["recorded"], report["requests"]["successful"]
    done = [r for r in rows if r["outcome"] == "ok"]
    same("pyarrow: requests, successful", (len(rows), len(done)), want)
    tokens = sum(r["output_tokens"] for r in done)
    ledger = sum(e["tokens"] or 0 for r in done for e in r["ledger"])
    same("pyarrow: ledger sum", ledger, tokens)

    sql = f"""select count(*), count(*) filter (outcome = 'ok'), sum(output_tokens) filter (outcome = 'ok'),
        sum(list_sum([e.tokens for e in ledger])) filter (outcome = 'ok') from '{path}'"""
    same("DuckDB: requests, successful, tokens, ledger", duckdb.sql(sql).fetchall()[0], (*want, tokens, tokens))
    # The nearest-rank median of TTFT, from the ledger and from the instants.
    for how, value in (("the instants", "(first_token_ns - sent_ns) / 1e6"), ("the ledger", "list_min([e.at_us for e in ledger if e.tokens > 0]) / 1e3")):
        p50 = duckdb.sql(f"select quantile_disc({value}, 0.5) from '{path}' where outcome = 'ok'").fetchall()[0][0]
        printed = report["metrics"]["ttft"]["p50_ms"]
        if abs(p50 - printed) > 0.002:
            sys.exit(f"DuckDB: median TTFT from {how}: {p50} ms, the report says {printed} ms")
        print(f"ok  DuckDB: median TTFT from {how}: {p50:.3f} ms")

    frame = pandas.read_parquet(path)
    same("pandas: requests, tokens", (len(frame), int(frame[frame.outcome == "ok"].output_tokens.sum())), (want[0], tokens))
    frame = polars.read_parquet(path)
    ledger = frame.filter(polars.col("outcome") == "ok").explode("ledger").unnest("ledger", separator=".")["ledger.tokens"].sum()
    same("polars: requests, ledger", (len(frame), ledger), (want[0], tokens))
    late = [r["dispatched_ns"] - r["eligible_ns"] for r in rows if r["dispatched_ns"] is not None]
    same("pyarrow: mean lateness, ns", round(statistics.fmean(late)), round(report["metrics"]["lateness"]["mean_ms"] * 1e6))


def main():
    trace, info, requests, report, *sources = sys.argv[1:]
    with open(info, encoding="utf-8") as f:
        info = json.load(f)
    with open(report, encoding="utf-8") as f:
        report = json.load(f)
    check_trace(trace, info, read_sources(sources))
    check_results(requests, report)


main()
