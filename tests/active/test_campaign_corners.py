"""What a campaign does where a release has lost something, and where its control is random."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest

from gpal import GPClassifier
from gpal.active.campaign import Campaign
from gpal.active.campaign.answers import is_answer
from gpal.active.observing import Observing
from gpal.active.posterior import probability_draws, split_sources
from gpal.active.scores import entropy
from gpal.active.strategies.control import Random
from gpal.errors import InputError

MODEL = {"kernel": "rbf", "max_rounds": 0, "n_inducing": 15, "input_noise": "none"}


@pytest.fixture
def small(small_catalog):
    return small_catalog.with_classes(["bll", "psr"])


def start(catalog, folder, **options):
    settings = {"strategy": "random", "parameters": MODEL} | options
    return Campaign.start(catalog, folder, **settings)


def asked(campaign, **options):
    scored = campaign.refit()
    return [target.name for target in campaign.ranking(scored, 6, **options)]


def test_the_control_is_another_for_every_seed(small, tmp_path):
    lists = []
    for k, seed in enumerate((0, 1, 1)):
        settings = MODEL | {"random_state": seed}
        with start(small, tmp_path / str(k), parameters=settings) as campaign:
            lists.append(asked(campaign))
            assert lists[-1] == asked(campaign, diverse=True)
    assert lists[0] != lists[1] == lists[2]


def test_the_control_takes_sources_whatever_their_time(small, tmp_path):
    time = np.where(np.arange(len(small)) % 2, 1.0, 1000.0)
    time[:5] = np.nan  # which cannot be observed
    with start(small, tmp_path / "one") as campaign:
        free = asked(campaign)
        timed = asked(campaign, observing=Observing(time=time))
        names = campaign.table.names.tolist()
    costs = time[[names.index(name) for name in timed]]
    assert set(costs) == {1.0, 1000.0}
    assert [n for n in free if names.index(n) >= 5] == [n for n in timed if n in free]


def test_scores_of_the_control_differ_between_seeds():
    scores = [Random(seed).score(np.empty((40, 0))) for seed in (0, 1)]
    assert not np.array_equal(*scores)
    np.testing.assert_array_equal(scores[1], Random().seeded(1).score(np.empty((40, 0))))


def test_limits_of_right_ascension_go_through_0h():
    ra = np.array([2.22, 8.14, 12.0, 180.0, 349.0, 359.82, np.nan])
    near = [True, True, False, False, False, True, False]
    for limit in ((-10, 10), (350, 10), (350, 370)):
        seen = Observing(limits={"ra": limit}).observable(7, {"ra": ra})
        assert seen.tolist() == near
    plain = Observing(limits={"ra": (5, None)}).observable(7, {"ra": ra})
    assert plain.tolist() == [False, True, True, True, True, True, False]
    for all_of_it in ((-10, 400), (-180, 180), (10, 380)):
        assert Observing(limits={"ra": all_of_it}).observable(7, {"ra": ra}).sum() == 6
    with pytest.raises(InputError, match="give the lowest first"):
        Observing(limits={"dec": (20, 10)})


def without_errors(catalog, rows):
    measured = catalog.measurements
    X, X_err = measured.X.copy(), measured.X_err.copy()
    X[rows, 0], X_err[rows, 0] = np.nan, np.inf
    return replace(catalog, measurements=replace(measured, X=X, X_err=X_err))


def test_a_release_that_has_lost_its_errors(small, tmp_path):
    with start(small, tmp_path / "one") as campaign:
        name = campaign.table.measurements.names[0]
        with pytest.raises(InputError, match=f"'{name}' was measured for no source"):
            campaign.merge(without_errors(small, np.arange(90)))
        assert campaign.release == 1
        with pytest.warns(UserWarning, match=f"'{name}' was measured for 11% of the sources"):
            campaign.merge(without_errors(small, np.arange(80)))
        assert campaign.release == 2


def test_a_release_without_a_class_or_a_target(small, tmp_path):
    nameless = replace(small, labels=np.full(len(small), ""))
    with start(small, tmp_path / "one") as campaign:
        with pytest.warns(UserWarning, match="no source of bll, psr: of those the campaign's own"):
            found = campaign.merge(nameless)
        assert found["matched"] == len(small)
    words = "no source of unknown class to ask for"
    with start(small, tmp_path / "two") as campaign, pytest.warns(UserWarning, match=words):
        campaign.merge(small.labelled())


def test_a_class_within_a_group_that_a_release_lacks_is_told(small_catalog, tmp_path):
    grouped = small_catalog.with_classes({"agn": ["bll", "snr"], "psr": ["psr"]})
    other = replace(grouped, labels=np.where(grouped.labels == "snr", "remnant", grouped.labels))
    with start(grouped, tmp_path / "one") as campaign:
        words = "no source of snr: of that .*bll, psr, remnant"
        with pytest.warns(UserWarning, match=words):
            campaign.merge(other)


@pytest.mark.parametrize("text", ["a:0/b:0", "a:1e400/b:1", "a:1/c:1"])
def test_weights_that_say_nothing_are_no_answer(text):
    assert not is_answer(text, {"a", "b"})
    assert is_answer("a:0.5/b:1", {"a", "b"})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ('UPDATE setting SET value = \'{"bll": 3, "psr": ["psr"]}\' WHERE key = \'groups\'', "bll"),
        ("UPDATE setting SET value = '{\"foo\": 1}' WHERE key = 'parameters'", "another gpal.*foo"),
        (
            "INSERT INTO history (time, who, action, source, label)"
            " VALUES ('2026-01-01T00:00:00Z', '', 'label', 3, '')",
            "a label ''",
        ),
    ],
)
def test_a_database_edited_by_hand_is_one_line(small, tmp_path, change, words):
    with start(small, tmp_path / "one"):
        pass
    with closing(sqlite3.connect(tmp_path / "one" / "campaign.sqlite")) as connection:
        connection.execute(change)
        connection.commit()
    with pytest.raises(InputError, match=words), Campaign(tmp_path / "one") as campaign:
        campaign.refit(full=True)


@pytest.fixture(scope="module")
def heaps():
    """Two classes at ±1 with errors wider than the gap between them."""
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=300)
    x = np.where(y == 1, 1.0, -1.0)[:, None] + 0.3 * rng.normal(size=(300, 1))
    errors = np.full(x.shape, 1.5)
    return x + errors * rng.normal(size=x.shape), y, errors


@pytest.mark.parametrize("population", [1, "flat"])
def test_draws_of_first_order_noise_under_other_class_fractions(heaps, population):
    X, y, errors = heaps
    prior = {0: 0.95, 1: 0.05}
    settings = {"input_noise": "first_order", "population": population, "prior": prior}
    model = GPClassifier(n_inducing=20, max_rounds=6, **settings).fit(X, y, X_err=errors)
    new, noisy = np.array([[-1.0], [0.0], [1.0], [2.0]]), np.full((4, 1), 1.5)
    drawn = model.sample_proba(new, noisy, num_samples=1000)
    np.testing.assert_allclose(drawn.mean(axis=0), model.predict_proba(new, noisy), atol=0.006)


def test_draws_under_other_class_fractions_are_of_other_inputs(heaps):
    """Against the probabilities themselves, and those of Bayes' rule for the true densities."""
    X, y, errors = heaps
    model = GPClassifier(n_inducing=20, max_rounds=6, prior={0: 0.95, 1: 0.05})
    model.fit(X, y, X_err=errors)
    new, noisy = np.array([[-1.0], [0.0], [1.0], [2.0]]), np.full((4, 1), 1.5)
    likelihood = np.exp(-0.5 * (new - np.array([-1.0, 1.0])) ** 2 / (1.5**2 + 0.3**2))
    truth = likelihood * [0.95, 0.05]
    truth = truth[:, 1] / truth.sum(axis=1)
    P = model.predict_proba(new, noisy)
    np.testing.assert_allclose(P[:, 1], truth, atol=0.04)
    drawn = model.sample_proba(new, noisy, num_samples=500)
    np.testing.assert_allclose(drawn.mean(axis=0), P, atol=0.03)
    D = probability_draws(model, new, noisy, nodes=128)
    np.testing.assert_allclose(D.mean(axis=(1, 2)), P, atol=0.06)  # .27 to .72 by nodes alike
    split = split_sources(model, new, noisy)
    np.testing.assert_allclose(split.total, entropy(P), atol=0.25)
    spread = model.predict_proba_std(new, noisy)
    assert (spread[:, 1] < 0.5).all() and spread[0, 1] < spread[3, 1]
