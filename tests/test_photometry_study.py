"""workflows/photometry: its samples, what is told of them, and the bias of mean redshifts."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).parents[1] / "workflows" / "photometry"


@pytest.fixture
def study(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    import measure
    import samples
    import tables

    yield measure, samples, tables
    for name in ("measure", "samples", "tables"):
        del sys.modules[name]


def test_samples_are_nested_disjoint_and_bright_to_faint(study):
    _, samples, _ = study
    for split in samples.SPLITS:
        small, test = samples.draw(split, 500, 3)
        large, same = samples.draw(split, 5000, 3)
        ids = [set(each.measurements.ids) for each in (small, large, test)]
        assert (len(small.y), len(large.y), len(test.y)) == (500, 5000, 4000)
        assert ids[0] < ids[1] and not ids[1] & ids[2]
        np.testing.assert_array_equal(test.measurements.ids, same.measurements.ids)
        assert set(small.y) == set(test.y) == {0, 1, 2, 3, 4}
        for each in (small, test):
            edges = np.array([0, 0.53, 0.78, 0.99, 1.26, 3.1])
            assert np.all((edges[each.y] <= each.z) & (each.z < edges[each.y + 1]))
    assert large.measurements.X[:, 0].max() <= 24.0 and test.measurements.X[:, 0].min() >= 24.3


def test_what_is_told(study):
    _, samples, _ = study
    train, _ = samples.draw("random", 2000, 0)
    plain, whole = train.told(), train.told(covariance=True, limits=True)
    assert plain.covariance is None and plain.limits is None
    assert whole.covariance is not None and whole.limits.given.any()
    np.testing.assert_array_equal(plain.X_err, whole.X_err)
    left = train.only_detected()
    assert not (left.measured & ~plain.measured).any()
    largest = np.where(left.measured, left.X_err, 0).max(axis=0)
    assert np.all(largest < np.sqrt(2) * 2.5 * np.log10(1.5) + 1e-3)  # two bands at 2 sigma
    assert plain.X_err[plain.measured].max() > 1


def test_a_classifier_that_knows_the_bins_has_no_bias(study):
    measure, _, tables = study
    rng = np.random.default_rng(0)
    z = rng.uniform(0, 2, 4000)
    y = (z > 1).astype(int)
    of_class = np.array([z[y == k].mean() for k in (0, 1)])
    known = tables.biases(measure.mean_redshifts(np.eye(2)[y], z, of_class))
    np.testing.assert_allclose(known, 0, atol=1e-12)
    blurred = np.where(np.eye(2)[y] == 1, 0.9, 0.1)  # each bin thought to hold a tenth of the other
    found = tables.biases(measure.mean_redshifts(blurred, z, of_class))
    shift = 0.1 * (of_class[1] - of_class[0])
    np.testing.assert_allclose(found, [shift, -shift] / (1 + of_class), rtol=1e-6)
