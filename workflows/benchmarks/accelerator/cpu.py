"""The same sweeps and bounds by gpal itself, TensorFlow on this machine's CPU.

    python workflows/benchmarks/accelerator/cpu.py [--repeats 5] [--threads 2] [--out rows.jsonl]

The engine as fits have it: graphs made once, chunks of 240 rows; kernel rows are made anew in each
sweep, as on the accelerator. Wall time, median of several after one that is not counted.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

MOST = 3e10  # n m² of a case that is run


def fetched(call: Callable, tensors: list) -> list:
    """Values, so that the clock stops when the work has."""
    return [part.numpy() for part in call(*tensors)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    for name in ("OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS"):
        os.environ[name] = str(options.threads)  # before TensorFlow is imported
    sys.path.append(str(Path(__file__).parent))
    import tensorflow as tf
    from export import Engine, made
    from inputs import FULL, QUICK, draw
    from timing import seconds

    rows = []
    for case in QUICK if options.quick else FULL:
        if case.dtype == "tf32" or case.n * case.m**2 > MOST:
            continue
        engine, (Z, *inputs) = Engine(case), draw(case)
        engine.rows.Z.assign(Z)
        call = getattr(engine, case.program)
        tensors = [tf.constant(part) for part in inputs]
        taken = seconds(partial(fetched, call, tensors), 1, options.repeats)
        rows.append({**vars(case), **made(case), "date": time.strftime("%Y-%m-%d")})
        rows[-1] |= {"threads": options.threads, "seconds": taken}
        rows[-1] |= {"rows_per_second": case.n / taken, "tflops": case.flops / taken / 1e12}
        print(json.dumps(rows[-1]), flush=True)
        if options.out:
            options.out.write_text("".join(json.dumps(row) + "\n" for row in rows))


if __name__ == "__main__":
    main()
