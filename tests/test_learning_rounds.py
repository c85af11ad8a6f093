"""Rounds of learning are longer where a bound is dear: with first-order input noise."""

from __future__ import annotations

import numpy as np
import pytest

from gpal import GPClassifier
from gpal.inference.sites import OF_FIRST_ORDER, Schedule


@pytest.mark.parametrize("input_noise, first_order", [("first_order", True), ("integrated", False)])
def test_rounds_are_those_that_suit_the_input_noise_unless_given(input_noise, first_order):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 2))
    y = np.where(np.sin(3 * x[:, 0]) + x[:, 1] > 0, "a", "b")
    plain = {"iterations": Schedule.iterations, "sweeps": Schedule.sweeps}

    def bounds(options):
        model = GPClassifier(
            "softmax",
            input_noise=input_noise,
            kernel="rbf",
            max_rounds=2,
            inference_options={**options, "tolerance": 0.0},
        )
        return model.fit(x, y, 0.2).bounds_per_round_

    own, long, short = bounds({}), bounds(OF_FIRST_ORDER), bounds(plain)
    np.testing.assert_array_equal(own, long if first_order else short)
    assert len(own) == 3 and long != short


def test_learning_ends_with_the_first_round_that_brings_too_little_a_step():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 2))
    y = np.where(np.sin(3 * x[:, 0]) + x[:, 1] > 0, "a", "b")

    def bounds(least_rise):
        options = {"tolerance": 1e-4, "least_rise": least_rise, "iterations": 4}
        model = GPClassifier("softmax", kernel="rbf", input_noise="first_order", max_rounds=8)
        return np.array(
            model.set_params(inference_options=options).fit(x, y, 0.2).bounds_per_round_
        )

    long = bounds(0.0)
    rises = np.diff(long)
    for limit in (1.1 * rises[0], (rises[0] + rises[1]) / 2, 0.9 * rises.min()):
        short = bounds(limit / (1e-4 * 4))
        rounds = 1 + int(np.argmax(rises < limit)) if (rises < limit).any() else len(rises)
        np.testing.assert_array_equal(short, long[: rounds + 1])
