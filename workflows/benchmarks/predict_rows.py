"""Predictions for a table larger than memory: rows per second, and the most memory that they take.

    python workflows/benchmarks/predict_rows.py                  1,000,000 rows of 8 features
    python workflows/benchmarks/predict_rows.py --rows 100000

Values with errors, Parquet in and out, by a GPClassifier of three classes with 100 inducing points.
A process of its own with one thread; its imports are in both figures. Linux only.
"""

from __future__ import annotations

import one_thread  # noqa: F401

# isort: split
import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from astropy.table import Table

FEATURES = 8
PREDICT = """
import sys, time
from pathlib import Path
from gpal import predict_file
predict_file(*sys.argv[1:], progress=False)
print(time.process_time(), Path("/proc/self/status").read_text())
"""


def sources(rows: int) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    kind = rng.integers(3, size=rows)
    table = {"name": [f"S{i}" for i in range(rows)], "class": np.array(["a", "b", "c"])[kind]}
    for j in range(FEATURES):
        error = rng.uniform(0.05, 0.3, rows)
        table[f"f{j}"] = np.sin(j + 2.1 * kind) + rng.normal(size=rows) * np.hypot(0.7, error)
        table[f"e_f{j}"] = error
    return pd.DataFrame(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    rows = parser.parse_args().rows

    from gpal import GPClassifier, load_catalog
    from gpal.provenance import provenance

    features = {f"f{j}": {"column": f"f{j}", "error": f"e_f{j}"} for j in range(FEATURES)}
    mapping = {"id": "name", "class": "class", "features": features}
    with tempfile.TemporaryDirectory() as folder:
        known, many, out = (
            Path(folder) / name for name in ("fit.csv", "many.parquet", "p.parquet")
        )
        Table.from_pandas(sources(1000)).write(known)
        catalog = load_catalog(known, mapping=mapping)
        model = GPClassifier(max_rounds=2).fit(catalog.measurements, catalog.y)
        model.save(Path(folder) / "model.npz", provenance(catalog.provenance))
        sources(rows).drop(columns="class").to_parquet(many)
        command = [sys.executable, "-W", "ignore", "-c", PREDICT, Path(folder) / "model.npz"]
        done = subprocess.run(
            [*command, many, out], check=True, capture_output=True, text=True, env=os.environ
        )
    seconds = float(done.stdout.split()[0])
    peak = int(re.search(r"VmHWM:\s+(\d+) kB", done.stdout)[1]) * 1024 / 1e9
    print(f"{rows} rows: {seconds:.0f} CPU s, {rows / seconds:.0f} rows/s, at most {peak:.2f} GB")


if __name__ == "__main__":
    main()
