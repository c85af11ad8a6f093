"""Strategies are found by name, whoever wrote them, and then work wherever gpal's own do."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from known_truth import draw
from sklearn.linear_model import LogisticRegression
from typer.testing import CliRunner

from gpal.active import scores
from gpal.active.campaign import Campaign
from gpal.active.loop import LearningLoop
from gpal.active.posterior import score_sources
from gpal.active.simulate import Problem, simulate
from gpal.active.strategies import STRATEGIES, Strategy, as_strategy
from gpal.errors import InputError

P = np.array([[0.5, 0.3, 0.2], [1.0, 0.0, 0.0], [1 / 3, 1 / 3, 1 / 3]])


class Timid(Strategy):
    """The surest predictions first, the contrary of `least_confidence`."""

    name = "timid"
    summary = "How sure the prediction is"

    def score(self, p):
        return p.max(axis=-1)


class Spread(Strategy):
    """Of draws."""

    name = "spread"
    summary = "How far apart the draws are"
    needs_draws = True

    def score(self, p):
        return p.std(axis=(1, 2)).sum(axis=-1)


@pytest.fixture
def strangers():
    """Registered for one test."""
    for stranger in (Timid, Spread):
        STRATEGIES.register(stranger)
    yield
    for stranger in (Timid, Spread):
        del STRATEGIES._classes[stranger.name]


def test_gpals_own_have_their_facts():
    assert list(STRATEGIES) == [
        *("bald", "entropy", "least_confidence", "margin", "random", "variation_ratio")
    ]
    for name, strategy in STRATEGIES.items():
        assert strategy.name == name and strategy.summary
        assert strategy.source or not strategy.needs_model
    for name in ("entropy", "margin", "least_confidence"):
        assert (STRATEGIES[name]().score(P) == getattr(scores, name)(P)).all()
    draws = np.random.default_rng(0).dirichlet(np.ones(3), size=(5, 4, 6))
    for name in ("bald", "variation_ratio"):
        assert STRATEGIES[name].needs_draws
        assert (STRATEGIES[name]().score(draws) == getattr(scores, name)(draws)).all()


def test_the_control_asks_no_model_and_draws_by_the_seed():
    random = as_strategy("random")
    score = score_sources(None, np.zeros((50, 2)), score=random)  # no classifier at all
    assert len(set(score)) == 50 and (score == random.score(np.empty((50, 0)))).all()
    score[:10] = np.nan
    first, again, other = (random.choose(score, np.zeros((50, 2)), 8, s) for s in (1, 1, 2))
    assert (first == again).all() and set(first) != set(other) and first.min() >= 10
    by_score = random.choose(score, np.zeros((50, 2)), 8)
    assert (by_score == np.argsort(-np.where(np.isnan(score), -1, score))[:8]).all()


def test_by_name_by_class_or_itself(strangers):
    assert isinstance(as_strategy("timid"), Timid) and isinstance(as_strategy(Timid), Timid)
    mine = Timid()
    assert as_strategy(mine) is mine
    for wrong in ("luck", None, 3, LogisticRegression):
        with pytest.raises(InputError, match=r"no strategy .*there are: bald, entropy"):
            as_strategy(wrong)


def test_scores_of_another_length_are_refused():
    class Short(Strategy):
        name, summary = "short", "One score too few"

        def score(self, p):
            return p[1:, 0]

    X, _, _, y = draw(30, 0.0, seed=1)
    with pytest.raises(InputError, match=r"'short' gave scores of shape \(29,\) for 30 sources"):
        score_sources(LogisticRegression().fit(X, y), X, score=Short())


@pytest.mark.usefixtures("strangers")
class TestStrangers:
    def test_in_the_loop(self):
        X, _, _, y = draw(60, 0.0, seed=4)
        loop = LearningLoop(
            LogisticRegression(), X, labels=dict(enumerate(y[:10])), strategy="timid"
        )
        sure = loop.classifier.predict_proba(X[10:]).max(axis=1)
        assert loop.ask(1) == [10 + np.argmax(sure)]
        assert np.nanmax(loop.scores()) == sure.max()
        with pytest.raises(InputError, match="gives no scores"):
            LearningLoop(
                LogisticRegression(), X, labels=dict(enumerate(y[:10])), strategy=lambda *_: [0]
            ).scores()

    def test_draws_of_a_posterior(self, fitted):
        classifier, X, X_err, _ = fitted
        value = score_sources(classifier, X, X_err, score="spread")
        parts = scores.entropy_split(np.concatenate(list(classifier.probability_draws(X, X_err))))
        assert value.shape == (150,)
        assert np.corrcoef(value, parts.model + parts.measurement)[0, 1] > 0.8

    def test_in_a_study(self, tmp_path):
        X, _, _, y = draw(200, 0.0, seed=5)

        def problem(repeat):
            order = np.random.default_rng(repeat).permutation(200)
            return Problem(X, y, order[:20], order[20:120], order[120:])

        study = simulate(
            problem, LogisticRegression(), tmp_path, strategies=("timid", "random"),
            repeats=3, queries=10, progress=False,
        )  # fmt: skip
        assert set(study.curves) == {"timid", "random"}
        assert "against_random" in study.summary()["timid"]

    def test_in_a_campaign(self, small_catalog, noisy_logistic, tmp_path):
        with Campaign.start(
            small_catalog, tmp_path / "c", classifier=noisy_logistic, strategy="timid"
        ) as campaign:
            scored = campaign.refit()
            targets = campaign.ask(28)
            surest = [max(target.probabilities.values()) for target in targets]
            assert surest == pytest.approx([target.score for target in targets], abs=1e-6)
            assert {e.strategy for e in campaign.store.history() if e.action == "ask"} == {"timid"}
            assert np.nanargmax(scored.score) == targets[0].row

    def test_on_the_command_line(self, small_catalog, noisy_logistic, tmp_path):
        from gpal.cli import app

        Campaign.start(
            small_catalog, tmp_path / "c", classifier=noisy_logistic, strategy="timid"
        ).close()
        result = CliRunner().invoke(app, ["learn", "status", "-s", str(tmp_path / "c")])
        assert "strategy timid" in result.stdout


PLUGIN = """
from gpal.active.strategies import Strategy

class Timid(Strategy):
    name = "timid"
    summary = "How sure the prediction is"

    def score(self, p):
        return p.max(axis=-1)
"""
PROGRAM = """
import sys
from gpal.cli import app
from typer.testing import CliRunner
for line in sys.stdin:
    result = CliRunner().invoke(app, line.split())
    print(result.output)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
"""


@pytest.mark.slow
def test_another_package_brings_its_own(small_catalog, tmp_path):
    """By an entry point: named in the help, started with, asked by; no line of gpal is touched."""
    (tmp_path / "stranger.py").write_text(PLUGIN)
    about = tmp_path / "stranger-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: stranger\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[gpal.strategies]\ntimid = stranger:Timid\n")
    small_catalog.table.write(tmp_path / "small.ecsv")
    (tmp_path / "small.toml").write_text(
        'id = "Name"\nclass = "Type"\nra = "RA"\ndec = "Dec"\n'
        'classes = { default = ["bll", "psr"], candidates = [""] }\n'
        '[features]\nindex = { column = "Index", error = "e_Index" }\n'
    )
    commands = (
        "learn start --help",
        f"learn start {tmp_path}/small.ecsv --schema {tmp_path}/small.toml --session {tmp_path}/c"
        " --strategy timid --n-inducing 5",
        f"learn next --session {tmp_path}/c -n 2",
        f"learn start {tmp_path}/small.ecsv --schema {tmp_path}/small.toml --session {tmp_path}/d"
        " --strategy luck",
    )
    path = os.pathsep.join([str(tmp_path), str(Path(__file__).parents[2])])
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        input="\n".join(commands), capture_output=True, text=True, timeout=300,
        env={**os.environ, "PYTHONPATH": path, "COLUMNS": "200"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "random, timid, variation_ratio" in done.stdout
    assert "60 labelled sources, 20 to choose from" in done.stdout
    assert "score: timid" in done.stdout
    assert "no strategy 'luck'; there are: bald" in done.stdout
