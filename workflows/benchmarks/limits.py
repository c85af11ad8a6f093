"""What upper limits are worth: simulated photometry of three bands, a third of one below what was
detected.

    python workflows/benchmarks/limits.py --seeds 5

Sources of three classes differ in three magnitudes-like values; errors differ between sources, and
so does the depth. Of what was not detected, a classifier is given the limit; or nothing; or the
limit as if it were a value; or, as nobody could, the measurement itself. Cases:

    telling    the limited band separates the classes
    idle       its values are the same for all classes, given the others
    two        a second band is limited as well
    doubtful   7 % of the limits are wrong, and all are given with a confidence of .9
    deep       the depth lies below nearly all sources: few limits, far out
"""

from __future__ import annotations

import argparse

import numpy as np

from gpal import GPClassifier
from gpal.limits import Limits
from gpal.measurements import Measurements

CASES = ("telling", "idle", "two", "doubtful", "deep")
WAYS = ("limit", "not measured", "value", "measured")
MODELS = {
    "integrated": {},
    "first_order": {"input_noise": "first_order", "population": "flat"},
}
TRAIN, TEST = 500, 3000
CENTRES = np.array([[0.0, 0.0, 0.0], [0.8, 1.2, -0.3], [-0.6, -1.3, 0.6]])
ROOT = 0.8 * np.array([[1.0, 0.0, 0.0], [0.5, 0.9, 0.0], [0.2, 0.3, 0.8]])


def simulated(case: str, n: int, seed: int) -> tuple[np.ndarray, dict[str, Measurements]]:
    """Labels, and the sources in each of WAYS."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    centres = CENTRES.copy()
    if case == "idle":  # the expectation of band 1 given band 0 is that of all classes
        centres[:, 1] = 0.5 / 1.0 * centres[:, 0]
        centres[:, 2] = 0.2 * centres[:, 0] + np.array([0.0, 0.9, -0.9])
    x = centres[y] + rng.normal(size=(n, 3)) @ ROOT.T
    error = np.exp(rng.uniform(np.log(0.05), np.log(0.4), (n, 3)))
    X = x + error * rng.normal(size=(n, 3))
    value, confidence = np.full(X.shape, np.nan), np.zeros(X.shape)
    for j in (1, 2) if case == "two" else (1,):
        fraction = 0.05 if case == "deep" else 1 / 3
        depth = np.quantile(X[:, j], fraction) + 0.2 * rng.normal(size=n)
        faint = X[:, j] < depth
        certainty = 1.0
        if case == "doubtful":
            # Drawn over the faint sources too: 7 % of the limits are wrong, not a tenth. So was
            # what docs/noisy_inputs.md shows; for a tenth, divide by 1 - faint.mean().
            faint |= rng.random(n) < 0.1 / 0.9 * faint.mean()
            certainty = 0.9
        value[faint, j], confidence[faint, j] = depth[faint], -certainty
    limits = Limits(value, confidence)
    names = ("u", "g", "r")
    unknown = np.where(limits.given, np.nan, X), np.where(limits.given, np.inf, error)
    as_value = np.where(limits.given, value, X), error
    return y, {
        "limit": Measurements(*unknown, names, limits=limits),
        "not measured": Measurements(*unknown, names),
        "value": Measurements(*as_value, names),
        "measured": Measurements(X, error, names),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--case", choices=CASES, action="append")
    arguments = parser.parse_args()
    print("| model | case | not measured | limit | limit as a value | measured |")
    print("|---|---|---|---|---|---|")
    for name, options in MODELS.items():
        for case in arguments.case or CASES:
            loss: dict[str, list[np.ndarray]] = {way: [] for way in WAYS}
            for seed in range(arguments.seeds):
                y, train = simulated(case, TRAIN, seed)
                new_y, test = simulated(case, TEST, 1000 + seed)
                for way in WAYS:
                    model = GPClassifier(n_inducing=60, **options).fit(train[way], y)
                    P = model.predict_proba(test[way])
                    loss[way].append(-np.log(P[np.arange(TEST), new_y]))
            unknown = np.concatenate(loss["not measured"])
            cells = [f"{unknown.mean():.4f}"]
            for way in ("limit", "value", "measured"):
                difference = np.concatenate(loss[way]) - unknown
                error = difference.std() / np.sqrt(len(difference))
                cells.append(f"{difference.mean():+.4f} ± {error:.4f}")
            print(f"| `{name}` | {case} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
