"""A parameter takes a value that it once had to its last bit, whatever its bijector."""

from __future__ import annotations

import gpflow
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from gpal.inference.kernels import POSITIVE
from gpal.inference.parameters import assign_exactly

BIJECTORS = {
    "logarithm": POSITIVE,
    "softplus": gpflow.utilities.positive(),
    "with a lower limit": gpflow.utilities.positive(lower=1e-3),
    "a fraction": tfp.bijectors.Sigmoid(),
    "itself": tfp.bijectors.Identity(),
}
unconstrained = arrays(float, st.integers(1, 5), elements=st.floats(-20.0, 20.0))


@pytest.mark.parametrize("name", BIJECTORS)
@settings(max_examples=50, deadline=None)
@given(u=unconstrained)
def test_a_value_comes_back(name, u):
    bijector = BIJECTORS[name]
    value = bijector.forward(tf.constant(u)).numpy()
    if not np.isfinite(bijector.inverse(value)).all():
        return  # a fraction that is rounded to one
    parameter = gpflow.Parameter(np.full(len(u), 0.5), transform=bijector)
    assign_exactly(parameter, value)
    np.testing.assert_array_equal(parameter.numpy(), value)


def test_without_it_some_do_not():
    """Or the test above would be no test."""
    value = POSITIVE.forward(tf.constant(np.random.default_rng(0).normal(size=1000))).numpy()
    parameter = gpflow.Parameter(value, transform=POSITIVE)
    assert (parameter.numpy() != value).any()
    assign_exactly(parameter, value)
    assert (parameter.numpy() == value).all()


def test_a_triangle_is_assigned_as_ever():
    triangle = np.array([[1.0, 0.0], [0.5, 2.0]])
    parameter = gpflow.Parameter(np.eye(2), transform=gpflow.utilities.triangular())
    assign_exactly(parameter, triangle)
    np.testing.assert_array_equal(parameter.numpy(), triangle)
