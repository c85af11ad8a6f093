"""The loop on an immutable table, and the retrospective study."""

from __future__ import annotations

import json
from copy import copy
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
from known_truth import draw
from modAL.uncertainty import margin_sampling
from sklearn.linear_model import LogisticRegression

from gpal import plot
from gpal.active.loop import LearningLoop
from gpal.active.observing import Observing
from gpal.active.simulate import Problem, catalog_problem, simulate, waveform_problem
from gpal.active.strategies import STRATEGIES, Strategy
from gpal.active.study import Study, labels_to_reach
from gpal.active.waveform import waveform
from gpal.errors import InputError

X, X_err, _, y = draw(80, 0.2, seed=4)
START = dict(enumerate(y[:10]))


class TakesErrors(LogisticRegression):
    """Fails unless error bars come with every source, row by row."""

    def _check(self, X, X_err):
        row = np.flatnonzero((X[:, None] == ALL[0]).all(axis=2).any(axis=0))
        assert X_err.shape == X.shape and set(X_err[:, 0]) <= set(ALL[1][row, 0])

    def fit(self, X, y, X_err=None):
        if (y == "bad").any():
            raise RuntimeError("cannot fit")
        self._check(X, X_err)
        return super().fit(X, y)

    def predict_proba(self, X, X_err=None):
        self._check(X, X_err)
        return super().predict_proba(X)


class HasDraws(TakesErrors):
    """Probabilities a little below and above its own."""

    def probability_draws(self, sources, *, nodes, samples):
        p = self.predict_proba(sources.X, sources.X_err)
        shift = np.linspace(0, 0.4, samples)[:, None]
        yield ((1 - shift) * p[:, None, None, :] + shift / p.shape[1]).repeat(2, axis=1)


ALL = (X, X_err * np.linspace(1, 2, 80)[:, None])


@pytest.mark.parametrize("strategy", [*STRATEGIES, margin_sampling])
def test_every_strategy_asks_for_new_sources_with_their_errors(strategy):
    loop = LearningLoop(HasDraws(), *ALL, labels=START, strategy=strategy)
    for number in (1, 3):
        rows = loop.ask(number)
        assert len(set(rows)) == number and not set(rows) & set(loop.labels)
        loop.tell(rows, y[rows])
    assert len(loop.labels) == 14 and len(loop.pool) == 66
    if strategy != margin_sampling:
        assert np.isnan(loop.scores()[loop.labelled]).all()
        assert np.isfinite(loop.scores()[loop.pool]).all()


@pytest.mark.parametrize("strategy", ["bald", "variation_ratio"])
def test_without_draws_there_is_no_disagreement_to_ask_by(strategy):
    loop = LearningLoop(TakesErrors(), *ALL, labels=START, strategy=strategy)
    with pytest.raises(InputError, match="TakesErrors has none: take a GPClassifier"):
        loop.ask()


def test_what_lies_under_a_mask_is_no_label_and_no_row():
    loop = LearningLoop(TakesErrors(), *ALL, labels=START)
    with pytest.raises(InputError, match="row 1 of labels is masked"):
        loop.tell([30, 31], np.ma.array(["bll", "N/A"], mask=[False, True]))
    with pytest.raises(InputError, match="row 1 of rows is masked"):
        loop.tell(np.ma.array([30, 31], mask=[False, True]), y[30:32])
    assert loop.labels == START
    hidden = np.ma.array(y[:10], mask=[False] * 9 + [True])
    with pytest.raises(InputError, match="the label of row 9 is missing"):
        LearningLoop(TakesErrors(), *ALL, labels={i: hidden[i] for i in range(10)})


@pytest.mark.parametrize("strategy", ["entropy", margin_sampling])
def test_more_cannot_be_asked_for_than_there_are(strategy):
    loop = LearningLoop(TakesErrors(), *ALL, labels=START, strategy=strategy)
    with pytest.raises(InputError, match="71 sources asked for, 70 left"):
        loop.ask(71)


def test_every_seed_draws():
    last = LearningLoop(TakesErrors(), *ALL, labels=START, random_state=2**32 - 1)
    assert len(last.ask(3)) == 3
    with pytest.raises(InputError, match="the seed is a whole number from 0"):
        LearningLoop(TakesErrors(), *ALL, labels=START, random_state=-30)


def test_the_table_cannot_be_changed():
    source = X.copy()
    loop = LearningLoop(LogisticRegression(), source, labels=START)
    source[:] = 0
    assert (loop.X == X).all()
    with pytest.raises(ValueError, match="read-only"):
        loop.X[0] = 0


def test_a_tell_that_fails_changes_nothing():
    loop = LearningLoop(TakesErrors(), *ALL, labels=START)
    before = loop.ask(3)
    for rows, labels in (([20], ["bad"]), ([0], ["a"]), ([20, 20], ["a", "a"]), ([99], ["a"])):
        with pytest.raises((InputError, RuntimeError)):
            loop.tell(rows, labels)
        assert loop.labels == START and (loop.ask(3) == before).all()


@pytest.mark.parametrize("missing", [None, np.nan])
def test_a_missing_label_is_no_class(missing):
    loop = LearningLoop(LogisticRegression(), X, labels=START)
    with pytest.raises(InputError, match="label of row 21 is missing"):
        loop.tell([20, 21], ["a", missing])
    with pytest.raises(InputError, match="label of row 21 is missing"):
        LearningLoop(LogisticRegression(), X, labels={**START, 21: missing})


@pytest.mark.parametrize("row", [14.7, "14", True, 14.0, None])
def test_what_is_no_row_number_labels_no_row(row):
    loop = LearningLoop(LogisticRegression(), X, labels=START)
    with pytest.raises(InputError, match="is no row number of the table: give whole numbers"):
        loop.tell([row], [y[14]])
    assert 14 not in loop.labels and 1 in loop.labels
    with pytest.raises(InputError, match="is no row number"):
        LearningLoop(LogisticRegression(), X, labels={row: y[0], 1: y[1]})


def test_labels_are_of_one_kind_and_some():
    with pytest.raises(InputError, match="labels is empty: give the row numbers"):
        LearningLoop(LogisticRegression(), X, labels={})
    text = {row: f"class {label}" for row, label in START.items()}
    loop = LearningLoop(LogisticRegression(), X, labels=text)
    with pytest.raises(InputError, match="the label of row 14 is 1 and that of row 0 'class"):
        loop.tell([14], [1])
    assert set(loop.classifier.classes_) == set(text.values())


@pytest.mark.parametrize("number", [0, -1, 2.5, "2"])
def test_how_many_to_ask_for_is_a_whole_number(number):
    loop = LearningLoop(LogisticRegression(), X, labels=START)
    with pytest.raises(InputError, match="sources to ask for must be a whole number from 1"):
        loop.ask(number)


def test_labels_told_without_a_fit_are_learned_later():
    at_once, later = (LearningLoop(LogisticRegression(), X, labels=START) for _ in range(2))
    at_once.tell([20, 21], y[20:22])
    later.tell([20], y[20:21], fit=False)
    later.tell([21], y[21:22], fit=False)
    assert len(later.learner.y_training) == 10
    later.learn()
    assert np.allclose(later.classifier.coef_, at_once.classifier.coef_)


def test_limits_keep_sources_off():
    dec = np.linspace(-90, 90, 80)
    observing = Observing(time=np.full(80, 2.0), limits={"dec": (0.0, None)})
    loop = LearningLoop(
        LogisticRegression(), X, labels=START, observing=observing, quantities={"dec": dec}
    )
    assert (dec[loop.ask(5)] >= 0).all()
    free = LearningLoop(LogisticRegression(), X, labels=START)
    seen = np.isfinite(loop.scores())
    assert np.allclose(loop.scores()[seen] * 2, free.scores()[seen])


def test_waveform_means_and_bayes_error():
    X, y = waveform(60000, 0)
    m = np.arange(1, 22)
    expected = 0.5 * (np.maximum(6 - abs(m - 11), 0) + np.maximum(6 - abs(m - 15), 0))
    assert np.allclose(X[y == 0].mean(0), expected, atol=0.05)
    assert np.allclose(np.bincount(y) / len(y), 1 / 3, atol=0.01)
    # The Bayes rule with u on a grid; Breiman et al. give an error of about 0.14.
    triangles = np.stack([np.maximum(6.0 - abs(m - c), 0) for c in (11, 15, 7)])
    u = np.linspace(0, 1, 41)[:, None]
    likelihood = [
        np.exp(
            -0.5 * ((X[:3000, None] - u * triangles[a] - (1 - u) * triangles[b]) ** 2).sum(2)
        ).sum(1)
        for a, b in ((0, 1), (0, 2), (1, 2))
    ]
    assert np.mean(np.argmax(likelihood, 0) != y[:3000]) == pytest.approx(0.14, abs=0.02)


def test_problems_are_divided_without_overlap(small_catalog):
    for problem in (waveform_problem(1, noise=0.25), catalog_problem(small_catalog, 1, initial=8)):
        parts = [problem.initial, problem.pool, problem.test]
        assert len(set(np.concatenate(parts))) == sum(map(len, parts)) == len(problem.y)
        assert set(problem.y[problem.initial]) == set(problem.y)
    assert (waveform_problem(1).sources == waveform_problem(1).sources).all()
    assert (waveform_problem(1).y != waveform_problem(2).y).any()
    with pytest.raises(InputError, match="1 initial labels"):
        catalog_problem(small_catalog, 0, initial=1)


def boundary_problem(repeat):
    """A threshold in one dimension: entropy finds it by bisection, random does not."""
    x = np.random.default_rng(repeat).uniform(-1, 1, 400)
    y = (x > 0.3).astype(int)
    order = np.array([x.argmin(), x.argmax()])
    rest = np.setdiff1d(np.arange(400), order)
    return Problem(x[:, None], y, order, rest[:198], rest[198:])


STUDY = {"strategies": ("entropy", "random"), "repeats": 4, "queries": 12, "test_every": 3}


def test_simulation_shows_what_bisection_gains(tmp_path):
    classifier = LogisticRegression(C=1e3)
    study = simulate(boundary_problem, classifier, tmp_path / "s", **STUDY, progress=False)
    assert study.labels["entropy"].tolist() == [2, 5, 8, 11, 14]
    result = json.loads((tmp_path / "s" / "metrics.json").read_text())
    against = result["entropy"]["against_random"]
    assert against["error"]["mean"] < 0 and against["error_area"]["mean"] < 0
    assert against["labels_saved"] is None or against["labels_saved"] >= 0
    assert against["factor"] > 1
    final = study.curves["entropy"]["error"][:, -1] - study.curves["random"]["error"][:, -1]
    assert against["error"]["mean"] == pytest.approx(final.mean())
    for one, other in zip(plot.learning_curves(study), plot.learning_curves(tmp_path / "s")):
        for line, again in zip(one.lines, other.lines, strict=True):
            np.testing.assert_allclose(line.get_xydata(), again.get_xydata())
    assert {p.name for p in (tmp_path / "s").iterdir()} == {
        "runs", "study.json", "curves.csv", "metrics.json", "learning_curve.png",
    }  # fmt: skip


class SaysWhenItLearns(LogisticRegression):
    """Learns at `fit` and can be refitted in between; writes down how many labels it learned of."""

    learned: ClassVar[list[int]] = []

    def fit(self, X, y):
        self.learned.append(len(y))
        return super().fit(X, y)

    def can_refit(self, X, y):
        return True

    def refit(self, X, y):
        return LogisticRegression.fit(copy(self), X, y)


def test_the_control_learns_at_the_labels_at_which_the_others_do(tmp_path):
    options = {"repeats": 1, "queries": 12, "test_every": 3, "relearn_every": 4}
    for strategy in ("entropy", "random"):
        SaysWhenItLearns.learned.clear()
        simulate(
            *(boundary_problem, SaysWhenItLearns(), tmp_path / strategy),
            **{**options, "strategies": (strategy,)},
            progress=False,
        )
        assert SaysWhenItLearns.learned == [2, 6, 10, 14], strategy


def test_a_stopped_study_goes_on(tmp_path):
    classifier = LogisticRegression(C=1e3)
    first = simulate(boundary_problem, classifier, tmp_path, **STUDY, progress=False)
    kept = tmp_path / "runs" / "entropy-12-002.json"
    changed = tmp_path / "runs" / "entropy-12-003.json"
    stamp = kept.stat().st_mtime_ns
    changed.unlink()
    again = simulate(boundary_problem, classifier, tmp_path, **STUDY, progress=False)
    assert kept.stat().st_mtime_ns == stamp and changed.exists()
    assert (first.curves["entropy"]["error"] == again.curves["entropy"]["error"]).all()
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"cannot write .*file/study"):
        simulate(boundary_problem, classifier, tmp_path / "file" / "study", **STUDY)
    with pytest.raises(InputError, match="other settings"):
        simulate(boundary_problem, LogisticRegression(C=2), tmp_path, **STUDY, progress=False)


@pytest.mark.slow
def test_processes_give_what_one_process_gives(tmp_path):
    classifier, options = LogisticRegression(C=1e3), {**STUDY, "repeats": 2}
    one, two = (
        simulate(boundary_problem, classifier, tmp_path / f"{n}", jobs=n, progress=False, **options)
        for n in (1, 2)
    )
    for strategy in STUDY["strategies"]:
        assert (one.curves[strategy]["error"] == two.curves[strategy]["error"]).all()


@dataclass(frozen=True)
class Signed(Strategy):
    sign: float = 1.0
    name = "signed"

    def score(self, p):
        return self.sign * p[:, 0]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {"strategies": (Signed(1.0), Signed(-1.0), "random")},
            "two strategies are called 'signed'",
        ),
        ({"queries": {"entropy": 5}}, "no number for strategy 'random'"),
        ({"queries": -3}, "queries of 'entropy' must be a whole number from 1"),
        (
            {"queries": {"entropy": 7, "random": 20}, "test_every": 10},
            "'entropy' with 7 queries and 'random' with 20 are never tested at the same number",
        ),
        (
            {"queries": {"entropy": 3, "random": 20}, "test_every": 1, "batch": 7},
            "never tested at the same number of labels; give a smaller batch or test_every",
        ),
        (
            {"queries": {"entropy": 12, "random": 199}, "test_every": 1},
            "199 queries from a pool of 198; ask for fewer",
        ),
    ],
)
def test_a_study_that_cannot_be_made_is_refused_before_it_runs(tmp_path, options, said):
    with pytest.raises(InputError, match=said):
        simulate(boundary_problem, LogisticRegression(), tmp_path / "s", **STUDY | options)
    assert not (tmp_path / "s").exists()


def test_a_damaged_run_is_named(tmp_path):
    options = {**STUDY, "repeats": 1, "progress": False}
    simulate(boundary_problem, LogisticRegression(), tmp_path, **options)
    (tmp_path / "runs" / "entropy-12-000.json").write_text('{"strategy": "ent')
    with pytest.raises(InputError, match=r"entropy-12-000\.json' is damaged; delete it"):
        simulate(boundary_problem, LogisticRegression(), tmp_path, **options)


def test_an_area_is_a_mean_over_labels_and_not_over_tests():
    curve = np.array([[0.3, 0.2, 0.1]])
    study = Study({"entropy": np.array([20, 30, 31])}, {"entropy": {"error": curve, "nll": curve}})
    mean = (10 * 0.3 + 5.5 * 0.2 + 1 * 0.1) / 16.5
    assert study.summary()["entropy"]["error_area"]["mean"] == pytest.approx(mean)


def test_labels_to_reach():
    labels, curve = np.array([10, 20, 30]), np.array([0.3, 0.2, 0.1])
    assert labels_to_reach(labels, curve, 0.15) == 25
    assert labels_to_reach(labels, curve, 0.5) == 10
    assert labels_to_reach(labels, curve, 0.05) is None
    assert labels_to_reach(labels, np.array([0.3, 0.1, 0.2]), 0.15) == 20  # pooled to 0.15, 0.15


def test_labels_saved_on_known_curves():
    labels = np.arange(10, 110, 10)
    curve = {"error": np.tile(5.0 / labels, (2, 1)), "nll": np.ones((2, 10))}
    slow = {"error": np.tile(10.0 / labels, (2, 1)), "nll": np.ones((2, 10))}
    summary = Study(
        {"entropy": labels, "random": labels}, {"entropy": curve, "random": slow}
    ).summary()["entropy"]["against_random"]
    assert summary["labels_for_final_error_of_random"] == 50
    assert summary["factor"] == 2.0
    assert summary["factor_interval"] == [2.0, 2.0]  # the repeats are alike
    assert summary["labels_saved"] is None  # random never gets there


def other_problem(repeat):
    """The same sources with other labels."""
    problem = boundary_problem(repeat)
    return replace(problem, y=problem.y[::-1])


def test_a_folder_is_of_one_problem_and_of_one_strategy_of_a_name(tmp_path):
    classifier, options = LogisticRegression(C=1e3), {**STUDY, "repeats": 1, "progress": False}
    simulate(boundary_problem, classifier, tmp_path, **options)
    with pytest.raises(InputError, match=r"other settings \(problem_digest"):
        simulate(other_problem, classifier, tmp_path, **options)
    options["strategies"] = ("random", Signed(1.0))
    simulate(boundary_problem, classifier, tmp_path, **options)
    simulate(boundary_problem, classifier, tmp_path, **options)  # there already
    options["strategies"] = ("random", Signed(-1.0))
    with pytest.raises(InputError, match="strategy 'signed' with other parameters"):
        simulate(boundary_problem, classifier, tmp_path, **options)
    before = json.loads((tmp_path / "study.json").read_text())
    del before["problem_digest"]  # as gpal wrote it until November 2026
    (tmp_path / "study.json").write_text(json.dumps(before))
    study = simulate(
        boundary_problem, classifier, tmp_path, **STUDY | {"repeats": 1}, progress=False
    )
    assert study.summary()["entropy"]["against_random"]["factor_interval"] == [None, None]


def test_a_strategy_that_is_random_has_a_factor_of_one_where_curves_end_level():
    labels = np.arange(60, 265, 5)
    falling = 0.1 + 0.2 * np.exp(-(labels - 60) / 30.0)
    rng = np.random.default_rng(0)
    for level in (falling, np.full(len(labels), 0.1)):
        error = level + 0.006 * rng.normal(size=(10, len(labels)))
        curve = {"error": error, "nll": error}
        curves = {"entropy": curve, "random": curve}
        summary = Study({"entropy": labels, "random": labels}, curves).summary()
        against = summary["entropy"]["against_random"]
        assert against["factor"] == 1.0 and against["factor_interval"] == [1.0, 1.0]
        assert against["labels_saved"] == 0
        needed = against["labels_random_needs_for_its_final_error"]
        assert needed == against["labels_for_final_error_of_random"]


def test_limits_for_a_strategy_that_heeds_none_are_refused():
    with pytest.raises(InputError, match="knows no observing times and limits"):
        LearningLoop(
            LogisticRegression(),
            np.arange(8.0)[:, None],
            labels={0: "a", 7: "b"},
            strategy=margin_sampling,
            observing=Observing(visible=np.ones(8, bool)),
        )
