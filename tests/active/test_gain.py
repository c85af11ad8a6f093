"""Expected gains against a model whose information is known by quadrature."""

from __future__ import annotations

import numpy as np
import pytest
from known_truth import draw

from gpal.active.gain import expected_gain
from gpal.active.posterior import split_sources
from gpal.errors import InputError


def test_gain_lies_between_nothing_and_a_perfect_measurement(fitted):
    classifier = fitted[0]
    X, X_err, _, _ = draw(60, 0.8, seed=5)
    little, much = (expected_gain(classifier, X, X_err, shrink) for shrink in (0.9, 0.3))
    for gain in (little, much):
        assert (gain.measurement >= 0).all()
        assert (gain.measurement <= gain.perfect_measurement).all()
        assert (gain.label >= gain.perfect_measurement).all()
    assert 0 < little.measurement.mean() < 0.6 * much.measurement.mean()
    exact = expected_gain(classifier, X, X_err, 0.0)
    assert (exact.measurement == exact.perfect_measurement).all()


def test_gain_agrees_with_measuring_again(fitted):
    """Over many sources: entropy at σ minus entropy at κ σ, each with fresh data (tower rule)."""
    classifier = fitted[0]
    X, X_err, x, _ = draw(1500, 1.0, seed=6)
    rng = np.random.default_rng(7)
    again = x + X_err / np.sqrt(3) * rng.normal(size=x.shape)
    better = 0.25 * X + 0.75 * again
    before = split_sources(classifier, X, X_err).total.mean()
    after = split_sources(classifier, better, 0.5 * X_err).total.mean()
    gain = expected_gain(classifier, X[:400], X_err[:400], 0.5).measurement.mean()
    assert gain == pytest.approx(before - after, rel=0.25)


def test_worth_measuring_depends_on_time(fitted):
    classifier = fitted[0]
    gain = expected_gain(classifier, *draw(20, 0.8, seed=8)[:2], 0.0)
    assert not gain.worth_measuring().any()  # a label settles the class, a measurement may not
    assert gain.worth_measuring(time_label=1e6).any()


def test_shrink_must_shrink(fitted):
    with pytest.raises(InputError, match="shrink"):
        expected_gain(fitted[0], np.zeros((1, 2)), np.ones((1, 2)), 1.0)
