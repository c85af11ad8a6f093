"""Cells of a study, one line of JSON each, appended as they are measured.

A cell is named by its `problem`, `seed` and `model`. What is in the file is not measured again, so
that a study that was stopped goes on where it was; a last line that was cut off is left out.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
from collections.abc import Callable, Iterable
from pathlib import Path

import pandas as pd
from tqdm.auto import tqdm

import gpal

__all__ = ["load", "run"]

KEY = ("problem", "seed", "model")
CELLS_PER_PROCESS = 40  # TensorFlow keeps some memory of every model it has run

Cell = tuple[str, int, str]


def read(path: Path) -> list[dict]:
    """Complete records of a file, none if there is no file."""
    if not path.exists():
        return []
    lines = path.read_text().split("\n")[:-1]
    return [json.loads(line) for line in lines if line.endswith("}")]


def load(path: Path) -> pd.DataFrame:
    """One row per cell, the last one where a cell is there twice."""
    table = pd.DataFrame(read(path), columns=None).drop_duplicates(list(KEY), keep="last")
    return table.set_index(list(KEY)).sort_index()


def run(path: Path, cells: Iterable[Cell], measure: Callable[[Cell], dict], jobs: int = 1) -> None:
    """Measure the cells that `path` does not hold; a cell that fails is shown and left out."""
    done = {tuple(record[part] for part in KEY) for record in read(path)}
    missing = [cell for cell in dict.fromkeys(cells) if cell not in done]
    path.parent.mkdir(exist_ok=True)
    if path.exists() and not path.read_text().endswith("\n"):
        with path.open("a") as file:
            file.write("\n")
    os.environ["OMP_NUM_THREADS"] = "1"  # read by the children
    context = multiprocessing.get_context("spawn")
    work = [(measure, cell) for cell in missing]
    with context.Pool(jobs, use_one_thread, maxtasksperchild=CELLS_PER_PROCESS) as pool:
        for record in tqdm(pool.imap_unordered(attempt, work), path.stem, len(work), unit="cell"):
            if "failed" in record:
                tqdm.write(f"{record}")
                continue
            with path.open("a") as file:
                file.write(json.dumps(record) + "\n")


def use_one_thread() -> None:
    """So that the CPU seconds of cells can be compared."""
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)


def attempt(work: tuple[Callable[[Cell], dict], Cell]) -> dict:
    """The record of a cell, with a digest of the code that made it."""
    measure, cell = work
    name = dict(zip(KEY, cell, strict=True))
    try:
        return {**name, **measure(cell), "gpal": source_digest()}
    except Exception as error:
        return {**name, "failed": repr(error)}


def source_digest() -> str:
    """Of gpal's models: cells of different code are not mixed unseen."""
    package = Path(gpal.__file__).parent
    folders = ("inference", "likelihoods", "input_noise")
    files = sorted(file for folder in folders for file in package.glob(f"{folder}/*.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:10]
