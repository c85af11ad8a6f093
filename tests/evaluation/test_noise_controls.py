"""What each control keeps of the errors, and what it destroys."""

from __future__ import annotations

import numpy as np
import pytest

from gpal.errors import InputError
from gpal.evaluation import NOISE_CONTROLS, noise_controls


@pytest.fixture
def parts():
    rng = np.random.default_rng(0)
    first, second = rng.lognormal(size=(60, 3)), 3 * rng.lognormal(size=(40, 3))
    first[:, 1] = second[:, 1] = 0
    first[:8, 2] = np.inf
    return first, second


def test_controls(parts):
    controls = noise_controls(parts, random_state=1)
    assert set(controls) == set(NOISE_CONTROLS)
    for name, errors in controls.items():
        for own, told in zip(parts, errors, strict=True):
            np.testing.assert_array_equal(np.isinf(own), np.isinf(told), err_msg=name)
    np.testing.assert_array_equal(controls["own"][0], parts[0])
    assert not np.any(controls["zero"][1])
    together = np.vstack(parts)
    for told in controls["constant"]:
        for j in range(3):
            median = np.median(together[np.isfinite(together[:, j]), j])
            assert (told[np.isfinite(told[:, j]), j] == median).all()
    for own, told in zip(parts, controls["permuted"], strict=True):
        assert (own != told).any(axis=1).mean() > 0.8
        # whole rows move, within the part
        np.testing.assert_array_equal(own[np.lexsort(own.T)], told[np.lexsort(told.T)])


def test_same_seed_same_permutation(parts):
    first, again, other = (noise_controls(parts, random_state=s)["permuted"] for s in (1, 1, 2))
    np.testing.assert_array_equal(first[0], again[0])
    assert (first[0] != other[0]).any()


@pytest.mark.parametrize("bad", [[], [np.ones(3)], [np.ones((2, 2)), np.ones((2, 3))]])
def test_bad_input(bad):
    with pytest.raises(InputError, match="X_err"):
        noise_controls(bad)
