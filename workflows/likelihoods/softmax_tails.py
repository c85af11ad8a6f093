"""How right are small softmax probabilities, and what do they cost?

    python workflows/likelihoods/softmax_tails.py

First the table of `gpal.likelihoods.shares`, against the same integral with 300 and 200 nodes: rows
of 2, 3 and 10 classes, means spread by 1.5 times the largest deviation or 2, deviations spread
below it. Then real marginals: those of `GPClassifier()` on half of a data set of scikit-learn at
the other half, against the fine integral, and both beside 10⁶ draws and 128 quasi-random points.
"""

from __future__ import annotations

import time

import numpy as np
import tensorflow as tf
from scipy.special import softmax
from sklearn.datasets import load_digits, load_wine
from sklearn.model_selection import train_test_split

from gpal import GPClassifier
from gpal.likelihoods import shares
from gpal.likelihoods.quasi_random import antithetic_normal

FINE = ((np.inf, 300, 200),)
DRAWS = 1_000_000


def fine(mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
    rules, shares.RULES = shares.RULES, FINE
    try:
        return shares.expected_shares(tf.identity, mean, variance).numpy()
    finally:
        shares.RULES = rules


def sampled(mean: np.ndarray, variance: np.ndarray, points: np.ndarray) -> np.ndarray:
    root = np.sqrt(variance)
    return np.stack([softmax(m + s * points, axis=1).mean(axis=0) for m, s in zip(mean, root)])


def errors(p: np.ndarray, truth: np.ndarray) -> str:
    tail = truth < 0.01
    off = np.abs(np.log(np.maximum(p, 1e-300) / truth))[tail]
    if not tail.any():
        off = np.zeros(1)
    error = p - truth
    return f"{off.mean():8.4f} {off.max():8.3f} {np.sqrt(np.mean(error**2)):9.5f}"


def table() -> None:
    print("largest deviation, classes: log p below .01, mean and largest; p, rms")
    generator = np.random.default_rng(5)
    lower = 0.0
    for upper, _, _ in shares.RULES:
        upper = upper if np.isfinite(upper) else 2 * lower
        for C in (2, 3, 10):
            mean = generator.normal(size=(120, C)) * max(2.0, 1.5 * upper)
            deviation = np.exp(-0.7 * generator.exponential(size=(120, C)))
            largest = generator.uniform(lower, upper, size=(120, 1))
            variance = (deviation / deviation.max(axis=1, keepdims=True) * largest) ** 2
            p = shares.expected_shares(tf.identity, mean, variance).numpy()
            points = antithetic_normal(128, C)
            truth = fine(mean, variance)
            quasi = errors(sampled(mean, variance, points), truth)
            print(f"{upper:5.0f} {C:3d} {errors(p, truth)}   128 points: {quasi}", flush=True)
        lower = upper


def real() -> None:
    for name, load in (("digits", load_digits), ("wine", load_wine)):
        X, y = load(return_X_y=True)
        train, test = train_test_split(np.arange(len(y)), test_size=0.5, random_state=0, stratify=y)
        classifier = GPClassifier(random_state=0).fit(X[train], y[train])
        classifier.predict_proba(X[test])
        start = time.process_time()
        p = classifier.predict_proba(X[test])
        seconds = time.process_time() - start
        mean, variance = classifier.predict_latent(X[test])
        some = np.random.default_rng(0).permutation(len(test))[:40]
        mean, variance = mean[some], variance[some]
        truth = fine(mean, variance)
        print(f"{name}: predict_proba {1e6 * seconds / len(test):.0f} CPU µs a source")
        print("  integral          ", errors(p[some], truth))
        quasi = antithetic_normal(128, mean.shape[1])
        print("  128 points        ", errors(sampled(mean, variance, quasi), truth))
        generator = np.random.default_rng(1)
        blocks = [
            sampled(mean, variance, generator.normal(size=(DRAWS // 50, mean.shape[1])))
            for _ in range(50)
        ]
        print("  10^6 draws        ", errors(np.mean(blocks, axis=0), truth))


if __name__ == "__main__":
    table()
    real()
