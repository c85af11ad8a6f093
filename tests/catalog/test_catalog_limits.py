"""Limits as tables give them."""

import numpy as np
import pytest
from astropy.table import Table

from gpal import InputError, load_catalog


@pytest.fixture
def load(tmp_path):
    def load(columns, feature):
        path = tmp_path / "own.fits"
        Table(columns).write(path, overwrite=True)
        return load_catalog(str(path), mapping={"features": {"x": {"column": "X", **feature}}})

    return load


MAGNITUDES = {"X": [20.0, 99.0, np.nan, 21.0], "X_err": [0.1, 99.0, 0.1, 0.2]}


def limits_of(catalog):
    limits = catalog.measurements.limits
    return limits.value[:, 0], limits.confidence[:, 0]


def test_what_is_not_detected_lies_above_its_depth(load):
    columns = {**MAGNITUDES, "depth": [24.0, 24.5, np.nan, 23.0]}
    catalog = load(columns, {"sentinels": [99], "lower_limit": "depth"})
    value, confidence = limits_of(catalog)
    np.testing.assert_array_equal(value, [np.nan, 24.5, np.nan, np.nan])
    np.testing.assert_array_equal(confidence, [0, 0.95, 0, 0])
    assert [(d.column, d.count) for d in catalog.decisions if "above" in d.rule] == [("depth", 1)]
    assert np.isinf(catalog.X_err[1:3, 0]).all()


def test_one_number_for_all(load):
    value, confidence = limits_of(
        load(MAGNITUDES, {"sentinels": [99], "lower_limit": 25, "limit_confidence": 1.0})
    )
    np.testing.assert_array_equal(value, [np.nan, 25, 25, np.nan])
    np.testing.assert_array_equal(confidence, [0, 1, 1, 0])


@pytest.mark.parametrize("given", ["depth", 24.5])
def test_none_where_the_value_that_stands_there_is_beyond_it(load, given):
    """A star of 20 without an error was seen, and does not lie above a depth of 24.5."""
    columns = {
        "X": [20.0, 25.0, np.nan, 21.0],
        "X_err": [np.nan, np.nan, np.nan, 0.1],
        "depth": np.full(4, 24.5),
    }
    catalog = load(columns, {"lower_limit": given})
    np.testing.assert_array_equal(limits_of(catalog)[0], [np.nan, 24.5, 24.5, np.nan])
    assert [d.count for d in catalog.decisions if "beyond the limit" in d.rule] == [1]
    value, _ = limits_of(load(columns, {"upper_limit": given}))
    np.testing.assert_array_equal(value, [24.5, np.nan, 24.5, np.nan])


def test_a_number_that_may_stand_for_no_value_is_beyond_none(load):
    columns = {"X": [20.0, 21.0, 22.0, 0.0, 0.0], "X_err": [0.1, 0.1, 0.1, np.nan, np.nan]}
    with pytest.warns(UserWarning, match="0"):
        catalog = load(columns, {"lower_limit": 24.5})
    np.testing.assert_array_equal(limits_of(catalog)[0][3:], [24.5, 24.5])


def test_nor_of_a_colour_where_a_band_has_a_value_beyond_its_own(tmp_path):
    bands = {"a": [20.0, 21.0, 21.0], "a_err": [0.1, 0.1, 0.1]}
    bands |= {"b": [20.0, np.nan, 26.0], "b_err": [np.nan, np.nan, np.nan]}
    feature = {"difference": ["a", "b"], "lower_limit": ["none", "depth"]}
    Table({**bands, "depth": np.full(3, 24.5)}).write(tmp_path / "two.fits")
    catalog = load_catalog(str(tmp_path / "two.fits"), mapping={"features": {"c": feature}})
    np.testing.assert_allclose(limits_of(catalog)[0], [np.nan, -3.5, -3.5])


def test_a_limit_in_another_type_is_the_value_still(load):
    """20.1 in single precision is less than 20.1."""
    columns = {"X": np.array([20.1, 21.0], np.float32), "X_err": [np.nan, 0.1], "d": [20.1, 20.1]}
    value, _ = limits_of(load(columns, {"lower_limit": "d"}))
    np.testing.assert_allclose(value, [20.1, np.nan])


def test_marks_and_a_logarithm(load):
    columns = {
        "X": [10.0, 100.0, 1000.0, np.nan],
        "X_err": [1.0, np.nan, 5.0, np.nan],
        "l_X": ["", "<", ">", "<"],
    }
    value, confidence = limits_of(load(columns, {"limit_flag": "l_X", "transform": "log10"}))
    np.testing.assert_allclose(value, [np.nan, 2.0, 3.0, np.nan])
    np.testing.assert_allclose(confidence, [0, -0.95, 0.95, 0])


def test_to_lie_above_what_a_logarithm_has_no_place_for_says_nothing(load):
    columns = {
        "X": [10.0, np.nan, np.nan],
        "X_err": [1.0, np.nan, np.nan],
        "low": [0.0, -3.0, 100.0],
    }
    catalog = load(columns, {"lower_limit": "low", "transform": "log10"})
    np.testing.assert_allclose(limits_of(catalog)[0], [np.nan, np.nan, 2.0])
    assert [d.count for d in catalog.decisions if "above a limit" in d.rule] == [1]


def test_a_flag_of_yes_and_no_names_what_reads_it(load):
    columns = {"X": [10.0, 100.0, 7.0], "X_err": [1.0, np.nan, 0.5], "is_limit": [0, 1, 0]}
    with pytest.raises(InputError, match=r"'0' is no mark of a limit.* give upper_limit = 'X' \("):
        load(columns, {"limit_flag": "is_limit"})
    value, confidence = limits_of(load(columns, {"upper_limit": "X"}))
    np.testing.assert_array_equal(value, [np.nan, 100.0, np.nan])
    np.testing.assert_array_equal(confidence, [0, -0.95, 0])


def test_units_are_converted(tmp_path):
    table = Table({"X": [1.0, np.nan], "X_err": [0.1, np.nan], "top": [5.0, 5.0]})
    table["X"].unit, table["top"].unit = "mJy", "uJy"
    table.write(tmp_path / "own.fits")
    feature = {"column": "X", "upper_limit": "top", "unit": "Jy"}
    catalog = load_catalog(str(tmp_path / "own.fits"), mapping={"features": {"x": feature}})
    np.testing.assert_allclose(limits_of(catalog)[0], [np.nan, 5e-6])


def test_what_is_no_limit_is_refused(load):
    columns = {"X": [10.0, np.nan], "X_err": [1.0, np.nan], "top": [1.0, 0.0], "mark": ["", "?"]}
    with pytest.raises(InputError, match=r"column 'mark', row 1 \(1\): '\?' is no mark"):
        load(columns, {"limit_flag": "mark"})
    with pytest.raises(InputError, match=r"column 'top', row 1 \(1\): the upper limit 0 of"):
        load(columns, {"upper_limit": "top", "transform": "ln"})
    with pytest.raises(InputError, match="give one of upper_limit"):
        load(columns, {"upper_limit": "top", "lower_limit": "top"})
    with pytest.raises(InputError, match=r"limit_confidence = 0\.4"):
        load(columns, {"upper_limit": "top", "limit_confidence": 0.4})
    catalog = load(columns, {"upper_limit": "top", "transform": "ln", "floor": 0.5})
    np.testing.assert_allclose(limits_of(catalog)[0], [np.nan, np.log(0.5)])


COLOURS = {
    "u": [np.nan, 20.0, np.nan, 22.0, np.nan],
    "u_err": 0.1,
    "g": [21.0, np.nan, np.nan, 21.5, 23.0],
    "g_err": 0.2,
    "u_depth": [24.0, 24.0, 24.0, 24.0, np.nan],
    "g_depth": 25.0,
}


@pytest.fixture
def load_two(tmp_path):
    def load(feature):
        columns = {name: np.broadcast_to(values, 5) for name, values in COLOURS.items()}
        Table(columns).write(tmp_path / "own.fits", overwrite=True)
        mapping = {"features": {"c": feature, "g": "g"}}
        return load_catalog(str(tmp_path / "own.fits"), mapping=mapping)

    return load


def test_a_colour_of_which_one_band_was_not_detected(load_two):
    """u fainter than 24 and g = 21: u − g above 3. u = 20 and g fainter than 25: below −5."""
    feature = {"difference": ["u", "g"], "lower_limit": ["u_depth", "g_depth"]}
    value, confidence = limits_of(load_two(feature))
    np.testing.assert_allclose(value, [3.0, -5.0, np.nan, np.nan, np.nan])
    np.testing.assert_allclose(confidence, [0.95, -0.95, 0, 0, 0])
    for none in ("none", ""):
        value, _ = limits_of(load_two({**feature, "lower_limit": ["u_depth", none]}))
        np.testing.assert_allclose(value, [3.0, np.nan, np.nan, np.nan, np.nan])


def test_a_value_without_an_error_may_be_its_own_limit(load):
    """As in the tables of WISE."""
    columns = {"X": [12.0, 15.0, 16.0, np.nan], "X_err": [0.1, np.nan, np.nan, np.nan]}
    value, confidence = limits_of(load(columns, {"lower_limit": "X"}))
    np.testing.assert_allclose(value, [np.nan, 15.0, 16.0, np.nan])
    np.testing.assert_allclose(confidence, [0, 0.95, 0.95, 0])


def test_a_ratio_of_which_one_flux_has_a_limit(load_two):
    feature = {"ratio": ["u", "g"], "upper_limit": ["u_depth", "g_depth"]}
    value, confidence = limits_of(load_two(feature))
    np.testing.assert_allclose(value, [24 / 21, 20 / 25, np.nan, np.nan, np.nan])
    np.testing.assert_allclose(confidence, [-0.95, 0.95, 0, 0, 0])


@pytest.mark.parametrize("kind", ["difference", "ratio"])
def test_they_have_the_error_of_the_band_that_was_measured(load_two, kind):
    """By drawing it: u = 24 at the most and g = 21 ± 0.2; u = 20 ± 0.1 and g = 25 at the most."""
    feature = {kind: ["u", "g"], "upper_limit": ["u_depth", "g_depth"]}
    error = load_two(feature).measurements.limits.error[:, 0]
    rng = np.random.default_rng(0)
    g, u = rng.normal(21.0, 0.2, 200_000), rng.normal(20.0, 0.1, 200_000)
    drawn = [24 - g, u - 25] if kind == "difference" else [24 / g, u / 25]
    np.testing.assert_allclose(error, [*np.std(drawn, axis=1), 0, 0, 0], rtol=0.01)


def test_a_limit_by_what_is_not_positive_says_nothing(tmp_path):
    """a below 3 and b = −1, or b below 3 and a = −1, put no bound on a/b; nor does b below −3."""
    columns = {"a": [np.nan, -1.0, 1.0], "b": [-1.0, np.nan, np.nan], "a_err": 0.1, "b_err": 0.1}
    columns |= {"top": [3.0, 3.0, -3.0]}
    Table({k: np.broadcast_to(v, 3) for k, v in columns.items()}).write(tmp_path / "own.fits")
    feature = {"ratio": ["a", "b"], "upper_limit": ["top", "top"]}
    catalog = load_catalog(str(tmp_path / "own.fits"), mapping={"features": {"x": feature}})
    assert catalog.measurements.limits is None


def test_their_errors_are_scaled_as_those_of_values(load_two, tmp_path):
    feature = {"difference": ["u", "g"], "lower_limit": ["u_depth", "g_depth"]}
    limits = load_two(feature).measurements.limits
    mapping = {"features": {"c": feature, "g": "g"}}
    found = load_catalog(str(tmp_path / "own.fits"), mapping=mapping, error_scale={"c": 2.0})
    np.testing.assert_array_equal(found.measurements.limits.error, 2.0 * limits.error)


def test_limits_of_a_softened_difference_are_in_its_units(load_two):
    feature = {"difference": ["u", "g"], "lower_limit": ["u_depth", "g_depth"]}
    limits = load_two({**feature, "transform": "asinh", "softening": 2.0}).measurements.limits
    np.testing.assert_allclose(limits.value[:2, 0], np.arcsinh([1.5, -2.5]))
    slope = 1 / np.hypot(1.0, [1.5, 2.5])
    np.testing.assert_allclose(limits.error[:2, 0], slope * np.array([0.2, 0.1]) / 2)


def test_limits_of_two_columns_are_two(load_two):
    for limit in ("u_depth", 24.0, ["u_depth"]):
        with pytest.raises(InputError, match="a difference or ratio those of both columns"):
            load_two({"difference": ["u", "g"], "lower_limit": limit})
