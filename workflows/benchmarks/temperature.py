"""Where the temperature comes from: class probabilities of N(m/T, v) beside draws of the posterior.

    python workflows/benchmarks/temperature.py

For a fit to a few sources of some development sets: NLL of the others by the Gaussian q(f), by q(f)
at its temperature, and by Hamiltonian Monte Carlo under the same kernel and hyper-parameters, where
nothing is approximate but the number of draws; and how far the probabilities of the first two are
from those of the third. Prints a row each, one thread.
"""

from __future__ import annotations

import one_thread  # noqa: F401

# isort: split
import argparse
import time
import warnings

import numpy as np
from data_sets import load
from scoring import Split
from sklearn.model_selection import train_test_split

SETS = ("texture-1000", "movement_libras", "penbased", "sonar", "heart")
SOURCES = 150
TESTED = 400
CHAINS = {"draws": 200, "burn_in": 200}


def few(name: str, seed: int) -> Split:
    split = load(name, seed)
    X, _, y, _ = train_test_split(
        split.X, split.y, train_size=SOURCES, stratify=split.y, random_state=seed
    )
    return Split(X, y, split.X_test[:TESTED], split.y_test[:TESTED])


def nll(p: np.ndarray, y: np.ndarray) -> float:
    return float(-np.log(np.maximum(p[np.arange(len(y)), y], 1e-300)).mean())


def measure(name: str, seed: int) -> str:
    from gpal import GPClassifier
    from gpal.model.reference import reference_posterior

    split, began = few(name, seed), time.process_time()
    classifier = GPClassifier(temperature="leave_one_out").fit(split.X, split.y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        chains = reference_posterior(classifier, "hmc", seed=seed, **CHAINS)
    sampled = chains.predict_proba(split.X_test)
    p = {"T": classifier.predict_proba(split.X_test)}
    temperature, classifier.model_.temperature = classifier.temperature_, 1.0
    p["1"] = classifier.predict_proba(split.X_test)
    y = split.y_test
    differences = " ".join(f"|p_{k} - HMC| {np.abs(p[k] - sampled).mean():.4f}" for k in ("1", "T"))
    return (
        f"{name:16s} {seed} T {temperature:.2f} NLL q {nll(p['1'], y):.4f} q at T"
        f" {nll(p['T'], y):.4f} HMC {nll(sampled, y):.4f} {differences} R-hat"
        f" {chains.rhat.max():.2f} {time.process_time() - began:.0f} s"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-sets", nargs="+", default=list(SETS))
    parser.add_argument("--splits", nargs="+", type=int, default=[0])
    arguments = parser.parse_args()
    for name in arguments.data_sets:
        for seed in arguments.splits:
            print(measure(name, seed), flush=True)


if __name__ == "__main__":
    main()
