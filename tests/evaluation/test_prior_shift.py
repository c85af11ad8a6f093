"""Class-prior shift against a direct maximisation, exact posteriors, and its guard."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.stats import norm

from gpal.errors import InputError
from gpal.evaluation.prior_shift import estimate_prior, estimate_prior_by_origin, reweight

TRAIN = np.array([0.6, 0.3, 0.1])
CENTRES = np.array([-1.5, 0.0, 2.0])


def posterior(x, fractions):
    """Exact p(c | x) of a mixture of three normals."""
    joint = norm.pdf(x[:, None], CENTRES) * fractions
    return joint / joint.sum(axis=1, keepdims=True)


def targets(fractions, n, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(CENTRES[rng.choice(3, n, p=fractions)], 1.0)


def test_reweight_is_bayes_rule():
    x, other = np.linspace(-4, 4, 50), np.array([0.2, 0.2, 0.6])
    np.testing.assert_allclose(reweight(posterior(x, TRAIN), TRAIN, other), posterior(x, other))


@pytest.mark.parametrize("pseudo", [0.0, 20.0])
def test_estimate_maximises_the_penalised_likelihood(pseudo):
    P = posterior(targets([0.3, 0.3, 0.4], 400), TRAIN)
    centre = np.array([0.2, 0.5, 0.3])

    def loss(free):
        fractions = np.exp([*free, 0.0])
        fractions /= fractions.sum()
        evidence = np.log((P / TRAIN) @ fractions).sum()
        return -evidence - pseudo * centre @ np.log(fractions)

    free = minimize(loss, np.zeros(2), tol=1e-12).x
    best = np.exp([*free, 0.0])
    found = estimate_prior(P, TRAIN, centre=centre, pseudo_sources=pseudo, n_bootstrap=0)
    np.testing.assert_allclose(found.fractions, best / best.sum(), atol=1e-4)


def test_true_fractions_lie_in_the_interval():
    true = np.array([0.2, 0.3, 0.5])
    covered = []
    for seed in range(30):
        P = posterior(targets(true, 600, seed), TRAIN)
        found = estimate_prior(P, TRAIN, pseudo_sources=1, random_state=seed)
        covered.append((found.lower <= true) & (true <= found.upper))
        assert abs(found.fractions.sum() - 1) < 1e-9
    assert 0.85 < np.mean(covered) < 1


def test_same_fractions_change_nothing():
    P = posterior(targets(TRAIN, 4000), TRAIN)
    np.testing.assert_allclose(estimate_prior(P, TRAIN).fractions, TRAIN, atol=0.03)


def test_guard_against_collapse():
    P = posterior(targets([0.5, 0.5, 0.0], 300), TRAIN)
    P = P[P[:, 2] < 0.05]
    free = estimate_prior(P, TRAIN, pseudo_sources=0, n_bootstrap=0)
    assert free.fractions[2] < 1e-4 and free.collapsed[2]
    guarded = estimate_prior(P, TRAIN, pseudo_sources=10, n_bootstrap=0)
    assert guarded.collapsed.tolist() == [False, False, True]
    assert guarded.fractions[2] >= 10 * TRAIN[2] / (len(P) + 10)


def test_classes_that_are_excluded_leave_the_interval_finite():
    P = np.array([[1.0, 0.0]] * 30 + [[0.0, 1.0]])
    found = estimate_prior(P, np.array([0.5, 0.5]), pseudo_sources=0.0)
    np.testing.assert_allclose(found.fractions, [30 / 31, 1 / 31])
    assert found.lower[1] == 0.0  # a sample without the one
    assert 1 / 31 < found.upper[1] < 5 / 31
    np.testing.assert_allclose(found.upper[0], 1.0)


def test_every_origin_has_its_own_mix():
    mixes = {"bcu": np.array([0.7, 0.25, 0.05]), "unassociated": np.array([0.2, 0.2, 0.6])}
    x = np.concatenate([targets(mix, 1500, seed=k) for k, mix in enumerate(mixes.values())])
    origin = np.repeat(list(mixes), 1500)
    every, each = estimate_prior_by_origin(posterior(x, TRAIN), TRAIN, origin)
    for name, mix in mixes.items():
        np.testing.assert_allclose(each[name].fractions, mix, atol=0.06)
        assert each[name].n == 1500
    np.testing.assert_allclose(every.fractions, np.mean(list(mixes.values()), axis=0), atol=0.04)


def test_few_targets_of_an_origin_stay_near_all():
    x = np.concatenate([targets([0.2, 0.2, 0.6], 2000), [2.0]])
    origin = np.repeat(["many", "one"], [2000, 1])
    every, each = estimate_prior_by_origin(posterior(x, TRAIN), TRAIN, origin)
    np.testing.assert_allclose(each["one"].fractions, every.fractions, atol=0.05)


@pytest.mark.parametrize(
    "P, train, options, words",
    [
        (np.empty((0, 3)), TRAIN, {}, "no targets"),
        (np.full((2, 3), 1 / 3), TRAIN[:2], {}, "3 classes"),
        (np.full((2, 3), 1 / 3), [1, 0, 0], {}, "all above 0"),
        (np.full((2, 3), 1 / 3), TRAIN, {"pseudo_sources": -1}, "pseudo_sources"),
    ],
)
def test_bad_input(P, train, options, words):
    with pytest.raises(InputError, match=words):
        estimate_prior(P, train, **options)


GOOD = np.array([[0.9, 0.1, 0.0], [0.2, 0.3, 0.5]])


@pytest.mark.parametrize(
    ("P", "train", "options", "said"),
    [
        (GOOD * 2, TRAIN, {}, "row 0 of P"),
        (GOOD - [[0, 0, 0.1], [0, 0, 0]], TRAIN, {}, "row 0 of P"),
        ([GOOD[0], [np.nan, 0.5, 0.5]], TRAIN, {}, "row 1 of P"),
        (GOOD, [0.5, 0.5, np.nan], {}, "train: 3 classes need as many fractions"),
        (GOOD, [0.5, 0.5, 0.0], {}, "train: 3 classes need as many fractions, all above 0"),
        (GOOD, TRAIN, {"centre": [0.5, 0.5]}, "centre: 3 classes"),
        (GOOD, TRAIN, {"centre": [0.5, 0.6, -0.1]}, "centre: 3 classes .* none below 0"),
        (GOOD, TRAIN, {"centre": [0, 0, 0]}, "centre: all fractions are 0"),
        (GOOD, TRAIN, {"pseudo_sources": np.nan}, "pseudo_sources"),
        (GOOD, TRAIN, {"confidence_level": 95}, "confidence_level"),
    ],
)
def test_what_are_no_probabilities_and_no_fractions(P, train, options, said):
    with pytest.raises(InputError, match=said):
        estimate_prior(P, train, **options)


def test_origins_are_one_for_each_target_in_any_form():
    _, each = estimate_prior_by_origin(GOOD, TRAIN, ["blazar", "none"], n_bootstrap=0)
    assert sorted(each) == ["blazar", "none"] and each["blazar"].n == 1
    with pytest.raises(InputError, match="origin has shape"):
        estimate_prior_by_origin(GOOD, TRAIN, ["blazar"])


def test_a_source_whose_classes_have_no_fraction_has_no_probabilities():
    with pytest.raises(InputError, match=r"row 0 of P, .* has no probability left"):
        reweight([[1.0, 0.0], [0.5, 0.5]], [0.5, 0.5], [0.0, 1.0])
    with pytest.raises(InputError, match="class fractions are numbers"):
        reweight([[1.0, 0.0]], [0.5, 0.0], [0.5, 0.5])


def test_what_is_no_probability_and_what_is_masked_is_refused():
    P = np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]])
    masked = np.ma.array(P, mask=[[0, 0], [1, 1], [0, 0]])
    for call in (
        lambda P: reweight(P, [0.5, 0.5], [0.2, 0.8]),
        lambda P: estimate_prior(P, [0.5, 0.5], n_bootstrap=0),
        lambda P: estimate_prior_by_origin(P, [0.5, 0.5], list("aab"), n_bootstrap=0),
    ):
        with pytest.raises(InputError, match="row 1 of P is masked"):
            call(masked)
        with pytest.raises(InputError, match=r"row 2 of P is .*: no probabilities"):
            call([*P[:2].tolist(), [0.6, -0.4]])
        call(P.tolist())
    frame, of = pd.DataFrame(P, columns=["a", "b"]), pd.Series([0.9, 0.1], index=["b", "a"])
    for call in (lambda: estimate_prior(frame, of), lambda: reweight(frame, [0.5, 0.5], of)):
        with pytest.raises(InputError, match=r"has the columns b, a and the columns of P are a, b"):
            call()
    rounded = reweight(np.full((1, 3), 0.333), np.ones(3), np.array([1.0, 1, 2]))
    np.testing.assert_allclose(rounded, [[0.25, 0.25, 0.5]])
    with pytest.raises(InputError, match="the origin of row 1 is missing"):
        estimate_prior_by_origin(P, [0.5, 0.5], ["a", None, "b"], n_bootstrap=0)


def test_fractions_of_classes_that_are_numbers_are_a_classifiers_prior():
    found = estimate_prior(np.full((20, 2), 0.5), [0.5, 0.5], n_bootstrap=0)
    assert set(found.as_mapping(np.array([3, 7]))) == {3, 7}
    assert set(found.as_dict(np.array([3, 7]))["fractions"]) == {"3", "7"}
