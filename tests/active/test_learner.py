"""The learner against modAL's own interface, its faults, and a cold fit."""

from __future__ import annotations

import copy

import numpy as np
import pandas as pd
import pytest
from known_truth import draw
from modAL.batch import uncertainty_batch_sampling
from modAL.models import ActiveLearner
from modAL.uncertainty import entropy_sampling, margin_sampling, uncertainty_sampling
from sklearn.linear_model import LogisticRegression

from gpal import GPClassifier
from gpal.active.learner import Learner
from gpal.errors import InputError
from gpal.measurements import Measurements, pack

FAST = {"n_inducing": 15, "max_rounds": 1, "input_noise": "first_order"}


class Picky(LogisticRegression):
    """A classifier that takes error bars and fails on a label 'bad'."""

    def fit(self, X, y, X_err=None):
        if "bad" in y:
            self.coef_ = None  # half-grown
            raise RuntimeError("cannot fit")
        return super().fit(X, y)

    def predict_proba(self, X, X_err=None):
        self.seen_ = X_err
        return super().predict_proba(X)


@pytest.fixture
def sources():
    X, X_err, _, y = draw(60, 0.2, seed=1)
    return X, X_err, y


@pytest.mark.parametrize("strategy", [entropy_sampling, margin_sampling, uncertainty_sampling])
def test_a_loop_with_error_bars(sources, strategy):
    X, X_err, y = sources
    learner = Learner(Picky(), strategy, X[:20], y[:20], X_err_training=X_err[:20])
    assert isinstance(learner, ActiveLearner)
    for start in (20, 30):
        pool = slice(start, None)
        indices, rows = learner.query(X[pool], n_instances=2, X_err=X_err[pool])
        assert (rows == X[pool][indices]).all() and len(indices) == 2
        assert (learner.estimator.seen_ == X_err[pool]).all()
        learner.teach(rows, y[pool][indices], X_err=X_err[pool][indices])
    assert learner.X_training.shape == learner.X_err_training.shape == (24, 2)
    assert 0.5 < learner.score(X, y) <= 1


def test_asks_for_the_same_sources_as_modal(sources):
    X, _, y = sources
    ours = Learner(LogisticRegression(), entropy_sampling, X[:20], y[:20])
    theirs = ActiveLearner(LogisticRegression(), entropy_sampling, X[:20], y[:20])
    assert (ours.query(X[20:])[0] == theirs.query(X[20:])[0]).all()


@pytest.mark.parametrize(
    "answer, scores",
    [
        (np.array([3, 1]), None),
        ([3, 1], None),
        ((3, 1), None),
        ((np.array([3, 1]), np.array([0.2, 0.1])), [0.2, 0.1]),
    ],
)
def test_two_indices_are_two_indices(sources, answer, scores):
    X, _, y = sources
    learner = Learner(LogisticRegression(), lambda learner, pool: answer, X[:20], y[:20])
    indices, rows, metrics = learner.query(X[20:], return_metrics=True)
    assert indices.tolist() == [3, 1] and (rows == X[[23, 21]]).all()
    assert metrics is None if scores is None else metrics.tolist() == scores
    assert len(learner.query(X[20:])) == 2


def test_a_strategy_that_fails_is_called_once(sources):
    X, _, y = sources
    calls = []

    def failing(learner, pool):
        calls.append(1)
        raise RuntimeError("no strategy")

    with pytest.raises(RuntimeError, match="no strategy"):
        Learner(LogisticRegression(), failing, X[:20], y[:20]).query(X)
    assert len(calls) == 1


def test_a_failed_teach_or_fit_changes_nothing(sources):
    X, X_err, y = sources
    learner = Learner(Picky(), X_training=X[:20], y_training=y[:20], X_err_training=X_err[:20])
    before, P = learner.estimator, learner.predict_proba(X)
    for call in (learner.teach, learner.fit):
        with pytest.raises(RuntimeError):
            call(X[20:21], ["bad"], X_err=X_err[20:21])
        assert learner.estimator is before and len(learner.y_training) == 20
        assert (learner.predict_proba(X) == P).all()
    for wrong in ({"X": X[:2], "y": y[:1]}, {"X": X[:1], "y": y[:1]}, {"X": X[:1, :1], "y": y[:1]}):
        with pytest.raises(InputError):
            learner.teach(**wrong, X_err=0.1 if wrong["X"].shape[1] == 1 else None)
    assert len(learner.y_training) == 20


def test_only_new_and_bootstrap_as_modal(sources):
    X, _, y = sources
    learner = Learner(LogisticRegression(), X_training=X[:20], y_training=y[:20])
    learner.teach(X[20:], y[20:], only_new=True)
    expected = LogisticRegression().fit(X[20:], y[20:])
    assert np.allclose(learner.estimator.coef_, expected.coef_) and len(learner.y_training) == 20
    learner.teach(X[20:], y[20:], bootstrap=True)
    assert len(learner.y_training) == 60


def test_weights_go_with_their_sources(sources):
    """In a resample too; and those of before are not forgotten in silence."""
    X, _, y = sources
    n, weight = len(y), np.where(np.arange(len(y)) % 2, 1.0, 0.01)
    learner = Learner(LogisticRegression(), random_state=5)
    learner.fit(X, y, bootstrap=True, sample_weight=weight)
    rows = np.random.RandomState(5).randint(n, size=n)
    expected = LogisticRegression().fit(X[rows], y[rows], sample_weight=weight[rows])
    np.testing.assert_array_equal(learner.estimator.coef_, expected.coef_)

    learner = Learner(LogisticRegression()).fit(X[:20], y[:20], sample_weight=weight[:20])
    for wrong in ({}, {"sample_weight": weight[20:]}):
        with pytest.raises(InputError, match=f"give sample_weight for all {n}"):
            learner.teach(X[20:], y[20:], **wrong)
    assert len(learner.y_training) == 20
    learner.teach(X[20:], y[20:], sample_weight=weight)
    expected = LogisticRegression().fit(X, y, sample_weight=weight)
    np.testing.assert_array_equal(learner.estimator.coef_, expected.coef_)
    plain = Learner(LogisticRegression()).fit(X[:20], y[:20])
    with pytest.raises(InputError, match=f"give sample_weight for all {n} labels"):
        plain.teach(X[20:], y[20:], sample_weight=weight[20:])


def test_learners_of_one_bag_have_resamples_of_their_own(sources):
    X, _, y = sources
    np.random.seed(3)  # as users of modAL do
    one, other = (Learner(LogisticRegression()).fit(X, y, bootstrap=True) for _ in range(2))
    assert (one.estimator.coef_ != other.estimator.coef_).all()
    np.random.seed(3)
    again = Learner(LogisticRegression()).fit(X, y, bootstrap=True)
    np.testing.assert_array_equal(again.estimator.coef_, one.estimator.coef_)


def test_features_of_a_first_teach_are_found_by_name_later(sources):
    frame = pd.DataFrame(sources[0], columns=["a", "b"])
    learner = Learner(LogisticRegression())
    learner.teach(frame[:30], sources[2][:30])
    learner.teach(frame[["b", "a"]][30:], sources[2][30:])
    np.testing.assert_array_equal(learner.X_training, sources[0])


def test_a_query_finds_covariances_with_their_features(sources):
    X, X_err, y = sources
    frame = pd.DataFrame(X, columns=["a", "b"])
    X_cov = np.array([[[1.0, 0.0], [0.0, 9.0]]] * len(X)) * X_err[:, :1, None] ** 2
    seen = []

    def first(learner, pool, X_cov=None):
        seen.append((pool, X_cov))
        return np.array([0])

    learner = Learner(GPClassifier(**FAST), first).fit(frame[:30], y[:30], X_cov=X_cov[:30])
    learner.query(frame[["b", "a"]][30:], X_cov=X_cov[30:, ::-1, ::-1])
    np.testing.assert_array_equal(seen[0][0], X[30:])
    np.testing.assert_array_equal(seen[0][1], X_cov[30:])


def test_what_only_new_sources_taught_is_no_start_for_all(sources):
    X, X_err, y = sources
    plain, learner = (
        Learner(GPClassifier(**FAST), relearn_every=50).fit(X[:30], y[:30], X_err=X_err[:30])
        for _ in range(2)
    )
    learner.teach(X[30:36], y[30:36], X_err=X_err[30:36], only_new=True)
    learner.teach(X[30:36], y[30:36], X_err=X_err[30:36])
    full = Learner(GPClassifier(**FAST)).fit(X[:36], y[:36], X_err=X_err[:36])
    expected = full.estimator.predict_proba(X[36:], X_err[36:])
    found = learner.estimator.predict_proba(X[36:], X_err[36:])
    np.testing.assert_array_equal(found, expected)
    plain.teach(X[30:36], y[30:36], X_err=X_err[30:36])
    warm = plain.estimator.predict_proba(X[36:], X_err[36:])
    assert (warm != expected).any()  # a refit


def test_packed_errors_go_through_any_strategy(sources):
    X, X_err, y = sources
    packed = pack(X, X_err)

    def by_position(learner, pool):
        return np.array([len(pool) - 1])

    learner = Learner(GPClassifier(packed=True, **FAST), by_position, packed[:30], y[:30])
    with pytest.raises(InputError, match="takes no X_err"):
        learner.query(X[30:], X_err=X_err[30:])
    indices, rows = learner.query(packed[30:])
    learner.teach(rows, y[30:][indices])
    assert learner.X_training.shape == (31, 4)


def test_a_refit_ends_at_the_same_place_whatever_it_starts_from(fitted):
    """One fixed point for given hyper-parameters: by way of other sources to the same answer."""
    classifier, X, X_err, y = fitted
    new, new_err, _, new_y = draw(10, 0.3, seed=9)
    every = np.vstack([X, new]), np.append(y, new_y), np.vstack([X_err, new_err])
    before = classifier.predict_proba(X, X_err=X_err)
    at_once = classifier.refit(*every)
    by_way_of = classifier.refit(X[:40], y[:40], X_err[:40]).refit(*every).refit(*every)
    assert (classifier.predict_proba(X, X_err=X_err) == before).all()
    P, Q = (c.predict_proba(X, X_err=X_err) for c in (at_once, by_way_of))
    assert np.abs(P - Q).max() < 1e-3 < 0.01 < np.abs(P - before).max()


class Refitted(LogisticRegression):
    """Counts how often it was refitted since its last fit."""

    def fit(self, X, y, X_err=None):
        self.refits_ = 0
        return super().fit(X, y)

    def can_refit(self, X, y):
        return "c" not in y

    def refit(self, X, y):
        again = copy.copy(self)
        again.refits_, again.seen_ = self.refits_ + 1, len(X)
        return again


def test_hyper_parameters_are_learned_again_every_k_labels(sources):
    X, X_err, y = sources
    learner = Learner(Refitted(), entropy_sampling, X[:30], y[:30], X_err[:30], relearn_every=3)
    refits = []
    for i in range(30, 38):
        learner.teach(X[i : i + 1], y[i : i + 1], X_err=X_err[i : i + 1])
        refits.append(learner.estimator.refits_)
    assert refits == [1, 2, 0, 1, 2, 0, 1, 2] and learner.estimator.seen_ == 38
    learner.teach(X[38:39], ["c"], X_err=X_err[38:39])  # a class that is new to it
    assert learner.estimator.refits_ == 0


def test_full_gp_is_refitted_too():
    X, _, _, y = draw(60, 0.0, seed=2)
    # Of rbf and a constant: a linear part would see that the scaling is that of the first 50.
    classifier = GPClassifier(kernel="rbf", max_rounds=1).fit(X[:50], y[:50])
    assert classifier.settings_["gp"] == "full"
    warm = classifier.refit(X, y)
    kernel = classifier.model_.gp.kernels[0]
    cold = GPClassifier(kernel=kernel, max_rounds=0).fit(X, y)
    before = np.abs(classifier.predict_proba(X) - cold.predict_proba(X)).mean()
    assert np.abs(warm.predict_proba(X) - cold.predict_proba(X)).mean() < 0.5 * before


def test_what_a_warm_start_cannot_do(fitted):
    classifier, X, X_err, y = fitted
    assert classifier.can_refit(X, y, X_err)
    assert not classifier.can_refit(X, np.where(y == "a", "c", y), X_err)
    assert not GPClassifier().can_refit(X, y, X_err)
    exact_first = X_err.copy()
    exact_first[:, 1] = 0
    half = GPClassifier(**FAST).fit(X, y, X_err=exact_first)
    assert half.can_refit(X, y, exact_first) and not half.can_refit(X, y, X_err)
    with pytest.raises(InputError, match="'c' is not one of"):
        classifier.refit(X[:2], np.array(["c", "a"]), X_err[:2])


class Correlated(Picky):
    """Takes covariances of the errors too."""

    def fit(self, X, y, X_err=None, X_cov=None):
        self.fitted_ = X_cov
        return super().fit(X, y, X_err)

    def predict_proba(self, X, X_err=None, X_cov=None):
        probabilities = super().predict_proba(X)
        self.seen_ = X_cov
        return probabilities


def test_measurements_are_taken_whole(sources):
    """Names, errors and covariances go with the sources; modAL's strategies are given arrays."""
    X, X_err, y = sources
    X_cov = X_err[:, :, None] * X_err[:, None, :] * np.array([[1.0, 0.9], [0.9, 1.0]])
    table = Measurements(X, X_err, ("slope", "flux"), ("", "Jy"), covariance=X_cov)
    learner = Learner(Correlated(), X_training=table[:20], y_training=y[:20])
    indices, rows = learner.query(table[20:], n_instances=2)
    assert isinstance(rows, Measurements) and (X[20:][indices] == rows.X).all()
    assert (learner.estimator.seen_ == X_cov[20:]).all()
    learner.teach(rows, y[20:][indices])
    assert (learner.estimator.fitted_ == np.concatenate([X_cov[:20], X_cov[20:][indices]])).all()
    learner.teach(X[50:52], y[50:52], X_cov=X_cov[50:52])  # arrays of the same features
    assert learner.sources.names == ("slope", "flux") and len(learner.sources) == 24
    assert (learner.X_err_training[-2:] == X_err[50:52]).all()
    with pytest.raises(InputError, match="feature 'flux', which the sources lack"):
        learner.teach(Measurements(X[:1], 0.1, ("slope", "mass")), y[:1])
    with pytest.raises(InputError, match="first sources have error bars"):
        learner.teach(X[:1], y[:1])
    plain = Learner(LogisticRegression(), X_training=table[:20], y_training=y[:20])
    assert (
        plain.query(table[20:])[0]
        == Learner(LogisticRegression(), X_training=X[:20], y_training=y[:20]).query(X[20:])[0]
    ).all()  # what knows no errors is given none


def test_packed_sources_may_miss_values(sources):
    X, X_err, y = (values.copy() for values in sources)
    X[3, 1], X_err[3, 1] = np.nan, np.inf
    packed = pack(X, X_err)
    learner = Learner(GPClassifier(packed=True, **FAST), X_training=packed[:30], y_training=y[:30])
    kernel = learner.estimator.model_.gp.kernels[0]
    learner.teach(packed[30:32], y[30:32])
    assert learner.estimator.model_.gp.kernels[0] is kernel  # a refit
    assert len(learner.sources) == 32


def test_features_of_frames_and_measurements_are_found_by_name(sources):
    X, X_err, y = sources
    frame, errors = (pd.DataFrame(values, columns=["a", "b"]) for values in (X, X_err))
    turned = frame[["b", "a"]], errors[["b", "a"]]
    one, other = (Learner(Picky(), margin_sampling, frame[:20], y[:20], errors[:20]) for _ in "12")
    rows, _ = one.query(frame[20:], n_instances=3, X_err=errors[20:])
    found, given = other.query(turned[0][20:], n_instances=3, X_err=turned[1][20:])
    np.testing.assert_array_equal(rows, found)
    np.testing.assert_array_equal(given, turned[0][20:].to_numpy()[found])  # as they came
    one.teach(frame[20:25], y[20:25], X_err=errors[20:25])
    other.teach(turned[0][20:25], y[20:25], X_err=turned[1][20:25])
    np.testing.assert_array_equal(one.X_training, other.X_training)
    np.testing.assert_array_equal(one.X_err_training, other.X_err_training)
    exact = Learner(LogisticRegression(), X_training=frame[:20], y_training=y[:20])
    exact.teach(turned[0][20:25], y[20:25])
    np.testing.assert_array_equal(exact.X_training, X[:25])
    table = Measurements(X, X_err, ("a", "b"), ("s", ""))
    ours = Learner(Picky(), margin_sampling, table[:20], y[:20])
    minutes = Measurements(X / [60, 1], X_err / [60, 1], ("a", "b"), ("min", "")).select(["b", "a"])
    np.testing.assert_array_equal(ours.query(minutes[20:], n_instances=3)[0], rows)
    ours.teach(minutes[20:25], y[20:25])
    np.testing.assert_allclose(ours.X_training, X[:25])
    with pytest.raises(InputError, match="feature 'a', which the sources lack"):
        one.teach(frame[:2].rename(columns={"a": "c"}), y[:2], X_err=0.1)


def test_labels_of_another_kind_or_none_are_refused(sources):
    X, _, y = sources
    numbers = (y == y[0]).astype(int)
    learner = Learner(LogisticRegression(), X_training=X[:20], y_training=numbers[:20])
    with pytest.raises(InputError, match="all as text or all as numbers"):
        learner.teach(X[20:22], ["star", "star"])
    with pytest.raises(InputError, match="y contains NaN: row 1"):
        learner.teach(X[20:22], [1, None])
    assert len(learner.y_training) == 20


def test_rows_of_a_data_frame_keep_their_names(sources):
    X, _, y = sources
    frame = pd.DataFrame({"a": X[:, 0], "b": 100.0 * X[:, 1] + 1000.0})
    learner = Learner(LogisticRegression(), X_training=frame[:40], y_training=y[:40])
    pool = frame[40:][["b", "a"]]
    indices, rows = learner.query(pool, n_instances=3)
    learner.teach(rows, y[40:][indices])
    taught = np.asarray(learner.X_training)[-3:]
    np.testing.assert_array_equal(taught, frame.to_numpy()[40:][indices])


@pytest.mark.parametrize("answer", [np.array([True] * 3 + [False] * 17), np.array([1.9, 2.7])])
def test_what_are_no_row_numbers_is_refused(sources, answer):
    X, _, y = sources
    learner = Learner(
        LogisticRegression(), lambda *_, **__: answer, X_training=X[:40], y_training=y[:40]
    )
    with pytest.raises(InputError, match="in place of row numbers"):
        learner.query(X[40:])


def test_a_frame_is_learned_from_by_every_route():
    """Its rows are drawn, batched and joined by their numbers."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(40, 2)), columns=["a", "b"], index=np.arange(100, 140))
    y = np.where(frame["a"] > 0, "x", "y")
    learner = Learner(LogisticRegression(), uncertainty_batch_sampling)
    learner.fit(frame[:30], y[:30], bootstrap=True)
    rows, chosen = learner.query(frame[30:], n_instances=2)
    assert list(chosen.columns) == ["a", "b"] and len(rows) == 2
    learner.teach(chosen, y[30:][rows])
    assert len(learner.X_training) == 32
