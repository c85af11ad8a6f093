"""What a step of the mini-batch inferences costs, and the NLL that they end with.

    python workflows/benchmarks/step_cost.py

1,000 sources of 4FGL-DR4 in three classes, 50 inducing points, batches of 200. CPU milliseconds of
the process with one thread: of a fit of 210 steps less those of one of 10, both after a first fit
that made what fits share. The inferences take turns; printed are the median over the rounds and
that of the ratio to "svgp_natgrad" in a round. PYTHONPATH=CHECKOUT measures another checkout.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))
from studies import ONE_THREAD

FITS = {
    "svgp_natgrad": "softmax",
    "stochastic_sites": "softmax",
    "stochastic_cavi": "logistic_softmax",
}
ROUNDS, FEW, MANY = 3, 10, 210


def main() -> None:
    os.environ |= ONE_THREAD
    import numpy as np
    from paper_sets import draw

    from gpal import GPClassifier
    from gpal.metrics import METRICS

    split = draw("fermi", 0, 1500, 1.0 / 3.0)

    def fit(inference: str, steps: int) -> tuple[float, float]:
        classifier = GPClassifier(
            FITS[inference],
            inference=inference,
            input_noise="none",
            n_inducing=50,
            inference_options={"steps": steps, "batch_size": 200},
            random_state=0,
        )
        start = time.process_time()
        classifier.fit(split.X, split.y)
        seconds = time.process_time() - start
        return seconds, METRICS["nll"](split.y_test, classifier.predict_proba(split.X_test))

    found: dict[str, list[float]] = {inference: [] for inference in FITS}
    nll = {}
    for k in range(ROUNDS + 1):
        for inference in FITS:
            few, (many, nll[inference]) = fit(inference, FEW)[0], fit(inference, MANY)
            if k:  # in the first round what fits share is made
                found[inference].append(1e3 * (many - few) / (MANY - FEW))
    natgrad = np.array(found["svgp_natgrad"])
    for inference, cost in found.items():
        ratio = np.median(np.array(cost) / natgrad)
        print(f"{inference}: {np.median(cost):.1f} ms, ratio {ratio:.2f}, NLL {nll[inference]:.8f}")


if __name__ == "__main__":
    main()
