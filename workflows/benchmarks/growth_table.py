"""The tables of docs/growth.md, from results/growth.jsonl: what was measured, and what follows.

    python workflows/benchmarks/growth_table.py

A fit of n sources in p passes by w workers takes

    T = T_sample + p (n τ/(w t) + w b/β + T_solve),

τ the seconds of one core per source and pass, t the cores of a worker, b = 8 C m (m + 1) bytes
that a worker sends, β the network's rate, T_solve the driver's time for q(f). τ, T_solve and
T_sample are of the fit of most sources; the cluster is the one stated.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))
from studies import grid, read

RESULTS = Path(__file__).parent / "results" / "growth.jsonl"
SERIES = ("points", "classes", "features", "workers of Dask")
COMMON = {"points": 100, "classes": 3, "features": 8, "workers of Dask": 0}
SOURCES = (10**7, 10**8, 10**9)
WORKERS, CORES, NETWORK = (1, 16, 64), 16, 1e9  # of a worker; bytes per second


def rows() -> list[dict]:
    """The latest line of each case."""
    latest = {}
    for record in read(RESULTS):
        found = {"features": 8, "classes": 3, "workers of Dask": 0, **record}
        case = ("rows", "noise", *SERIES, "learned from")
        latest[tuple(found[name] for name in case)] = found
    return list(latest.values())


def table(heads: list[str], lines: list[list]) -> str:
    return "\n".join(grid(heads, ([str(cell) for cell in line] for line in lines)))


def series(name: str) -> str:
    """Fits that differ in one number."""
    others = {key: value for key, value in COMMON.items() if key != name}
    chosen = [
        row
        for row in rows()
        if row["noise"] == "none"
        and row["rows"] == 200_000
        and "seconds of solving" in row
        and all(row[key] == value for key, value in others.items())
    ]
    heads = [name, "wall s", "CPU s", "passes", "of these s", "solving s", "limit s", "GB beyond"]
    keys = ["wall seconds", "CPU seconds", "sweeps over all", "seconds of these"]
    keys += ["seconds of solving", "limit", "GB beyond the start"]
    chosen.sort(key=lambda row: row[name])
    return table(heads, [[row[name], *(row[key] for key in keys)] for row in chosen])


def projection() -> str:
    """The formula above."""
    measured = [row for row in rows() if row["noise"] == "none" and "seconds of solving" in row]
    of = max(measured, key=lambda row: row["rows"])
    passes, points, classes = of["sweeps over all"], of["points"], of["classes"]
    per_source = of["seconds of these"] * of["cores"] / (passes * of["rows"])
    solve = of["seconds of solving"] / passes
    sample = of["wall seconds"] - of["seconds of these"] - of["seconds of solving"]
    size = 8 * classes * points * (points + 1)
    lines = []
    for number in SOURCES:
        line: list = [f"{number:,}"]
        for workers in WORKERS:
            one = number * per_source / (workers * CORES) + workers * size / NETWORK + solve
            line.append(round((sample + passes * one) / 60, 1))
        lines.append(line)
    heads = ["sources", *(f"minutes, {w} x {CORES} cores" for w in WORKERS)]
    said = f"{per_source * 1e6:.2f} µs of a core per source and pass, {passes} passes"
    return f"{said}, sample {sample:.0f} s, solving {solve:.2f} s\n\n{table(heads, lines)}"


if __name__ == "__main__":
    for axis in SERIES:
        print(f"{series(axis)}\n")
    print(projection())
