"""What each control keeps of the errors, and what it destroys."""

from __future__ import annotations

import numpy as np
import pytest

from gpal.arrays import as_measurements
from gpal.errors import InputError
from gpal.evaluation import NOISE_CONTROLS, noise_controls
from gpal.measurements import Measurements


@pytest.fixture
def parts():
    rng = np.random.default_rng(0)
    first, second = rng.lognormal(size=(60, 3)), 3 * rng.lognormal(size=(40, 3))
    first[:, 1] = second[:, 1] = 0
    first[:8, 2] = np.inf
    return tuple(
        Measurements(rng.normal(size=error.shape), error, ("a", "b", "c"))
        for error in (first, second)
    )


def test_controls(parts):
    controls = noise_controls(parts, random_state=1)
    assert set(controls) == set(NOISE_CONTROLS)
    for name, errors in controls.items():
        for own, told in zip(parts, errors, strict=True):
            np.testing.assert_array_equal(own.measured, told.measured, err_msg=name)
            np.testing.assert_array_equal(own.X, told.X, err_msg=name)
    np.testing.assert_array_equal(controls["own"][0].X_err, parts[0].X_err)
    assert not np.any(controls["zero"][1].X_err)
    together = np.vstack([part.X_err for part in parts])
    for told in controls["constant"]:
        for j in range(3):
            median = np.median(together[np.isfinite(together[:, j]), j])
            assert (told.X_err[told.measured[:, j], j] == median).all()
    for own, told in zip((p.X_err for p in parts), controls["permuted"], strict=True):
        assert (own != told.X_err).any(axis=1).mean() > 0.8
        # whole rows move, within the part
        np.testing.assert_array_equal(own[np.lexsort(own.T)], told.X_err[np.lexsort(told.X_err.T)])


def test_correlations_stay_with_their_errors():
    error = np.arange(1.0, 31.0)[:, None] * [1.0, 2.0]
    covariance = error[:, :, None] * error[:, None, :] * [[1, 0.5], [0.5, 1]]
    part = Measurements(np.zeros((30, 2)), error, ("a", "b"), covariance=covariance)
    (permuted,) = noise_controls([part])["permuted"]
    source = permuted.X_err[:, 0].astype(int) - 1  # whose errors these are
    assert sorted(source) == list(range(30)) and (source != np.arange(30)).any()
    np.testing.assert_array_equal(permuted.covariance, covariance[source])
    for name in ("zero", "constant"):
        assert noise_controls([part])[name][0].covariance is None


def test_same_seed_same_permutation(parts):
    first, again, other = (noise_controls(parts, random_state=s)["permuted"] for s in (1, 1, 2))
    np.testing.assert_array_equal(first[0].X_err, again[0].X_err)
    assert (first[0].X_err != other[0].X_err).any()


@pytest.mark.parametrize("widths", [[], [2, 3]])
def test_bad_input(widths):
    parts = [as_measurements(np.ones((2, d)), 0.1) for d in widths]
    with pytest.raises(InputError, match="of the same features"):
        noise_controls(parts)
