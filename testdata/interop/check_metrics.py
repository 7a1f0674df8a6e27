"""Holds every metric of a run's report against DuckDB's computation from
requests.parquet by metrics.sql.

usage: check_metrics.py METRICS.sql RUN/requests.parquet REPORT.json TTFT_MS TPOT_MS
"""

import json
import math
import sys

import duckdb

STATS = {"p50": 500, "p90": 900, "p95": 950, "p99": 990, "p99_9": 999}
failures = []
checked = 0


def same(what, got, want, error=0.0):
    global checked
    checked += 1
    if got is None or want is None:
        good = got is None and want is None
    else:
        good = want - 2e-6 <= got <= want * (1 + error) + 2e-6
    if not good:
        failures.append(f"{what}: the report has {got}, DuckDB {want}")


def load(con, script, values):
    for statement in script.split(";"):
        used = {k: v for k, v in values.items() if "$" + k in statement}
        if statement.strip():
            con.execute(statement, used)


def quantile(con, table, weight, name, q, n):
    """Nearest rank: the smallest sample that at least q/1000 of all do not exceed."""
    rank = max(1, (q * n + 999) // 1000)
    return con.execute(
        f"select min(v) from (select v, sum({weight}) over (order by v range unbounded preceding) as upto from {table} where name = ?) where upto >= ?",
        [name, rank]).fetchone()[0]


def metric(con, table, weight, name, m):
    unit = next(k for k in m if k.startswith("mean_"))[len("mean_"):]
    scale = 1e6 if unit == "ms" else 1
    n, mean, least, most, squares = con.execute(
        f"select coalesce(sum({weight}), 0)::bigint, sum({weight} * v::double) / sum({weight}), min(v), max(v), "
        f"sum({weight} * (v - (select sum({weight} * v::double) / sum({weight}) from {table} where name = $n))**2) from {table} where name = $n",
        {"n": name}).fetchone()
    same(f"{name} n", m["n"], n)
    if n == 0:
        for key in ["mean", "std", "min", "max", *STATS]:
            same(f"{name} {key}", m[f"{key}_{unit}"], None)
        return
    close = 1e-9 * abs(mean) / scale
    same(f"{name} mean", m[f"mean_{unit}"], mean / scale - close, 2e-9)
    same(f"{name} min", m[f"min_{unit}"], least / scale)
    same(f"{name} max", m[f"max_{unit}"], most / scale)
    std = math.sqrt(squares / (n - 1)) / scale if n > 1 else None
    same(f"{name} std", m[f"std_{unit}"], std if std is None else std * (1 - 1e-7), 2e-7)
    for key, q in STATS.items():
        same(f"{name} {key}", m[f"{key}_{unit}"], quantile(con, table, weight, name, q, n) / scale, m["quantile_error"])


def main():
    script, requests, report, ttft, tpot = sys.argv[1:6]
    con = duckdb.connect()
    text = "\n".join(line.split("--")[0] for line in open(script))
    load(con, text, {"requests": requests, "ttft_ns": float(ttft) * 1e6, "tpot_ns": float(tpot) * 1e6})
    s = json.load(open(report))
    for name, m in s["metrics"].items():
        metric(con, "samples", "weight", name, m)
    for name, m in (s["sessions"] or {"metrics": {}})["metrics"].items():
        if name != "join_wait":  # rests on the order of ends within an agent
            metric(con, "session_samples", "1", name, m)
    numbers = dict(con.execute("select name, v from numbers").fetchall())
    for name, got in (s["throughput"] | {"error_rate": s["error_rate"]}).items():
        want = numbers[name]
        same(name, got, want if want is None else want * (1 - 1e-9), 2e-9)
    censored = con.execute("select censored from span_of_run").fetchone()[0]
    same("censored", s["with_failures"]["censored"], censored)
    for m in s["with_failures"]["metrics"]:
        n = m["n"] - censored
        for key, q in STATS.items():
            rank = max(1, (q * m["n"] + 999) // 1000)
            want = None if rank > n else con.execute("select v from samples where name = ? order by v limit 1 offset ?", [m["name"], rank - 1]).fetchone()[0] / 1e6
            same(f"{m['name']} {key} with failures", m[f"{key}_ms"], want)
    g = s["slo"]["tiers"][0]["goodput"]
    good, share, tokens, sessions, all_sessions = con.execute("select * from goodput").fetchone()
    window = numbers["window_ms"] / 1e3
    for name, want in {"good_requests": good, "good_share": share, "good_requests_per_s": good / window, "good_output_tokens_per_s": (tokens or 0) / window,
                       "good_sessions": sessions, "sessions": all_sessions}.items():
        same(name, g[name], want)
    if failures:
        sys.exit("\n".join(failures))
    print(f"ok  {checked} numbers of {s['requests']['recorded']} requests, {censored} of them censored, equal DuckDB's")


main()
