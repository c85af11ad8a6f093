"""Splits that carry X_err, the jackknife error, paired differences, and the refusals."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline

from gpal.arrays import as_measurements
from gpal.errors import InputError
from gpal.evaluation import (
    CrossValidation,
    cross_validate,
    logistic_regression,
    quadratic_logistic_regression,
)
from gpal.metrics import METRICS, confusion_matrix


class Recorder(ClassifierMixin, BaseEstimator):
    """Keeps what it is given and answers the class fractions. Rows are known by X[:, 0]."""

    seen: list = []  # noqa: RUF012  shared on purpose: cross_validate works on clones

    def fit(self, X, y, X_err=None):
        self.classes_, counts = np.unique(y, return_counts=True)
        self.fractions_ = counts / counts.sum()
        self.train_ = set(X[:, 0])
        Recorder.seen.append(("fit", X, X_err, y))
        return self

    def predict_proba(self, X, X_err=None):
        assert not self.train_ & set(X[:, 0]), "a test source was trained on"
        Recorder.seen.append(("predict_proba", X, X_err, None))
        return np.tile(self.fractions_, (len(X), 1))

    def predict_proba_std(self, X, X_err=None):
        Recorder.seen.append(("predict_proba_std", X, X_err, None))
        return np.full((len(X), len(self.classes_)), 0.1)


@pytest.fixture
def sources():
    rng = np.random.default_rng(0)
    n = 90
    y = np.repeat(["bll", "fsrq", "psr"], n // 3)
    X = np.column_stack([np.arange(n), rng.normal(size=n) + np.repeat([0, 1.5, 3], n // 3)])
    order = rng.permutation(n)
    X, y = X[order], y[order]
    return X, y, np.column_stack([X[:, 0] + 0.25, np.abs(rng.normal(size=n))])


def test_every_error_stays_with_its_source(sources):
    X, y, X_err = sources
    Recorder.seen = []
    result = cross_validate({"recorder": Recorder()}, X, y, X_err, n_splits=5, n_repeats=2)
    assert {call[0] for call in Recorder.seen} == {"fit", "predict_proba", "predict_proba_std"}
    assert len(Recorder.seen) == 3 * 10
    label_of = dict(zip(X[:, 0], y, strict=True))
    for kind, values, errors, labels in Recorder.seen:
        np.testing.assert_array_equal(errors[:, 0], values[:, 0] + 0.25)
        if kind == "fit":
            assert [label_of[i] for i in values[:, 0]] == list(labels)
    assert np.isfinite(result.out_of_fold_std("recorder")).all()


def test_every_source_is_predicted_once_per_repeat(sources):
    X, y, X_err = sources
    models = {"plain": LogisticRegression(), "recorder": Recorder()}
    result = cross_validate(models, X, y, X_err, n_splits=5, n_repeats=3, random_state=4)
    assert result.fold.shape == (3, 90)
    for fold in result.fold:
        assert np.bincount(fold).tolist() == [18] * 5
    for model in models:
        np.testing.assert_allclose(result.probabilities[model].sum(axis=2), 1)
    assert list(result.deviations) == ["recorder"]


def test_against_a_loop_by_hand(sources):
    X, y, _ = sources
    result = cross_validate({"plain": LogisticRegression()}, X[:, 1:], y, n_splits=5)
    P = np.empty((90, 3))
    for k in range(5):
        train, test = result.fold[0] != k, result.fold[0] == k
        P[test] = LogisticRegression().fit(X[train, 1:], y[train]).predict_proba(X[test, 1:])
    np.testing.assert_allclose(result.out_of_fold("plain"), P, atol=1e-12)


def test_same_seed_same_answer_other_seed_other_folds(sources):
    X, y, X_err = sources
    first, again, other = (
        cross_validate({"m": logistic_regression()}, X, y, X_err, n_splits=5, random_state=s)
        for s in (1, 1, 2)
    )
    np.testing.assert_allclose(first.out_of_fold("m"), again.out_of_fold("m"), atol=1e-8)
    assert (first.fold != other.fold).any()


def test_jackknife_of_a_mean_is_the_standard_error_over_splits(sources):
    X, y, _ = sources
    result = cross_validate({"m": LogisticRegression()}, X[:, 1:], y, n_splits=5)
    for name in ("error", "nll", "brier"):
        estimate, per_fold = result.estimate(METRICS[name], "m"), result.per_fold("m")[name]
        assert estimate.mean == pytest.approx(per_fold.mean())
        assert estimate.se == pytest.approx(per_fold.std(ddof=1) / np.sqrt(5))
    matrix = result.estimate(confusion_matrix, "m")
    np.testing.assert_allclose(matrix.mean.sum(axis=1), 1)
    assert matrix.se.shape == (3, 3)


class FixedRule(ClassifierMixin, BaseEstimator):
    """Learns nothing, so that its folds are independent and its s.e. can be checked."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        p = np.where(X[:, 0] > 0, 0.9, 0.1)
        return np.column_stack([1 - p, p])


@pytest.mark.parametrize("name", ["error", "macro_f1"])
def test_standard_error_is_the_scatter_over_data_sets(name):
    rng = np.random.default_rng(3)
    y = np.repeat([0, 1], 100)
    estimates = []
    for _ in range(150):
        X = rng.normal(loc=2.0 * y - 1, size=200)[:, None]
        result = cross_validate({"m": FixedRule()}, X, y, n_splits=10)
        estimates.append(result.estimate(METRICS[name], "m"))
    scatter = np.std([e.mean for e in estimates])
    assert np.sqrt(np.mean([e.se**2 for e in estimates])) == pytest.approx(scatter, rel=0.2)


def test_repeats_steady_the_mean_but_do_not_shrink_the_standard_error(sources):
    X, y, _ = sources
    se = [
        cross_validate({"m": LogisticRegression()}, X[:, 1:], y, n_splits=5, n_repeats=r)
        .estimate(METRICS["nll"], "m")
        .se
        for r in (1, 8)
    ]
    assert se[1] > 0.5 * se[0]


def test_paired_difference(sources):
    X, y, _ = sources
    models = {
        "a": logistic_regression(),
        "a2": logistic_regression(),
        "b": quadratic_logistic_regression(),
    }
    result = cross_validate(models, X[:, 1:], y, n_splits=5)
    nll = METRICS["nll"]
    same, other = result.estimate(nll, "a", "a2"), result.estimate(nll, "b", "a")
    assert same.mean == 0 and same.se == 0
    assert other.mean == pytest.approx(
        result.estimate(nll, "b").mean - result.estimate(nll, "a").mean
    )
    difference = result.per_fold("b")["nll"] - result.per_fold("a")["nll"]
    assert other.se == pytest.approx(difference.std(ddof=1) / np.sqrt(5))


def test_baselines_take_missing_values_at_the_training_median():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(60, 2))
    y = (X[:, 0] > 0).astype(int)
    X[3, 0] = np.nan
    median = np.nanmedian(X, axis=0)
    filled = np.where(np.isnan(X), median, X)
    for make in (logistic_regression, quadratic_logistic_regression):
        np.testing.assert_allclose(
            make().fit(X, y).predict_proba(X), make().fit(filled, y).predict_proba(filled)
        )


def test_quadratic_baseline_learns_a_circle():
    X = np.random.default_rng(6).normal(size=(400, 2))
    y = (np.hypot(*X.T) > 1.2).astype(int)
    assert quadratic_logistic_regression().fit(X, y).score(X, y) > 0.95
    assert logistic_regression().fit(X, y).score(X, y) < 0.75


@pytest.mark.parametrize(
    ("labels", "arguments", "message"),
    [
        (["bll"] * 20, {"n_splits": 5}, "fewer than two classes"),
        (["bll"] * 17 + ["psr"] * 3, {"n_splits": 5}, "of class 'psr' labelled sources: 3"),
        (["bll"] * 19 + ["psr"], {"n_splits": 5}, "leave the class out"),
        (["bll"] * 10 + ["psr"] * 10, {"n_splits": 1}, "at least 2 folds"),
    ],
)
def test_refusals_are_one_line(labels, arguments, message):
    with pytest.raises(InputError, match=message) as caught:
        cross_validate({"m": LogisticRegression()}, np.zeros((20, 1)), labels, **arguments)
    assert "\n" not in str(caught.value)


def test_folds_are_stratified(sources):
    X, y, _ = sources
    result = cross_validate({"m": LogisticRegression()}, X, y, n_splits=5)
    reference = StratifiedKFold(5).split(X, y)
    sizes = [np.unique(y[test], return_counts=True)[1].tolist() for _, test in reference]
    assert sizes[0] == [
        int(np.sum((result.fold[0] == 0) & (y == c))) for c in ("bll", "fsrq", "psr")
    ]


class OfMeasurements(ClassifierMixin, BaseEstimator):
    """Takes Measurements, as gpal's own do, and keeps them."""

    takes_measurements = True
    seen: list = []  # noqa: RUF012  shared on purpose

    def fit(self, sources, y):
        self.classes_ = np.unique(y)
        OfMeasurements.seen.append(sources)
        return self

    def predict_proba(self, sources):
        return np.full((len(sources), len(self.classes_)), 1 / len(self.classes_))


def test_a_fold_without_the_only_source_with_errors_counts_as_having_them(sources):
    X, y, _ = sources
    X_err = np.zeros_like(X)
    X_err[7, 1] = 0.3
    OfMeasurements.seen = []
    cross_validate({"model": OfMeasurements()}, as_measurements(X, X_err), y, n_splits=3)
    assert sorted((part.X_err > 0).any() for part in OfMeasurements.seen) == [False, True, True]
    assert all(part.have_errors.tolist() == [False, True] for part in OfMeasurements.seen)


class Backwards(LogisticRegression):
    """Its classes in the other order, and its columns with them."""

    def fit(self, X, y):
        super().fit(X, y)
        self.columns_ = self.classes_
        self.classes_ = self.classes_[::-1]
        return self


class BackwardsList(Backwards):
    def fit(self, X, y):
        super().fit(X, y)
        self.classes_ = self.classes_.tolist()
        return self


@pytest.mark.parametrize("kind", [Backwards, BackwardsList])
def test_columns_in_another_order_are_refused(sources, kind):
    X, y, _ = sources
    with pytest.raises(InputError, match=rf"classes of {kind.__name__} .*sorted order"):
        cross_validate({"odd": kind()}, X, y, n_splits=3)


def test_labels_and_masks_as_the_estimator_takes_them(sources):
    X, y, _ = sources
    folds = {"m": logistic_regression()}, X
    with pytest.raises(InputError, match="of y is masked"):
        cross_validate(*folds, np.ma.array(y, mask=np.arange(len(y)) == 4), n_splits=3)
    with pytest.raises(InputError, match=r"y contains NaN: row 7"):
        cross_validate(*folds, [*y[:7].tolist(), np.nan, *y[8:].tolist()], n_splits=3)
    masked = np.ma.array(X, mask=np.zeros_like(X))
    masked[:40, 1] = np.ma.masked
    masked.data[:40, 1] = -999
    missing = np.where(masked.mask, np.nan, X)
    found, expected = (
        cross_validate({"m": logistic_regression()}, values, y, n_splits=3).out_of_fold("m")
        for values in (masked, missing)
    )
    np.testing.assert_array_equal(found, expected)
    frame = pd.DataFrame(X, index=np.arange(len(X))[::-1])
    with pytest.warns(UserWarning, match="taken row by row"):
        cross_validate({"m": logistic_regression()}, frame, pd.Series(y), n_splits=3)


def test_a_mean_over_classes_is_of_the_same_classes_without_any_fold():
    """The one source of a third class is in one fold: without it the mean would be of two."""
    rng = np.random.default_rng(0)
    y = np.array([0, 1] * 15 + [2])
    P = rng.dirichlet([1.0, 1.0, 1.0], size=len(y))
    fold = np.arange(len(y))[None] % 3
    found = CrossValidation(y, np.array(["a", "b", "c"]), fold, {"m": P[None]}, {})
    for name in ("macro_auc", "macro_recall", "macro_f1"):
        estimate = found.estimate(METRICS[name], "m")
        assert estimate.mean == pytest.approx(METRICS[name](y, P)) and np.isnan(estimate.se)
    two = found.among(y < 2)
    assert "c 0" in repr(two)  # the last class has none
    for name in ("macro_auc", "macro_recall"):
        estimate = two.estimate(METRICS[name], "m")
        assert estimate.mean == pytest.approx(METRICS[name](y[:-1], P[:-1]))
        without = [
            METRICS[name](y[rows], P[rows])
            for k in range(3)
            for rows in [np.flatnonzero((fold[0] != k) & (y < 2))]
        ]
        assert estimate.se == pytest.approx(np.sqrt(2) * np.std(without))


@pytest.mark.parametrize("number", [50, 70])
def test_there_is_one_label_for_each_source(number):
    """More sources than labels lost the last, and fewer ended in a traceback."""
    X, y = np.random.default_rng(0).normal(size=(60, 2)), np.arange(number) % 2
    with pytest.raises(InputError, match=rf"y has shape \({number},\): .* each of 60 sources"):
        cross_validate({"linear": logistic_regression()}, X, y, n_splits=3)


def test_the_columns_of_a_frame_keep_their_names():
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 3)), columns=list("abc"))
    y = np.where(frame["a"] > 0, "star", "quasar")
    only_a = ColumnTransformer([("a", "passthrough", ["a"])])
    models = {"a": make_pipeline(only_a, LogisticRegression())}
    found = cross_validate(models, frame, y, n_splits=3, refit="a")
    assert found.estimate(METRICS["error"], "a").mean < 0.1
    assert list(found.refitted.feature_names_in_) == list("abc")
    with pytest.raises(InputError, match="no model 'b' to refit"):
        cross_validate(models, frame, y, n_splits=3, refit="b")
    with pytest.raises(InputError, match="no model 'b'; there are: a"):
        found.estimate(METRICS["nll"], "a", minus="b")
