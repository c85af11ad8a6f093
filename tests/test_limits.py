"""Limits travel with the measurements that they belong to."""

from dataclasses import replace

import astropy.units as u
import numpy as np
import pytest

from gpal import InputError
from gpal.limits import Limits
from gpal.measurements import Measurements

NAN, INF = np.nan, np.inf


@pytest.fixture
def sources():
    return Measurements(
        [[1.0, NAN], [NAN, 4.0], [3.0, NAN]],
        [[0.1, INF], [INF, 0.2], [0.3, INF]],
        ("flux", "mag"),
        limits=Limits([[NAN, 20.0], [2.0, NAN], [NAN, NAN]], [[0, 0.95], [-1, 0], [0, 0]]),
    )


def test_they_are_sliced_selected_and_stacked(sources):
    np.testing.assert_array_equal(sources[1].limits.value, [[2.0, NAN]])
    np.testing.assert_array_equal(
        sources.select(["mag", "flux"]).limits.confidence, sources.limits.confidence[:, ::-1]
    )
    both = Measurements.stack([sources[:2], replace(sources[2:], limits=None), sources])
    np.testing.assert_array_equal(both.limits.value[3:], sources.limits.value)
    np.testing.assert_array_equal(both.limits.given[:3], sources.limits.given)
    assert Measurements.stack([sources[2:], sources[2:]]).limits is None


def test_they_are_scaled_and_transformed(sources):
    scaled = sources.scale(np.array([1.0, 10.0]), np.array([2.0, 5.0]))
    np.testing.assert_allclose(scaled.limits.value[[1, 0], [0, 1]], [0.5, 2.0])
    log = sources.transform("flux", "log10")
    np.testing.assert_allclose(log.limits.value[1, 0], np.log10(2.0))
    assert log.limits.value[0, 1] == 20.0
    assert np.isnan(log.limits.value[[0, 2], 0]).all()


def test_their_errors_are_those_of_values(sources):
    limits = replace(sources.limits, error=np.full((3, 2), 0.2))
    odd = replace(sources, limits=limits)
    np.testing.assert_array_equal(odd.limits.error, 0.2 * sources.limits.given)
    scaled = odd.scale(np.array([1.0, 10.0]), np.array([2.0, 5.0]))
    np.testing.assert_allclose(scaled.limits.error[[1, 0], [0, 1]], [0.1, 0.04])
    log = odd.transform("flux", "log10").limits.error
    np.testing.assert_allclose(log[1, 0], 0.2 / (2.0 * np.log(10)))
    assert log[0, 1] == 0.2 and log[2].tolist() == [0, 0]
    both = Measurements.stack([odd, sources]).limits.error
    np.testing.assert_array_equal(both, np.vstack([odd.limits.error, np.zeros((3, 2))]))
    with pytest.raises(InputError, match="feature 1 of row 0 has a limit whose error is none"):
        replace(sources, limits=replace(limits, error=np.full((3, 2), -1.0)))


def test_a_lower_limit_below_the_domain_says_nothing_an_upper_one_is_refused(sources):
    limits = Limits(np.where(sources.limits.given, -1.0, NAN), sources.limits.confidence)
    odd = replace(sources, limits=limits)
    assert odd.transform("mag", "ln").limits.given.sum() == 1
    with pytest.raises(InputError, match="row 1 has the upper limit -1, where its transform"):
        odd.transform("flux", "ln")


@pytest.mark.parametrize(
    "value, confidence, message",
    [
        ([[NAN, NAN]], [[0, -0.9]], "feature 1 of row 0 has a limit that is no number"),
        ([[NAN, 1.0]], [[0, -0.4]], "feature 1 of row 0 has a confidence"),
        ([[NAN, 1.0]], [[0, 1.2]], "feature 1 of row 0 has a confidence"),
        ([[1.0, NAN]], [[-1, 0]], "feature 0 of row 0 has a limit and a value"),
        ([1.0], [1], "have the shapes"),
    ],
)
def test_what_is_no_limit_is_refused(sources, value, confidence, message):
    with pytest.raises(InputError, match=message):
        replace(sources[:1], limits=Limits(value, confidence))


@pytest.mark.parametrize("part", ["value", "confidence", "error"])
def test_what_is_masked_or_has_a_unit_is_no_limit(sources, part):
    limits = replace(sources.limits, error=np.zeros((3, 2)))
    values = np.nan_to_num(getattr(limits, part), nan=1e20)
    mask = np.zeros((3, 2), dtype=bool)
    masked = replace(limits, **{part: np.ma.array(values, mask=mask)})
    np.testing.assert_array_equal(replace(sources, limits=masked).limits.value, limits.value)
    mask[1, 0] = True
    masked = replace(limits, **{part: np.ma.array(values, mask=mask)})
    with pytest.raises(InputError, match="feature 0 of row 1 has a"):
        replace(sources, limits=masked)
    with pytest.raises(InputError, match=f"limits.{part} has the unit 'mJy'"):
        replace(sources, limits=replace(limits, **{part: getattr(limits, part) * u.mJy}))


def test_no_limit_at_all_is_none(sources):
    assert replace(sources, limits=Limits.none((3, 2))).limits is None


def test_packing_would_lose_them(sources):
    with pytest.raises(InputError, match="has no place for limits"):
        sources.pack()
