"""What results/growth.jsonl says: tables of one number at a time, printed, and what follows for
larger clusters, which is written into docs/growth.md.

    python workflows/benchmarks/growth_table.py

A fit of n sources in p passes by w workers takes

    T = T_sample + p (n τ/(w t) + w b/β + T_solve),

τ the seconds of one core per source and pass, t the cores of a worker, b = 8 C m (m + 1) bytes
that a worker sends, β the network's rate, T_solve the driver's time for q(f). τ, T_solve and
T_sample are of the fit of most sources; the cluster is the one stated. A fit that had less than its
cores, since others were at work on them, counts with those that it had: CPU over wall seconds.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))
from studies import grid, put_tables, read

RESULTS = Path(__file__).parent / "results" / "growth.jsonl"
PAGE = Path(__file__).parents[2] / "docs" / "growth.md"
SERIES = ("points", "classes", "features", "workers of Dask")
COMMON = {"points": 100, "classes": 3, "features": 8, "workers of Dask": 0}
SOURCES = {10**7: "10⁷", 10**8: "10⁸", 10**9: "10⁹"}
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


def projection(measured: list[dict]) -> Iterator[str]:
    """The formula above, by the exact fit of most sources."""
    exact = [row for row in measured if row["noise"] == "none" and "seconds of solving" in row]
    of = max(exact, key=lambda row: row["rows"])
    passes, points, classes = of["sweeps over all"], of["points"], of["classes"]
    cores = min(of["cores"], of["CPU seconds"] / of["wall seconds"])
    per_source = of["seconds of these"] * cores / (passes * of["rows"])
    solve = of["seconds of solving"] / passes
    sample = of["wall seconds"] - of["seconds of these"] - of["seconds of solving"]
    size = 8 * classes * points * (points + 1)
    yield (
        f"By the fit of {of['rows']:,} sources of {of['date']}: τ = {per_source * 1e6:.0f} µs, "
        f"{passes} passes, a sample of {sample:.0f} s, {solve:.2f} s to solve. Minutes, by workers "
        f"of {CORES} cores:"
    )
    yield ""

    def minutes(sources: int, workers: int) -> str:
        one = sources * per_source / (workers * CORES) + workers * size / NETWORK + solve
        found = (sample + passes * one) / 60
        return f"{found:.1f}" if found < 10 else f"{found:.0f}"

    heads = ["sources", *(f"{w} worker{'s' * (w > 1)}" for w in WORKERS)]
    yield from grid(
        heads, ([name, *(minutes(n, w) for w in WORKERS)] for n, name in SOURCES.items())
    )


if __name__ == "__main__":
    for axis in SERIES:
        print(f"{series(axis)}\n")
    put_tables(PAGE, [("projection", projection(rows()))])
