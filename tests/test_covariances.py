"""The covariance that a catalog gives reaches the model, through the library and the commands."""

from __future__ import annotations

import json
import zipfile

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin

from gpal import GPClassifier
from gpal.catalog import load_catalog
from gpal.evaluation import logistic_regression
from gpal.jobs import classify, validate

FEATURES = ["index", "beta", "log_flux"]


class Witness(ClassifierMixin, BaseEstimator):
    """Logistic regression that writes down, for all clones, what it was given."""

    takes_measurements = True
    seen: list = []  # noqa: RUF012  shared on purpose: jobs work on clones

    def fit(self, X, y):
        Witness.seen.append(X)
        self.model_ = logistic_regression().fit(X.X, y)
        self.classes_ = self.model_.classes_
        return self

    def predict_proba(self, X):
        Witness.seen.append(X)
        return self.model_.predict_proba(X.X)

    def predict_proba_std(self, X, prior=None):
        Witness.seen.append(X)
        return np.full((len(X), len(self.classes_)), 0.1)


@pytest.fixture(scope="module")
def old():
    """20 sources of each class and 40 without, with errors calibrated as 4FGL's schema says."""
    catalog = load_catalog("4fgl", features=FEATURES, error_scale=True)
    rows = [i for name in catalog.classes for i in np.flatnonzero(catalog.y == name)[:20]]
    return catalog[[*rows, *np.flatnonzero(catalog.is_target)[:400:10]]]


def assert_correlated(sources):
    """Every pair of errors as the schema of 4FGL says."""
    calibration = load_catalog("4fgl", features=FEATURES).schema.error_calibration
    assert sources.names == tuple(FEATURES)
    known = np.isfinite(sources.X_err).all(axis=1)
    assert known.mean() > 0.8
    for pair, ρ in calibration.correlation.items():
        i, j = (FEATURES.index(name) for name in pair.split(","))
        expected = ρ * sources.X_err[known, i] * sources.X_err[known, j]
        np.testing.assert_allclose(sources.covariance[known, i, j], expected, rtol=1e-12)


@pytest.mark.slow
def test_classify(old, tmp_path):
    Witness.seen = []
    classify(old, tmp_path / "out", classifier=Witness(), n_splits=2, prior="estimated")
    # two folds and the whole: fit, probabilities, deviations; deviations for other fractions
    assert len(Witness.seen) > 9
    for sources in Witness.seen:
        assert_correlated(sources)


def test_validate(old, tmp_path):
    Witness.seen = []
    new = load_catalog("4fgl-dr4", features=FEATURES)
    result = validate(old, new, tmp_path / "out", classifier=Witness(), without=[], n_seeds=2)
    assert len(Witness.seen) == 4
    for sources in Witness.seen:
        assert_correlated(sources)
    assert len(result.table) == 40


def test_probabilities_of_correlated_errors(old, tmp_path):
    """The job's probabilities are those of a fit by hand, which the correlations change."""
    model = GPClassifier(input_noise="first_order", population="flat", max_rounds=0)
    out = tmp_path / "out"
    table = classify(old, out, classifier=model, n_splits=2).table
    known, asked = old.labelled(), old.unlabelled()
    P = np.column_stack([table[f"p_{name}"] for name in sorted(old.classes)])[old.is_target]
    covariances = (part.measurements.covariance for part in (known, asked))
    X_cov, X_cov_asked = covariances
    by_hand = model.fit(known.X, known.y, X_cov=X_cov).predict_proba(asked.X, X_cov=X_cov_asked)
    np.testing.assert_allclose(P, by_hand, atol=1e-8)
    alone = model.predict_proba(asked.X, X_err=asked.X_err)
    assert np.abs(P - alone).max() > 1e-3
    with zipfile.ZipFile(out / "model.npz") as archive:
        origin = json.loads(archive.read("provenance.json"))
    assert origin == json.loads((out / "metrics.json").read_text())["provenance"]
    again = GPClassifier.load(out / "model.npz").predict_proba(asked.measurements)
    np.testing.assert_allclose(again, P, atol=1e-8)
