"""The section of docs/benchmarks.md about the nearest relatives, from the cells of nearest.py."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
from cells import read, versions

sys.path.append(str(Path(__file__).parents[1]))
from studies import mean_error, put_tables

TABLE = Path(__file__).parent / "results" / "nearest.jsonl"
PAGE = Path(__file__).parents[2] / "docs" / "benchmarks.md"
NAMES = {
    "default": "`GPClassifier()`",
    "gpflow": "GPflow SVGP",
    "t_svgp": "t-SVGP",
}


def reached(trajectory: list[dict], nll: float) -> float:
    """CPU seconds until the test NLL is as low; infinite where it never is."""
    return min((p["seconds"] for p in trajectory if p["nll"] <= nll), default=float("inf"))


def frame() -> pd.DataFrame:
    """One row per cell: the fitted model's scores, and the share of GPflow's CPU time until its
    final NLL is reached."""
    cells = read(TABLE)
    records = []
    for (data_set, method, seed), cell in cells.items():
        record = {"data_set": data_set, "method": method, "seed": seed}
        record |= cell["trajectory"][-1]
        rival = cells.get((data_set, "gpflow", seed))
        if rival:
            last = rival["trajectory"][-1]
            record["share"] = reached(cell["trajectory"], last["nll"]) / last["seconds"]
            record["difference"] = record["nll"] - last["nll"]
        records.append(record)
    return pd.DataFrame(records).set_index(["data_set", "method", "seed"]).sort_index()


def scores(table: pd.DataFrame) -> Iterator[str]:
    yield (
        "| data set | method | seeds | error | NLL | minus GPflow's, same seeds "
        "| ELBO per source | CPU s | share of GPflow's CPU time until its final NLL, per seed |"
    )
    yield "|---|---|---|---|---|---|---|---|---|"
    for data_set in dict.fromkeys(table.index.get_level_values(0)):
        for method, name in NAMES.items():
            if (data_set, method) not in table.index.droplevel("seed"):
                continue
            cells = table.loc[(data_set, method)]
            own = method == "gpflow"
            shares = ["never" if s == float("inf") else f"{s:.3f}" for s in cells.share]
            yield (
                f"| {data_set} | {name} | {', '.join(map(str, cells.index))} "
                f"| {mean_error(cells.error, 4)} | {mean_error(cells.nll, 4)} "
                f"| {'–' if own else mean_error(cells.difference, 4)} "
                f"| {mean_error(cells.elbo.astype(float), 4)} | {mean_error(cells.seconds, 1)} "
                f"| {'–' if own else ', '.join(shares)} |"
            )


def conditions() -> Iterator[str]:
    cells = list(read(TABLE).values())
    made = [cell["provenance"] for cell in cells]
    times = sorted(origin["date"] for origin in made)
    names = ("gpal", "tensorflow", "gpflow", "scikit-learn", "numpy", "python")
    yield f"- {versions(made, names)}; one thread."
    yield f"- Measured from {times[0]} to {times[-1]}."
    load = [cell["load_average"] for cell in cells]
    yield (
        f"- A shared machine, load average {min(load):.1f} to {max(load):.1f} on 2 cores: read"
        " ratios of CPU seconds, not seconds."
    )
    digests = sorted({cell["gpal_source"] for cell in cells})
    yield f"- Digest of gpal's model code: {', '.join(digests)}."


def write_page() -> None:
    """The table between its markers."""
    lines = [*scores(frame()), "", *conditions()]
    put_tables(PAGE, [("written by nearest.py", lines)])
    print("\n".join(lines))
