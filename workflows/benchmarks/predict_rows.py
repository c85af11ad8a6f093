"""Predictions for a table larger than memory: rows per second, and the most memory that they take.

    python workflows/benchmarks/predict_rows.py                  1,000,000 rows of 8 features
    python workflows/benchmarks/predict_rows.py --rows 100000
    python workflows/benchmarks/predict_rows.py --classify       learned from 3,000 of them as well

Values with errors, Parquet in and out, by a GPClassifier of three classes with 100 inducing points;
with --classify all that `gpal classify` does, whose table is in memory. A process of its own with
one thread; its imports are in both figures. Linux only.
"""

from __future__ import annotations

import one_thread  # noqa: F401

# isort: split
import argparse
import json
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
LABELLED = 3000
PREDICT = """
import sys, time
from pathlib import Path
from gpal import predict_file
predict_file(*sys.argv[1:], progress=False)
print(time.process_time(), Path("/proc/self/status").read_text())
"""
CLASSIFY = """
import json, sys, time
from pathlib import Path
from gpal import classify, load_catalog
classify(load_catalog(sys.argv[1], mapping=json.loads(sys.argv[2])), sys.argv[3])
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
    parser.add_argument("--classify", action="store_true")
    asked = parser.parse_args()
    rows = asked.rows

    from gpal import GPClassifier, load_catalog
    from gpal.provenance import provenance

    features = {f"f{j}": {"column": f"f{j}", "error": f"e_f{j}"} for j in range(FEATURES)}
    mapping = {"id": "name", "class": "class", "features": features}
    with tempfile.TemporaryDirectory() as folder:
        known, many, out = (
            Path(folder) / name for name in ("fit.csv", "many.parquet", "p.parquet")
        )
        if asked.classify:
            table = sources(rows)
            table.loc[LABELLED:, "class"] = ""
            table.to_parquet(many)
            command = [CLASSIFY, many, json.dumps(mapping), Path(folder) / "results"]
        else:
            Table.from_pandas(sources(1000)).write(known)
            catalog = load_catalog(known, mapping=mapping)
            model = GPClassifier(max_rounds=2).fit(catalog.measurements, catalog.y)
            model.save(Path(folder) / "model.npz", provenance(catalog.provenance))
            sources(rows).drop(columns="class").to_parquet(many)
            command = [PREDICT, Path(folder) / "model.npz", many, out]
        command = [sys.executable, "-W", "ignore", "-c", *command]
        done = subprocess.run(command, check=True, capture_output=True, text=True, env=os.environ)
    seconds = float(re.search(r"([\d.]+) Name:", done.stdout)[1])
    peak = int(re.search(r"VmHWM:\s+(\d+) kB", done.stdout)[1]) * 1024 / 1e9
    print(f"{rows} rows: {seconds:.0f} CPU s, {rows / seconds:.0f} rows/s, at most {peak:.2f} GB")


if __name__ == "__main__":
    main()
