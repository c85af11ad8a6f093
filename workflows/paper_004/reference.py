"""What a Gaussian q(f) loses, on ten small problems: variational class probabilities against draws
of the posterior under the same likelihood, kernel and hyper-parameters (Galy-Fajou et al. 2019).

    python workflows/paper_004/reference.py [--quick] [--seeds 1]

    softmax sites             gpal's default, against HMC
    logistic_softmax sites    natural-gradient sites, against the Gibbs sampler
    logistic_softmax cavi     the paper's augmented bound, against the Gibbs sampler

A cell is a problem, a seed of its split and a method. Results go to results/reference.jsonl, cell
by cell; a run that was stopped goes on. The tables, in docs/papers/004.md, are written at the end.
`--quick` measures two problems with few sources and short chains, into a file of its own, and
writes no page.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn import datasets
from sklearn.model_selection import train_test_split

from gpal import GPClassifier
from gpal.metrics import METRICS
from gpal.model.reference import reference_posterior

sys.path.append(str(Path(__file__).parents[1]))
from studies import at_least_one, grid, load, mean_error, put_tables, run

RESULTS = Path(__file__).parent / "results" / "reference.jsonl"
PAGE = Path(__file__).parents[2] / "docs" / "papers" / "004.md"
METHODS = {
    "softmax sites": ("softmax", "sites", "hmc"),
    "logistic_softmax sites": ("logistic_softmax", "sites", "gibbs"),
    "logistic_softmax cavi": ("logistic_softmax", "cavi", "gibbs"),
}
CHAINS = {
    "hmc": {"draws": 300, "burn_in": 300},
    "gibbs": {"draws": 1000, "burn_in": 1000, "thin": 4},
}
SHORT = {"hmc": {"draws": 50, "burn_in": 100}, "gibbs": {"draws": 200, "burn_in": 100}}
TRAINING, TESTING = 100, 400
KEY = ("problem", "seed", "method")


# ---- problems ------------------------------------------------------------------------------------


def digits(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Ten classes, eight principal components."""
    X, y = datasets.load_digits(return_X_y=True)
    centred = X - X.mean(axis=0)
    return centred @ np.linalg.svd(centred, full_matrices=False)[2][:8].T, y


def normal_classes(d: int, means: np.ndarray, widths: np.ndarray, rng: np.random.Generator):
    """600 sources of classes N(mean, width² I)."""
    y = np.arange(600) % len(means)
    return means[y] + widths[y, None] * rng.normal(size=(600, d)), y


def twonorm(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Breiman's, in ten dimensions."""
    means = 2.0 / np.sqrt(10.0) * np.array([[1.0], [-1.0]]) * np.ones(10)
    return normal_classes(10, means, np.ones(2), rng)


def ringnorm(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Breiman's, in ten dimensions."""
    means = np.array([[0.0], [1.0 / np.sqrt(10.0)]]) * np.ones(10)
    return normal_classes(10, means, np.array([2.0, 1.0]), rng)


def triangle(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Three classes that overlap, in two dimensions."""
    means = np.array([[0.0, 0.0], [1.5, 0.0], [0.0, 1.5]])
    return normal_classes(2, means, np.array([0.8, 0.8, 1.2]), rng)


def made(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """scikit-learn's: four classes of two clusters in five features, one label in ten at random."""
    return datasets.make_classification(
        600,
        5,
        n_informative=4,
        n_redundant=1,
        n_classes=4,
        n_clusters_per_class=2,
        flip_y=0.1,
        random_state=int(rng.integers(2**31)),
    )


PROBLEMS = {
    "iris": lambda rng: datasets.load_iris(return_X_y=True),
    "wine": lambda rng: datasets.load_wine(return_X_y=True),
    "wdbc": lambda rng: datasets.load_breast_cancer(return_X_y=True),
    "digits": digits,
    "moons": lambda rng: datasets.make_moons(600, noise=0.4, random_state=int(rng.integers(2**31))),
    "circles": lambda rng: datasets.make_circles(
        600, noise=0.2, factor=0.5, random_state=int(rng.integers(2**31))
    ),
    "twonorm": twonorm,
    "ringnorm": ringnorm,
    "triangle": triangle,
    "made": made,
}


# ---- measuring -----------------------------------------------------------------------------------


def measure(cell: tuple[str, int, str], training: int, chains: dict) -> dict:
    """NLL and ECE of both, and mean |Δp| between them with what the chains' end makes of it."""
    problem, seed, method = cell
    X, y = PROBLEMS[problem](np.random.default_rng(seed))
    X, X_test, y, y_test = train_test_split(
        X, y, train_size=min(training, len(y) // 2), stratify=y, random_state=seed
    )
    X_test, y_test = X_test[:TESTING], y_test[:TESTING]
    likelihood, inference, sampler = METHODS[method]
    classifier = GPClassifier(likelihood, inference=inference, kernel="rbf").fit(X, y)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        reference = reference_posterior(classifier, sampler, seed=seed, **chains[sampler])
    P = classifier.predict_proba(X_test)
    Q, error = reference.predict_proba_with_error(X_test)
    scores = {
        f"{metric} {name}": round(float(METRICS[metric](y_test, p)), 5)
        for metric in ("nll", "ece")
        for name, p in (("variational", P), ("reference", Q))
    }
    return {
        **scores,
        "difference": round(float(np.abs(P - Q).mean()), 5),
        "monte_carlo": round(float(np.sqrt(2.0 / np.pi) * error.mean()), 5),
        "rhat": round(float(reference.rhat.max()), 3),
        "warned": len(said) > 0,
    }


# ---- the page ------------------------------------------------------------------------------------


def tables(table: pd.DataFrame) -> Iterator[str]:
    """Over all problems, and for each."""
    numbers = [c for c in table.columns if table[c].dtype.kind == "f"]
    of_problem = table.groupby(["method", "problem"])[numbers].mean()
    columns = ["method", "NLL", "change by sampling", "ECE", "by sampling", "mean &#124;Δp&#124;"]

    def rows() -> Iterator[list[str]]:
        for method in METHODS:
            part = of_problem.loc[method]
            change = part["nll reference"] - part["nll variational"]
            yield [
                method,
                mean_error(part["nll variational"]),
                mean_error(change, sign="+"),
                *(mean_error(part[f"ece {name}"]) for name in ("variational", "reference")),
                mean_error(part["difference"]),
                f"{part['monte_carlo'].mean():.3f}",
            ]

    yield from grid([*columns, "of it Monte Carlo"], rows())
    yield ""
    yield "Mean |Δp| of each problem:"
    yield ""
    differences = of_problem["difference"]
    of_each = ([p, *(f"{differences[m, p]:.3f}" for m in METHODS)] for p in PROBLEMS)
    yield from grid(["problem", *METHODS], of_each)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seeds", type=at_least_one, default=1, help="splits of each problem")
    options = parser.parse_args()
    problems, training, chains, path = list(PROBLEMS), TRAINING, CHAINS, RESULTS
    if options.quick:
        problems, training, chains = ["iris", "triangle"], 40, SHORT
        path = RESULTS.with_name("reference-quick.jsonl")
    cells = [(p, s, m) for s in range(options.seeds) for p in problems for m in METHODS]
    failed = run(path, KEY, cells, partial(measure, training=training, chains=chains))
    if not options.quick:
        put_tables(PAGE, [("against draws", tables(load(path, KEY)))])
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
