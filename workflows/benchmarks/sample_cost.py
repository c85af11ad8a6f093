"""What it costs to learn hyper-parameters from a sample: against a fit of all sources.

    python workflows/benchmarks/sample_cost.py                200,000 exact sources, seeds 0 and 1
    python workflows/benchmarks/sample_cost.py --noise first_order
    python workflows/benchmarks/sample_cost.py --blocks 40 --seeds 0 --schedules "all, long"

Sources, points and kernel are those of growth.py. "long": up to sixty
rounds over all, with a tenth of the tolerance and gradients in float64. Printed are CPU seconds,
rounds, the bound per source, and the NLL of 50,000 other sources.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from growth import BLOCK, POINTS, TEST, block

SCHEDULES = {
    "a sample": {},
    "all": {"learn_from": None},
    "all, long": {
        "learn_from": None,
        "max_rounds": 60,
        "inference_options": {"tolerance": 1e-5, "final_sweeps": 40, "mixed_precision": False},
    },
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--noise", choices=list(POINTS), default="none")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--blocks", type=int, default=4, help=f"of {BLOCK:,} sources")
    parser.add_argument("--schedules", nargs="+", choices=list(SCHEDULES), default=list(SCHEDULES))
    asked = parser.parse_args()

    from gpal import GPClassifier

    noisy = asked.noise != "none"
    parts = [block(number, BLOCK, noisy) for number in range(asked.blocks)]
    X, y, *errors = (np.concatenate(part) for part in zip(*parts, strict=True))
    new, label, *new_errors = block(TEST, BLOCK, noisy)
    for seed in asked.seeds:
        for name in asked.schedules:
            model = GPClassifier(
                kernel="rbf",
                n_inducing=POINTS[asked.noise],
                input_noise=asked.noise,
                random_state=seed,
                **SCHEDULES[name],
            )
            started = time.process_time()
            model.fit(X, y, *errors)
            seconds = time.process_time() - started
            loss = -np.log(model.predict_proba(new, *new_errors)[np.arange(BLOCK), label]).mean()
            print(
                f"seed {seed}, {name}: {seconds:.0f} CPU s, {model.n_rounds_} rounds,"
                f" bound {model.bound_:.5f}, NLL {loss:.5f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
