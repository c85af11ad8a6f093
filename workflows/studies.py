"""What the scripts of these folders share: cells on disk, processes of one thread, tables in pages.

A *cell* is one measurement: a line of JSON, named by the fields of the study's *key*. What a file
holds is not measured again, so that a study that was stopped goes on where it was; a last line that
was cut off is left out.

    ONE_THREAD            for os.environ, before the libraries that read it are imported
    read, append, load    cells as dicts, one more, and as a table
    Size, arguments       how large a study of a paper is, and its command line
    at_least_one          the type of an option that counts
    run                   what is missing, in child processes of one thread
    mean_error, grid      a number with its standard error, a table in Markdown
    largest, of, differences   scores of a study by size, data set and method
    made                  a line on when and with what code cells were measured
    verdict               of what a paper says about a difference
    put_tables            tables between the markers of a page
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from child_processes import in_children

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "GAP",
    "ONE_THREAD",
    "Size",
    "append",
    "arguments",
    "at_least_one",
    "differences",
    "grid",
    "largest",
    "load",
    "made",
    "mean_error",
    "of",
    "put_tables",
    "read",
    "run",
    "source_digest",
    "verdict",
]

ONE_THREAD = {
    **{f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL")},
    **{f"TF_NUM_{kind}_THREADS": "1" for kind in ("INTRAOP", "INTEROP")},
}
GAP = "–"

Cell = tuple[Any, ...]


# ---- cells ---------------------------------------------------------------------------------------


def read(path: Path) -> list[dict]:
    """Complete records of a file, none if there is no file."""
    lines = path.read_text().split("\n")[:-1] if path.exists() else []
    return [record_of(line, f"{path}, line {k}") for k, line in enumerate(lines, 1) if line.strip()]


def record_of(line: str, where: str) -> dict:
    try:
        record = json.loads(line)
    except json.JSONDecodeError as error:
        record, why = None, str(error)
    else:
        why = "not a record"
    if not isinstance(record, dict):
        raise ValueError(f"{where}: {why}; take the line out, and its cell is measured again")
    return record


def append(path: Path, record: dict) -> None:
    """One record more, in place of a last line that was cut off."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b") as file:
        file.seek(0)
        file.truncate(file.read().rfind(b"\n") + 1)
        file.write(f"{json.dumps(record)}\n".encode())


def load(path: Path, key: Sequence[str]) -> pd.DataFrame:
    """One row per cell, the last one where a cell is there twice."""
    import pandas as pd

    records = read(path)
    if not records:
        raise ValueError(f"{path} has no cells: nothing was measured")
    table = pd.DataFrame(records).drop_duplicates(list(key), keep="last")
    return table.set_index(list(key)).sort_index()


# ---- measuring -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Size:
    """Of a study: at most so many sources of a data set (None: all), inducing points, splits."""

    rows: int | None
    points: int
    seeds: int

    def __str__(self) -> str:
        rows = "all" if self.rows is None else f"at most {self.rows:,}"
        return f"{rows} sources, {self.points} inducing points at most"


def at_least_one(text: str) -> int:
    """A number of splits, of jobs: none of them would be no study, and no word said."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("1 at least")
    return number


def arguments(
    about: str,
    results: Path,
    sizes: Mapping[str, Size],
    data_sets: Sequence[str],
    methods: Iterable,
) -> argparse.Namespace:
    """The command line of a study: `size` is a name of `sizes`, `out` the file of its cells, and
    `page` whether they are those that are published: a trial leaves the page as it is."""
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    parser.add_argument("--size", choices=sizes, default="full")
    parser.add_argument("--quick", action="store_true", help="--size quick, and no page is written")
    parser.add_argument("--seeds", type=at_least_one, help="instead of those of the size")
    parser.add_argument("--data-sets", nargs="+", choices=data_sets, default=list(data_sets))
    parser.add_argument("--methods", nargs="+", choices=list(methods), default=list(methods))
    parser.add_argument("--jobs", type=at_least_one, default=1)
    parser.add_argument("--table", action="store_true", help="the page from what was measured")
    parser.add_argument("--out", type=Path, help="other results, of which no page is written")
    options = parser.parse_args()
    if options.quick:
        options.size = "quick"
    quick = results.with_name(f"{results.stem}-quick.jsonl")
    options.out = options.out or (quick if options.size == "quick" else results)
    options.page = options.size != "quick" and options.out.resolve() == results.resolve()
    if options.table and not options.page:
        parser.error(f"--table is of {results.name} alone, without --quick and --out")
    options.seeds = options.seeds or sizes[options.size].seeds
    return options


def run(
    path: Path,
    key: Sequence[str],
    cells: Iterable[Cell],
    measure: Callable[[Cell], dict],
    jobs: int = 1,
) -> int:
    """Measure the cells that `path` does not hold, in their order: how many failed.

    A cell that fails is shown and left out; the others go on.
    """
    from tqdm.auto import tqdm

    done = {tuple(record[part] for part in key) for record in read(path)}
    work = [cell for cell in dict.fromkeys(cells) if cell not in done]
    if not work:
        return 0
    failed = 0
    bar = partial(tqdm, unit="cell", disable=None)  # none where nobody looks on
    # The children read it as they start.
    with (
        patch.dict(os.environ, ONE_THREAD),
        closing(in_children(partial(attempt, measure, key), work, jobs)) as found,
    ):
        for cell, record, code in bar(found, path.stem, len(work)):
            if record is None:
                why = f"its process ended by itself or was killed, exit code {code}"
                record = {**dict(zip(key, cell, strict=True)), "failed": why}
            if "failed" in record:
                tqdm.write(f"{record}", file=sys.stderr)
                failed += 1
            else:
                append(path, record)
    return failed


def attempt(measure: Callable[[Cell], dict], key: Sequence[str], cell: Cell) -> dict:
    """The record of a cell, with the version and a digest of the code that made it, and the day."""
    from gpal import __version__

    name = dict(zip(key, cell, strict=True))
    try:
        scores = measure(cell)
    except Exception as error:
        return {**name, "failed": repr(error)}
    made = {"gpal": source_digest(), "version": __version__, "date": time.strftime("%Y-%m-%d")}
    return {**name, **scores, **made}


def source_digest() -> str:
    """Of gpal's models: cells of different code are not mixed unseen."""
    import gpal

    package = Path(gpal.__file__).parent
    folders = ("inference", "input_noise", "likelihoods", "model")
    files = sorted(file for folder in folders for file in package.glob(f"{folder}/*.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:10]


# ---- what was measured ---------------------------------------------------------------------------


def largest(path: Path, key: Sequence[str], sizes: Mapping[str, Size]) -> tuple[str, pd.DataFrame]:
    """A line on what was measured and with what, and of each data set the cells of the largest
    size that it was measured in.

    `key` begins with "size", "data_set"; the cells are indexed by its names but the first.
    """
    import pandas as pd

    cells = load(path, key)
    order = list(sizes)
    of_size = cells.index.get_level_values("size").map(order.index)
    best = pd.Series(of_size, cells.index).groupby(level="data_set").transform("max")
    table = cells[of_size == best]
    parts = []
    for size in reversed(order):
        here = table[table.index.get_level_values("size") == size]
        if len(here):
            names = ", ".join(dict.fromkeys(here.index.get_level_values("data_set")))
            parts.append(f"Size `{size}`, {sizes[size]}: {names}.")
    about = " ".join([*parts, made(table, ", one thread")])
    return about, table.droplevel("size").sort_index()


def made(cells: pd.DataFrame, how: str = "") -> str:
    """A line on the days, the versions and the digests of the model code that cells hold; the cells
    of before these were kept are counted."""
    held = cells.reindex(columns=["date", "version", "gpal"])
    dated = held["date"].notna() & held["version"].notna()
    known, rest = held[dated], held[~dated]

    def listed(part: pd.DataFrame, name: str) -> str:
        return ", ".join(sorted(set(part[name].dropna()))) or "unknown"

    parts = []
    if len(known):
        days = " to ".join(sorted({known["date"].min(), known["date"].max()}))
        code = f"gpal {listed(known, 'version')} (model code {listed(known, 'gpal')})"
        parts.append(f"Measured {days} with {code}{how}.")
    if len(rest):
        code = listed(rest, "gpal")
        parts.append(
            f"Day and version unknown for {len(rest):,} of {len(held):,} cells (model code {code})."
        )
    return " ".join(parts)


def of(table: pd.DataFrame, data_set: str, method: str, score: str) -> pd.Series:
    """By seed; empty where the method was not run on the data set."""
    import pandas as pd

    try:
        return table.xs((data_set, method), level=("data_set", "method"))[score]
    except KeyError:
        return pd.Series(dtype=float)


def differences(table: pd.DataFrame, method: str, minus: str, score: str) -> pd.Series:
    """By data set: the mean paired difference, where both were run; of seconds log₁₀ of ratios."""
    import numpy as np

    scores = table[score].astype(float).unstack("method").reindex(columns=[method, minus])
    if score == "seconds":
        scores = np.log10(scores)
    return (scores[method] - scores[minus]).dropna().groupby("data_set").mean()


# ---- pages ---------------------------------------------------------------------------------------


def mean_error(values: Any, digits: int = 3, sign: str = "") -> str:
    """mean ± standard error over data sets; of one value, that value."""
    import numpy as np

    values = np.asarray(values, float)
    if not len(values) or np.isnan(values).all():
        return GAP
    mean = f"{values.mean():{sign}.{digits}f}"
    if len(values) == 1:
        return mean
    return f"{mean} ± {values.std(ddof=1) / np.sqrt(len(values)):.{digits}f}"


def verdict(differences: Any, said: str) -> str:
    """Of a paper's word that a difference in a loss is `said`: "same" or "above" zero.

    The differences are of several data sets; what counts is two standard errors of their mean,
    and with fewer than three there is no verdict.
    """
    import numpy as np

    values = np.asarray(differences, float)
    if len(values) < 3:
        return "too few"
    mean, error = values.mean(), values.std(ddof=1) / np.sqrt(len(values))
    if abs(mean) <= 2.0 * error:
        return "reproduced" if said == "same" else "not told apart"
    if said == "same":
        return "beaten" if mean < 0.0 else "contradicted"
    return "reproduced" if mean > 0.0 else "contradicted"


def grid(header: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Lines of a table in Markdown."""
    yield f"| {' | '.join(header)} |"
    yield "|" + "---|" * len(header)
    for row in rows:
        yield f"| {' | '.join(row)} |"


def put_tables(page: Path, tables: Iterable[tuple[str, Iterable[str]]]) -> None:
    """(name, lines) between `<!-- begin: NAME -->` and `<!-- end: NAME -->` of a page.

    What stands around them is written by hand and stays. Raises ValueError where a name has no
    markers; the page is then as it was.
    """
    from gpal.files.output import atomic_path

    text = page.read_text()
    for name, lines in tables:
        begin, end = f"<!-- begin: {name} -->", f"<!-- end: {name} -->"
        before, found, rest = text.partition(begin)
        after = rest.partition(end)
        if not found or not after[1]:
            raise ValueError(f"{page.name} has no place for '{name}': give it {begin} and {end}")
        body = "\n".join(lines)
        text = f"{before}{begin}\n\n{body}\n\n{end}{after[2]}"
    with atomic_path(page) as path:
        path.write_text(text)
