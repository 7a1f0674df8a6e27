"""Holds reports of replays against servers nobody here wrote to what must be true
of them, and prints their figures in one table.

usage: check_replay.py NAME:PROMISES:REPORT.json...

PROMISES are letters of what this server can be held to beside answering:
  i  it counts prompts with a tokenizer: each is as long as planned
  o  it says as many tokens as it is asked for
  l  tokens per chunk are counted, and add up to its final usage
  c  it closes connections behind answers though it promises to keep them: of
     the requests, one in ten may meet the close, and is then counted as a reset
"""

import json
import sys

COLUMNS = ["replay", "verdict", "ok", "ISL planned", "counted", "OSL planned", "counted", "from", "chunks",
           "tokens per chunk from", "ledger - usage", "TTFT p50 ms", "ITL p50 ms"]


def sources(named):
    return " ".join(f"{s['name']}:{s['n']}" for s in named)


def closed(report):
    """Requests that were sent just as the server closed the connection."""
    return sum(c["n"] for c in report["causes"]["first"] if c["name"] == "reset: connection closed before the response")


def doubts(report, promises):
    """What is not as it must be, in words."""
    sent, tokens = report["requests"], report["tokens"]
    ok = sent["successful"]
    lost = closed(report) if "c" in promises else 0
    if not sent["recorded"] == sent["dispatched"] == sent["sent"] == ok + lost or 10 * lost > sent["recorded"]:
        yield f"{ok} of {sent['recorded']} requests ok: {report['outcomes']} {report['causes']['first']}"
    for side, letter in (("input", "i"), ("output", "o")):
        counts = tokens[side]
        if counts["requests"] != ok:
            yield f"{counts['requests']} of {ok} responses count {side} tokens"
        if letter in promises and counts["exact_requests"] != ok:
            yield f"{counts['exact_requests']} of {ok} have as many {side} tokens as planned: {counts}"
    for kind in ("output_sources", "ledger_sources"):
        if sum(s["n"] for s in tokens[kind]) != ok:
            yield f"{kind} do not cover {ok} responses: {tokens[kind]}"
    if [s["name"] for s in tokens["output_sources"]] != ["usage"]:
        yield f"output tokens not from usage: {tokens['output_sources']}"
    ledger = tokens["ledger_difference"]
    if "l" in promises and (ledger["requests"], ledger["not_zero"]) != (ok, 0):
        yield f"the ledger does not add up to the usage: {ledger}"
    if tokens["chunks"] < ok:
        yield f"{tokens['chunks']} chunks of {ok} streams"


def difference(ledger):
    if not ledger["requests"]:
        return "not counted"
    return f"{ledger['not_zero']} of {ledger['requests']} differ, by {ledger['largest_tokens']} at most"


def row(name, report):
    sent, tokens, metrics = report["requests"], report["tokens"], report["metrics"]
    p50 = [metrics[m]["p50_ms"] for m in ("ttft", "itl")]
    return [name, report["verdict"]["result"], f"{sent['successful']}/{sent['recorded']}",
            tokens["input"]["planned_tokens"], tokens["input"]["counted_tokens"],
            tokens["output"]["planned_tokens"], tokens["output"]["counted_tokens"],
            sources(tokens["output_sources"]), tokens["chunks"], sources(tokens["ledger_sources"]),
            difference(tokens["ledger_difference"]), *("-" if v is None else f"{v:.1f}" for v in p50)]


def main():
    rows, wrong = [COLUMNS], []
    for argument in sys.argv[1:]:
        name, promises, path = argument.split(":")
        with open(path) as f:
            report = json.load(f)
        rows.append([str(v) for v in row(name, report)])
        wrong += [f"{name}: {doubt}" for doubt in doubts(report, promises)]
    widths = [max(map(len, column)) for column in zip(*rows)]
    for r in rows:
        print("  ".join(v.ljust(w) for v, w in zip(r, widths)).rstrip())
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
