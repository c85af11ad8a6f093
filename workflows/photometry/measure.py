"""Where error bars pay: photometric redshift bins, with every galaxy's errors or without.

    python workflows/photometry/measure.py                      what is missing, cell by cell
    python workflows/photometry/measure.py --sizes 2500 --methods own none --seeds 0 1
    python workflows/photometry/measure.py --quick              small cells, not kept
    python workflows/photometry/tables.py                       the tables of the pages

A cell (split, training size, method, seed) is one line of results/photometry.jsonl; what is there
is not measured again. Per cell: NLL, error and calibration of 4,000 test galaxies, and the mean
redshift of those put into each bin:

    estimated   Σ_i Σ_c P[i, c] z̄_c / N over the N galaxies of the bin, z̄_c the mean redshift of
                the training galaxies of class c
    true        their mean redshift

No setting of gpal is chosen; those of the others are, on folds of the training sample.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import os
import time
from pathlib import Path

import numpy as np

THREADS = (
    *("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"),
    *("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS"),
)
TABLE = Path(__file__).parent / "results" / "photometry.jsonl"
KEY = ("split", "n", "method", "seed")
CELLS_PER_PROCESS = 40  # TensorFlow keeps some memory of every model it has run

Cell = tuple[str, int, str, int]


def read(path: Path = TABLE) -> list[dict]:
    """The cells that were measured; a last line that was cut off is left out."""
    if not path.exists():
        return []
    lines = path.read_text().split("\n")[:-1]
    return [json.loads(line) for line in lines if line.endswith("}")]


def mean_redshifts(P: np.ndarray, z: np.ndarray, of_class: np.ndarray) -> list[list[float]]:
    """[number, estimated, true] mean redshift of the galaxies put into each bin."""
    chosen, expected = P.argmax(axis=1), P @ of_class
    found = []
    for k in range(P.shape[1]):
        rows = chosen == k
        if rows.any():
            found.append([int(rows.sum()), expected[rows].mean(), z[rows].mean()])
        else:
            found.append([0, None, None])
    return found


def measure(cell: Cell) -> dict:
    """The record of a cell, or what it failed of."""
    from methods import METHODS
    from samples import catalog, draw

    from gpal import metrics
    from gpal.provenance import json_safe, provenance

    split, n, method, seed = cell
    name = dict(zip(KEY, cell, strict=True))
    train, test = draw(split, n, seed)
    begin = time.process_time()
    try:
        P, settings = METHODS[method](train, test, seed)
    except Exception as error:
        return {**name, "failed": repr(error)}
    seconds = time.process_time() - begin
    of = {key: catalog().provenance[key] for key in ("catalog", "sha256", "features")}
    of_class = np.array([train.z[train.y == k].mean() for k in range(P.shape[1])])
    return json_safe(
        {
            **name,
            "nll": metrics.negative_log_predictive_density(test.y, P),
            "error": metrics.error(test.y, P),
            "ece": metrics.expected_calibration_error(test.y, P),
            "bins": mean_redshifts(P, test.z, of_class),
            "seconds": round(seconds, 2),
            "code": source_digest(),
            "provenance": provenance(of, settings, random_state=seed),
        }
    )


def source_digest() -> str:
    """Of gpal's models: cells of different code are not mixed unseen."""
    import gpal

    package = Path(gpal.__file__).parent
    folders = ("inference", "likelihoods", "input_noise")
    files = sorted(file for folder in folders for file in package.glob(f"{folder}/*.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:10]


def run(cells: list[Cell], path: Path | None = TABLE) -> None:
    """Measure the cells that `path` does not hold, in their order; failures are shown."""
    done = {tuple(record[part] for part in KEY) for record in read(path)} if path else set()
    os.environ.update(dict.fromkeys(THREADS, "1"))  # read by the child
    missing = [cell for cell in cells if cell not in done]
    context = multiprocessing.get_context("spawn")
    with context.Pool(1, maxtasksperchild=CELLS_PER_PROCESS) as pool:
        for record in pool.imap(measure, missing):
            shown = {key: record.get(key) for key in (*KEY, "nll", "error", "seconds", "failed")}
            print(*(f"{v:.4f}" if isinstance(v, float) else v for v in shown.values()), flush=True)
            if path and "failed" not in record:
                path.parent.mkdir(exist_ok=True)
                with path.open("a") as file:
                    file.write(json.dumps(record) + "\n")


def main() -> None:
    from methods import METHODS
    from samples import SIZES, SPLITS

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", nargs="+", choices=SPLITS, default=list(SPLITS))
    parser.add_argument("--sizes", nargs="+", type=int, default=list(SIZES))
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--seeds", nargs="+", type=int, default=list(range(10)))
    parser.add_argument("--quick", action="store_true", help="150 galaxies, one seed, not kept")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.sizes, arguments.seeds, arguments.splits = [150], [0], SPLITS[-1:]
    cells = [
        (split, n, method, seed)
        for n in arguments.sizes
        for seed in arguments.seeds
        for split in arguments.splits
        for method in arguments.methods
    ]
    run(cells, None if arguments.quick else TABLE)


if __name__ == "__main__":
    main()
