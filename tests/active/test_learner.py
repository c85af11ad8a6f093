"""The learner against modAL's own interface, its faults, and a cold fit."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from known_truth import draw
from modAL.models import ActiveLearner
from modAL.uncertainty import entropy_sampling, margin_sampling, uncertainty_sampling
from sklearn.linear_model import LogisticRegression

from gpal import GPClassifier
from gpal.active.learner import Learner
from gpal.active.warm_start import can_refit, refit
from gpal.errors import InputError
from gpal.measurements import pack

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


def test_warm_start_meets_the_cold_fit(fitted, monkeypatch):
    """The same hyper-parameters from the engine's initial sites: there is one fixed point."""
    from gpal.inference import sites

    classifier, X, X_err, y = fitted
    new, new_err, _, new_y = draw(10, 0.3, seed=9)
    every = np.vstack([X, new]), np.append(y, new_y), np.vstack([X_err, new_err])
    before = classifier.predict_proba(X, X_err=X_err)
    warm = refit(classifier, *every)
    assert (classifier.predict_proba(X, X_err=X_err) == before).all()
    from_nothing = {"start": None, "final_sweeps": 60, "tolerance": 1e-9}
    original = sites.fit_sites
    monkeypatch.setattr(
        sites, "fit_sites", lambda *data, **options: original(*data, **options | from_nothing)
    )
    cold = refit(classifier, *every)
    P, Q = warm.predict_proba(X, X_err=X_err), cold.predict_proba(X, X_err=X_err)
    assert np.abs(P - Q).max() < 0.01 < np.abs(P - before).max()


def test_hyper_parameters_are_learned_again_every_k_labels(sources):
    X, X_err, y = sources
    learner = Learner(
        GPClassifier(**FAST), entropy_sampling, X[:30], y[:30], X_err[:30], relearn_every=2
    )
    kernels = [learner.estimator.model_.gp.kernels[0]]
    for i in range(30, 34):
        learner.teach(X[i : i + 1], y[i : i + 1], X_err=X_err[i : i + 1])
        kernels.append(learner.estimator.model_.gp.kernels[0])
    same = [a is b for a, b in itertools.pairwise(kernels)]
    assert same == [True, False, True, False]


def test_full_gp_is_refitted_too():
    X, _, _, y = draw(60, 0.0, seed=2)
    classifier = GPClassifier(max_rounds=1).fit(X[:50], y[:50])
    assert classifier.settings_["gp"] == "full"
    warm = refit(classifier, X, y)
    kernel = classifier.model_.gp.kernels[0]
    cold = GPClassifier(kernel=kernel, max_rounds=0).fit(X, y)
    before = np.abs(classifier.predict_proba(X) - cold.predict_proba(X)).mean()
    assert np.abs(warm.predict_proba(X) - cold.predict_proba(X)).mean() < 0.5 * before


def test_what_a_warm_start_cannot_do(fitted):
    classifier, X, X_err, y = fitted
    assert can_refit(classifier, y, X_err)
    assert not can_refit(classifier, np.append(y, "c"), X_err)
    assert not can_refit(GPClassifier(), y, X_err)
    assert not can_refit(LogisticRegression().fit(X, y), y, None)
    exact_first = X_err.copy()
    exact_first[:, 1] = 0
    half = GPClassifier(**FAST).fit(X, y, X_err=exact_first)
    assert can_refit(half, y, exact_first) and not can_refit(half, y, X_err)
    with pytest.raises(InputError, match="'c' is not one of"):
        refit(classifier, X[:2], np.array(["c", "a"]), X_err[:2])
