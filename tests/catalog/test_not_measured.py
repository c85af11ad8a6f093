"""Numbers that stand for no value, words that stand for no class, and kinds of errors."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pandas as pd
import pytest
from astropy.table import Table

from gpal.catalog import load_catalog
from gpal.catalog.sentinels import is_sentinel, suspects
from gpal.catalog.streaming import CatalogBlocks
from gpal.errors import InputError


@pytest.fixture
def load(tmp_path):
    """load_catalog of columns with the feature "x", of the column X."""

    def load_columns(columns, feature=None, cuts=None, **keys):
        pd.DataFrame(columns).to_csv(tmp_path / "a.csv", index=False)
        mapping = {"features": {"x": {"column": "X", **(feature or {})}}, **keys}
        return load_catalog(tmp_path / "a.csv", mapping=mapping, cuts=cuts)

    return load_columns


MAGNITUDES = {
    "X": [14.0, -99.0, 16.0, 99.0, 18.0, -99.0, 20.0, np.nan, 17.0],
    "X_err": [0.1, -99.0, 99.0, 9.99, 0.1, 0.1, 0.1, -99.0, -99.0],
}


def test_declared_sentinels_are_no_values_and_no_errors(load):
    catalog = load(MAGNITUDES, sentinels=[-99, 99])
    measured = [0, 4, 6]
    assert np.flatnonzero(catalog.measurements.measured[:, 0]).tolist() == measured
    assert catalog.X_err[measured, 0].tolist() == [0.1, 0.1, 0.1]
    assert [(d.column, d.rule, d.count) for d in catalog.decisions] == [
        ("X", "no value: not measured", 1),
        ("X", "-99: not measured", 2),
        ("X", "99: not measured", 1),
        ("X", "no error: not measured", 2),
    ]


LONG = [2**60 + k for k in range(4)]


def test_long_integers_stay_such_where_one_is_missing(load):
    """Of floats many would be the same."""
    columns = {"X": [1.0, 2.0, 3.0, 4.0], "X_err": [0.1] * 4, "plate": [LONG[0], "", *LONG[2:]]}
    found = load(columns).table["plate"]
    assert found.tolist() == [LONG[0], None, *LONG[2:]] and found.dtype == np.int64
    columns["plate"] = [f" {LONG[0]}", *LONG[1:]]
    assert load(columns).table["plate"].tolist() == LONG
    columns["plate"] = [1, "", 3, 4]
    np.testing.assert_array_equal(load(columns).table["plate"], [1, np.nan, 3, 4])
    columns["plate"] = [LONG[0], "", "x", 4]
    assert load(columns).table["plate"].tolist() == [str(LONG[0]), "", "x", "4"]


@pytest.mark.parametrize("cut", [f"plate == {LONG[0]}", f"plate > {LONG[1]}"])
def test_a_cut_that_floats_cannot_make(load, cut):
    columns = {"X": [1.0, 2.0, 3.0, 4.0], "X_err": [0.1] * 4, "plate": LONG}
    with pytest.raises(InputError, match=r"column 'plate' at .* beyond 2\^53 are not told apart"):
        load(columns, cuts=cut)
    for clear in ("plate > 5", "plate < 2e18", "plate != -1e17"):
        assert len(load(columns, cuts=clear)) == 4
    assert len(load({**columns, "plate": [1e20, 2e20, 0.5, 1.0]}, cuts="plate == 1e20")) == 1


def test_a_cut_takes_no_sentinel_for_a_value(load):
    columns = {**MAGNITUDES, "seeing": [1, -99, 1, 1, 1, 1, 1, 1, -99], "flag": [0, -99] + 7 * [0]}
    passed = load(columns, sentinels=[-99, 99], cuts="X < 30")
    assert passed.table["X"].tolist() == [14, 16, 18, 20, 17]
    assert len(load(columns, sentinels=[-99, 99], cuts="seeing < 2")) == 7
    assert len(load(columns, sentinels=[-99, 99], cuts="flag == -99")) == 1
    own = {"sentinels": [99]}  # of the feature: -99 is a value of it
    assert len(load({**MAGNITUDES, "X_err": [0.1] * 9}, own, sentinels=[-99], cuts="X < 30")) == 7


@pytest.mark.parametrize("of_feature", [False, True])
@pytest.mark.parametrize(
    ("feature", "cut", "passed"),
    [
        ({"column": "F"}, "F_err < 0.5", ["a", "b"]),
        ({"column": "F", "error": "s"}, "s < 0.5", ["a", "b"]),
        ({"column": "F", "error": "pair"}, "pair[1] < 0.5", ["a", "b"]),
        ({"column": "F", "lower_limit": "depth"}, "depth < 26", ["a", "b", "c"]),
        ({"column": "F", "requires": "depth"}, "depth < 26", ["a", "b", "c"]),
        ({"difference": ["F", "G"], "error": ["s", "none"]}, "s < 0.5", ["a", "b"]),
        ({"difference": ["F", "G"]}, "F_err < 0.5", ["a", "b"]),
        ({"hardness": ["A", "B"]}, "s < 0.5", ["a", "b"]),
    ],
)
def test_a_cut_takes_no_sentinel_beside_a_value_for_one(tmp_path, feature, cut, passed, of_feature):
    table = Table({"id": list("abcd"), "F": [1.0, 2.0, 3.0, -99.0], "G": [2.0, 1.0, 1.0, 1.0]})
    table["F_err"] = table["s"] = [0.1, 0.2, 0.9, -99.0]
    table["G_err"], table["pair"] = [0.1] * 4, np.transpose([table["s"], table["s"]])
    table["depth"] = [25.0, 25.0, 25.0, -99.0]
    table.write(tmp_path / "a.fits")
    mapping = {"id": "id", "features": {"x": {**feature}}}
    mapping["bands"] = {c: {"nuFnu": n, "flux": n, "error": "s"} for c, n in ("AF", "BG")}
    of = mapping["features"]["x"] if of_feature else mapping
    of["sentinels"] = [-99]
    assert load_catalog(tmp_path / "a.fits", mapping=mapping, cuts=cut).names.tolist() == passed


def test_a_cut_on_a_column_that_another_feature_requires(load):
    """The sentinels of both are none there."""
    columns = {"X": [1.0, 2.0, 3.0, 4.0], "X_err": [0.1] * 4, "Y": [5.0, -99.0, 50.0, 6.0]}
    features = {"x": {"column": "X", "requires": "Y", "sentinels": [50]}}
    features["y"] = {"column": "Y", "error": "none"}
    catalog = load(columns, features=features, sentinels=[-99], cuts="Y < 100")
    assert catalog.table["X"].tolist() == [1, 4]


@pytest.mark.parametrize(
    ("feature", "words"),
    [
        ({"column": "F", "error": "e_F"}, r"'e_F' \(mmag\) beside 'F'"),
        ({"column": "F", "error": "none", "upper_limit": "L"}, r"'L' \(mmag\) beside 'F'"),
        ({"difference": ["F", "G"], "error": "none"}, r"'G' \(mmag\) beside 'F'"),
    ],
)
def test_a_unit_that_one_column_of_two_states(tmp_path, feature, words):
    table = Table({"F": [14.0, np.nan], "G": [1e4, 2e4], "e_F": [500.0, 1.0], "L": [1.0, 2e4]})
    for name in ("G", "e_F", "L"):
        table[name].unit = "mmag"
    table.write(tmp_path / "a.fits")
    with pytest.warns(UserWarning, match=f"one of two columns, {words}: both are taken"):
        load_catalog(tmp_path / "a.fits", mapping={"features": {"x": feature}})
    if "difference" not in feature:
        feature = {**feature, "unit": "mag"}
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            catalog = load_catalog(tmp_path / "a.fits", mapping={"features": {"x": feature}})
        if feature["error"] == "e_F":
            assert catalog.X_err[0, 0] == pytest.approx(0.5)


def test_an_upper_error_below_0_is_refused(load):
    columns = {"X": [14.0, 15.0, 16.0], "lo": [-0.1, -0.2, -0.1], "up": [0.1, -999.0, 0.1]}
    with pytest.raises(InputError, match=r"column 'up', row 1 .*-999"):
        load(columns, {"error": ["lo", "up"]})
    catalog = load({**columns, "up": [0.1, 0.2, 0.1]}, {"error": ["lo", "up"]})
    np.testing.assert_allclose(catalog.X_err[:, 0], [0.1, 0.2, 0.1])


def test_a_feature_may_have_sentinels_of_its_own(load):
    columns = {"X": [0.5, 9.99, 99.0, 0.7], "X_err": [0.1, 0.1, 0.1, 0.1]}
    catalog = load(columns, {"sentinels": [9.99]}, sentinels=[99])
    assert np.isnan(catalog.X[:, 0]).tolist() == [False, True, False, False]


def test_a_sentinel_in_single_precision(tmp_path):
    Table({"X": np.array([14, 9.99, 16, -9.99], "f4"), "X_err": np.ones(4, "f4")}).write(
        tmp_path / "a.fits"
    )
    mapping = {"features": {"x": "X"}, "sentinels": [9.99, -9.99]}
    catalog = load_catalog(tmp_path / "a.fits", mapping=mapping)
    assert np.isnan(catalog.X[:, 0]).tolist() == [False, True, False, True]


def test_one_of_several_sentinels_in_single_precision():
    """Which is a little above or below the number that is meant."""
    sentinels = [-9.99, -999.9, 9.99, 999.9]
    stored = np.array(sentinels, "f4").astype(float)
    assert len({*np.sign(stored - sentinels)}) == 2
    assert is_sentinel(stored, sentinels).all()
    assert not is_sentinel(np.array([0.0, 9.9899, 1e300, np.nan]), [*sentinels, 1.0]).any()


def test_undeclared_sentinels_are_refused_with_their_number(load):
    said = r"column 'X' of feature 'x' holds -99 in 2 rows, .*sentinels = \[-99\]"
    with pytest.raises(InputError, match=said):
        load(MAGNITUDES)
    with pytest.raises(InputError, match=r"holds 99 in 2 rows, .*sentinels = \[-99, 99\]"):
        load({"X": [1.0, 2.0, 99, 99, -99], "X_err": 0.1}, sentinels=[-99])


def test_one_beside_those_that_a_feature_declares_is_warned_of(load):
    columns = {"X": [*np.linspace(14, 22, 20), -99, -999, -999], "X_err": 0.1}
    with pytest.warns(UserWarning, match=r"-999 in 2 rows of column 'X' of feature 'x': taken as"):
        catalog = load(columns, {"sentinels": [-99]})
    assert catalog.measurements.measured.sum() == 22
    assert load(columns, {"sentinels": [-99, -999]}).measurements.measured.sum() == 20


def test_minus_a_power_of_ten_among_magnitudes_is_one(load):
    """-99999999 in single precision."""
    with pytest.raises(InputError, match=r"sentinels = \[-100000000\]"):
        load({"X": [*np.linspace(14, 22, 20), -1e8, -1e8], "X_err": 0.1})


@pytest.mark.parametrize("number", [2147483647.0, -999.9999, 3.4028235e38])
def test_the_sentinels_that_a_refusal_names_are_those_to_declare(load, number):
    columns = {"X": [*np.linspace(1, 2, 20), number, number], "X_err": 0.1}
    with pytest.raises(InputError, match="looks like 'not measured'") as refused:
        load(columns)
    stated = re.search(r"sentinels = \[([^\]]+)\]", str(refused.value))[1]
    declared = load(columns, sentinels=[float(stated)])
    assert declared.measurements.measured.sum() == 20


def test_what_may_be_a_sentinel_and_may_be_a_value_is_warned_of(load):
    columns = {"X": [*range(100), 99], "X_err": 0.1}
    with pytest.warns(UserWarning, match=r"99 in 2 rows of column 'X' of feature 'x': taken as"):
        catalog = load(columns)
    assert catalog.measurements.measured.all()
    assert load(columns, {"sentinels": []}).measurements.measured.all()
    assert load(columns, sentinels=[]).measurements.measured.all()


def test_what_is_not_measured_anyway_is_no_suspect(load):
    catalog = load({"X": [1.0, 2.0, -99, -99], "X_err": 0.1}, {"above": 0})
    assert catalog.measurements.measured[:, 0].tolist() == [True, True, False, False]


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ([14.0, 15.0, 16.0, -99.0], [(-99, 1, False)]),  # once may be a value, and far away
        ([14.0, 15.0, 16.0, -999.0, -999.0], [(-999, 2, True)]),
        ([14.0, 15.0, 99.99, 99.99, -9999, -9999], [(-9999, 2, True), (99.99, 2, True)]),
        ([-9999.0] * 5 + [np.nan], []),  # a constant
        ([-999.0, -999.0, 99.0, 99.0], [(-999, 2, True), (99, 2, True)]),  # nothing else
        ([50.0, 99.0, 99.0, 150.0], []),  # inside
        ([98.5, 97.0, 99.0, 99.0], [(99, 2, False)]),  # at the edge, and near
        ([1.0, 2.0, 9.0, 9.0], []),
        ([98.0, 96.0, 99.0], []),
        ([1.0, 1.0, 999.0, 999.0], [(999, 2, True)]),
        ([14.0, 15.0, 16.0, 9.9], []),
        ([14.0, 15.0, 16.0, 0.0, 0.0], [(0, 2, False)]),
        ([0.1, 1.0, 2.0, 0.0, 0.0], []),
        ([0.0, 1.0, 0.0, 1.0], []),
        ([1.0, 1.5, -1.0, -1.0], [(-1, 2, False)]),
        ([3.0, 4.0, 5.0, -32768, -32768], [(-32768, 2, True)]),
        ([], []),
    ],
)
def test_numbers_that_look_like_sentinels(values, found):
    assert [(s.number, s.count, s.certain) for s in suspects(np.array(values))] == found


@pytest.mark.parametrize("rows", [1, 300, 5000])
def test_no_column_of_measurements_is_suspected(rows):
    rng = np.random.default_rng(rows)
    for values in (
        rng.normal(20, 2, rows),
        rng.lognormal(0, 3, rows),
        rng.normal(0, 1e4, rows),
        rng.uniform(-180, 180, rows).round(1),
        rng.poisson(30, rows).astype(float),
    ):
        assert suspects(values) == []


def test_a_position_is_unknown_where_both_angles_are_sentinels(load):
    columns = {"X": [1.0, 2.0, 3.0], "X_err": 0.1, "ra": [99.0, -99, 12], "dec": [5.0, -99, 6]}
    catalog = load(columns, ra="ra", dec="dec", sentinels=[-99, 99])
    np.testing.assert_array_equal(catalog.ra, [99, np.nan, 12])
    np.testing.assert_array_equal(catalog.dec, [5, np.nan, 6])
    with pytest.raises(InputError, match=r"column 'dec', row 1 \(1\): -99 degrees is not between"):
        load(columns, ra="ra", dec="dec")


def test_the_sentinels_of_a_schema_are_on_record(load):
    used = load({"X": [1.0, 99], "X_err": 0.1}, sentinels=[99]).provenance["schema"]
    assert used["sentinels"] == (99,)


def test_words_that_stand_for_no_class(load):
    words = ["QSO", "UNKNOWN", "star", "None", "-", "n/a", "?", "Unclassified", "", "QSO"]
    columns = {"X": range(10), "X_err": 0.1, "Type": words}
    catalog = load(columns, **{"class": "Type"})
    assert catalog.classes == ("qso", "star")
    assert catalog.is_target.tolist() == [word not in ("QSO", "star") for word in words]
    counted = {d.rule: d.count for d in catalog.decisions}
    assert counted.pop("'unknown': no class, to be classified") == 1 and len(counted) == 5
    assert catalog.original_labels.tolist() == words


def test_a_schema_may_say_which_words_are_no_class(load):
    columns = {"X": range(4), "X_err": 0.1, "Type": ["None", "Dunno", "", "QSO"]}
    catalog = load(columns, **{"class": "Type", "classes": {"undecided": ["dunno"]}})
    assert catalog.classes == ("none", "qso")
    assert catalog.is_target.tolist() == [False, True, True, False]


def test_a_word_for_no_class_that_is_asked_for_is_a_class(load):
    columns = {"X": range(4), "X_err": 0.1, "Type": ["none", "none", "", "QSO"]}
    catalog = load(columns, **{"class": "Type"}).with_classes(["none", "qso"])
    assert catalog.y.tolist() == ["none", "none", "", "qso"]
    assert catalog.is_target.tolist() == [False, False, True, False]


@pytest.mark.parametrize("power", [10.0**k for k in range(1, 9)])
@pytest.mark.parametrize("kind", ["f4", "f8"])
def test_a_power_of_ten_is_not_written_in_nines(power, kind):
    values = np.array([0.1 * power, 0.2 * power, *[power] * 8], kind)
    values[0] *= 1.23
    assert suspects(values.astype(float)) == []
    assert suspects(-values.astype(float)) == []


@pytest.mark.parametrize("number", [999.9999, 9999.999, 99999.99, 999999.9, 9999999, 99999])
def test_what_is_written_in_nines_is_no_power_of_ten_in_single_precision(number):
    for kind in ("f4", "f8"):
        values = np.array([1.5, 2.5, number, number], kind).astype(float)
        (found,) = suspects(values)
        assert (found.number, found.count, found.certain) == (values[2], 2, True)


@pytest.mark.parametrize(
    ("kind", "error", "sigma"),
    [
        ("sigma", 0.2, 0.2),
        ("variance", 0.04, 0.2),
        ("inverse variance", 25.0, 0.2),
        ("90 %", 0.2, 0.2 / 1.644853627),
        ("95 %", 0.2, 0.2 / 1.959963985),
    ],
)
def test_kinds_of_errors(load, kind, error, sigma):
    catalog = load({"X": [1.0, 2.0], "X_err": [error, 4 * error]}, {"error_kind": kind})
    factor = {"variance": 2, "inverse variance": 0.5}.get(kind, 4)
    assert catalog.X_err[:, 0] == pytest.approx([sigma, factor * sigma])
    columns = {"X": [1.0], "lo": [error], "hi": [error]}
    pair = load(columns, {"error_kind": kind, "error": ["lo", "hi"]})
    assert pair.X_err[0, 0] == pytest.approx(sigma)


def test_an_inverse_variance_of_0_is_no_measurement(load):
    feature = {"error_kind": "inverse variance", "missing_error": "exact"}
    catalog = load({"X": [1.0, 2.0, 3.0], "X_err": [4.0, 0.0, np.nan]}, feature)
    assert catalog.X_err[:, 0].tolist() == [0.5, np.inf, 0.0]


@pytest.mark.parametrize("how", ["not measured", "exact", "nearest", "forbid"])
@pytest.mark.parametrize("kind", ["sigma", "variance", "95 %"])
def test_an_infinite_error_is_no_measurement(load, kind, how):
    feature = {"error_kind": kind, "missing_error": how}
    catalog = load({"X": [1.0, 2.0, 3.0], "X_err": [0.1, np.inf, 0.1]}, feature)
    assert np.isinf(catalog.X_err[:, 0]).tolist() == [False, True, False]
    assert np.isnan(catalog.X[1, 0])
    assert [(d.rule, d.count) for d in catalog.decisions] == [("infinite error: not measured", 1)]


def test_an_infinite_side_of_a_pair_is_no_measurement(load):
    columns = {"X": [1.0, 2.0, 3.0], "lo": [0.1, np.inf, 0.1], "hi": [0.1, 0.1, np.inf]}
    feature = {"error": ["lo", "hi"], "missing_error": "exact"}
    assert load(columns, feature).X_err[:, 0].tolist() == [pytest.approx(0.1), np.inf, np.inf]
    columns["lo"] = [-0.1, -np.inf, -0.1]  # with its sign
    assert load(columns, feature).X_err[:, 0].tolist() == [pytest.approx(0.1), np.inf, np.inf]


@pytest.mark.parametrize(
    ("kind", "unit", "error"), [("variance", "mJy2", 40_000), ("inverse variance", "mJy-2", 25e-6)]
)
def test_the_unit_of_a_variance(tmp_path, kind, unit, error):
    table = Table({"X": [1.0], "X_err": [error]}, units={"X": "Jy", "X_err": unit})
    table.write(tmp_path / "a.ecsv")
    for wanted, sigma in (("", 0.2), ("Jy", 0.2), ("mJy", 200.0)):
        feature = {"column": "X", "error_kind": kind, "unit": wanted}
        catalog = load_catalog(tmp_path / "a.ecsv", mapping={"features": {"x": feature}})
        assert catalog.X_err[0, 0] == pytest.approx(sigma)


def test_errors_of_0_are_counted(load):
    columns = {"X": [1.0, 2.0, 3.0], "X_err": [0.1, 0.0, 0.0]}
    catalog = load(columns)
    assert catalog.X_err[:, 0].tolist() == [0.1, 0.0, 0.0]
    assert [(d.rule, d.count) for d in catalog.decisions] == [("an error of 0: taken as exact", 2)]
    assert np.isinf(load(columns, {"zero_error": "missing"}).X_err[1:]).all()
    assert load(columns, {"error": "none"}).decisions == ()
    (decision,) = load({"X": [1.0, 2.0], "X_err": [0.0, 0.0]}).decisions
    assert decision.count == 2


@pytest.mark.parametrize("in_one_column", [False, True])
def test_an_error_of_0_may_be_none_on_one_side(tmp_path, in_one_column):
    lower, upper = [0.0, 0.3, np.nan, 0.0], [0.4, 0.0, 0.4, 0.0]
    table = Table({"X": [1.0, 2.0, 3.0, 4.0], "lo": lower, "hi": upper})
    table["pair"] = np.transpose([lower, upper])
    table.write(tmp_path / "a.fits")
    feature = {"column": "X", "error": "pair" if in_one_column else ["lo", "hi"]}
    feature["zero_error"] = "missing"
    catalog = load_catalog(tmp_path / "a.fits", mapping={"features": {"x": feature}})
    assert catalog.X_err[:, 0] == pytest.approx([0.4, 0.3, 0.4, np.inf])


def test_negative_errors(load):
    columns = {"X": [1.0, 2.0, np.nan], "X_err": [0.1, -0.2, -0.3]}
    with pytest.raises(InputError, match=r"column 'X_err', row 1 \(1\): -0.2 \(1 such in all\)"):
        load(columns)
    catalog = load(columns, {"negative_error": "missing"})
    assert catalog.X_err[:, 0].tolist() == [0.1, np.inf, np.inf]
    assert ("negative: no error", 1) in [(d.rule, d.count) for d in catalog.decisions]


def test_sentinels_among_errors_are_said(load):
    """They make a value next to unknown, and no more: it is a warning."""
    values = np.linspace(14, 20, 12)
    errors = [0.1, 0.2, 0.15, 99.99, 0.1, 0.2, 99.99, 0.3, 0.1, 0.12, 0.2, 0.1]
    with pytest.warns(UserWarning, match=r"99.99 in 2 rows of column 'X_err' of feature 'x'"):
        load({"X": values, "X_err": errors})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load({"X": values, "X_err": errors}, {"sentinels": []})
        measured = load({"X": values, "X_err": errors}, sentinels=[99.99]).measurements.measured
    assert np.flatnonzero(~measured[:, 0]).tolist() == [3, 6]


def test_a_sentinel_that_is_rare_in_every_block(tmp_path):
    """-9 once in each of three blocks is -9 three times."""
    values = np.where(np.arange(30) % 10 == 3, -9.0, np.linspace(14, 20, 30))
    pd.DataFrame({"X": values}).to_csv(tmp_path / "a.csv", index=False)
    mapping = {"features": {"x": {"column": "X", "error": "none"}}}
    with pytest.warns(UserWarning, match="-9 in 3 rows of column 'X'"):
        list(CatalogBlocks.of(tmp_path / "a.csv", mapping=mapping, rows=10))
    with warnings.catch_warnings():  # inside of the others, it is one of them
        warnings.simplefilter("error")
        pd.DataFrame({"X": values * np.where(values < 0, -2, 1)}).to_csv(
            tmp_path / "a.csv", index=False
        )
        list(CatalogBlocks.of(tmp_path / "a.csv", mapping=mapping, rows=10))


def test_what_is_no_sentinel_among_errors_is_not_said(load):
    """Errors that are rounded and end at 9.9; and of a negative one its own number is said."""
    values, errors = np.linspace(14, 20, 30), np.round(np.linspace(0.1, 9.9, 30), 1)
    errors[-3:] = 9.9
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load({"X": values, "X_err": errors})
        negative = np.where(np.arange(30) < 3, -9.99, 0.1)
        load({"X": values, "X_err": negative}, {"negative_error": "missing"})
    pair = {"error": ["lower", "upper"]}
    columns = {"X": values, "lower": np.where(np.arange(30) < 3, -99, -0.1), "upper": [0.1] * 30}
    columns["lower"] -= np.linspace(0, 0.05, 30)[::-1].round(2) * (np.arange(30) >= 3)
    with pytest.warns(UserWarning, match="-99 in 3 rows of column 'lower'"):
        load(columns, pair)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load(columns, pair, sentinels=[-99])


def test_a_number_that_is_at_the_edge_of_a_block_alone(tmp_path):
    values = [*range(1, 199), *[1, 50, 98, 99, 99]]
    pd.DataFrame({"X": values}).to_csv(tmp_path / "a.csv", index=False)
    mapping = {"features": {"x": {"column": "X", "error": "none"}}}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        list(CatalogBlocks.of(tmp_path / "a.csv", mapping=mapping, rows=198))


def test_a_position_of_which_one_angle_is_empty(load):
    columns = {
        "X": [1.0, 2.0, 3.0],
        "X_err": [0.1] * 3,
        "ra": [10.0, "", -999],
        "dec": [-5, -999, ""],
    }
    catalog = load(columns, sentinels=[-999], ra="ra", dec="dec")
    np.testing.assert_array_equal(catalog.ra, [10.0, np.nan, np.nan])
    np.testing.assert_array_equal(catalog.dec, [-5.0, np.nan, np.nan])


def test_a_negative_upper_error_of_a_pair_is_refused(tmp_path):
    """As of two columns; the lower one may have a sign, in every row, whichever of both it is."""
    lower, upper = np.full(8, -0.1), np.full(8, 0.1)
    upper[7] = -3.0
    for name, sides in {"pair": (lower, upper), "turned": (upper, lower)}.items():
        table = Table({"X": np.arange(8.0), "e": np.column_stack(sides)})
        table.write(tmp_path / f"{name}.fits")
        feature = {"column": "X", "error": "e"}
        with pytest.raises(InputError, match="column 'e', row 7"):
            load_catalog(tmp_path / f"{name}.fits", mapping={"features": {"x": feature}})
        feature["negative_error"] = "missing"
        catalog = load_catalog(tmp_path / f"{name}.fits", mapping={"features": {"x": feature}})
        np.testing.assert_allclose(catalog.X_err[:7, 0], 0.1)
        assert np.isinf(catalog.X_err[7, 0])


@pytest.mark.parametrize("in_one_column", [True, False])
def test_bounds_are_no_errors(tmp_path, in_one_column):
    flux = np.geomspace(1e-15, 1e-12, 30)
    table = Table({"F": flux, "lo": flux * 0.7, "hi": flux * 1.4}, units=dict.fromkeys("F", "W"))
    table["lo"][:3] = table["hi"][:3] = np.nan
    table["pair"] = np.column_stack([table["lo"], table["hi"]])
    table.write(tmp_path / "a.fits")
    error = "pair" if in_one_column else ["lo", "hi"]
    feature = {"column": "F", "error": error, "transform": "log10", "unit": "mW"}
    for kind in ("sigma", "90 %"):
        features = {"F": {**feature, "error_kind": kind}}
        with pytest.raises(InputError, match=r"are bounds of 'F'.* value - lower and upper"):
            load_catalog(tmp_path / "a.fits", mapping={"features": features})


@pytest.mark.parametrize(
    ("X", "lower", "upper"),
    [
        (np.linspace(-0.3, 0.3, 20), -0.4, 0.5),  # written as -σ, and 0 within it
        (np.linspace(0.12, 0.21, 20), 0.1, 0.2),  # one value is above its error
        (np.full(20, 0.15), 0.15, 0.15),
    ],
)
def test_errors_that_nearly_enclose_a_value_are_no_bounds(load, X, lower, upper):
    columns = {"X": X, "lo": [lower] * 20, "hi": [upper] * 20}
    sigma = np.hypot(lower, upper) / np.sqrt(2)
    np.testing.assert_allclose(load(columns, {"error": ["lo", "hi"]}).X_err[:, 0], sigma)


def test_errors_of_faint_counts_are_no_bounds(load):
    """Of 0, 1 and 2 counts (Gehrels 1986), which lie between them."""
    counts = np.resize([0.0, 1.0, 2.0], 30)
    columns = {"X": counts, "X_err_lo": np.sqrt(np.maximum(counts - 0.25, 0))}
    columns["X_err_hi"] = 1 + np.sqrt(counts + 0.75)
    assert np.isfinite(load(columns, {}).X_err).all()


def test_few_rows_do_not_tell_bounds_from_errors(load):
    columns = {"X": [2.0] * 9, "lo": [1.0] * 9, "hi": [3.0] * 9}
    assert load(columns, {"error": ["lo", "hi"]}).X_err.all()


def test_a_lower_error_is_written_with_one_sign(load):
    """-1 among positive ones stands for no error: it is none, though the upper one may be."""
    lower = np.where(np.arange(12) < 2, -1.0, 0.1)
    columns = {"X": np.arange(12.0), "lower": lower, "upper": [0.1] * 12}
    pair = {"error": ["lower", "upper"]}
    with pytest.raises(InputError, match=r"column 'lower', row 0 .*: -1 \(2 such in all\)"):
        load(columns, pair)
    errors = load(columns, {**pair, "negative_error": "missing"}).X_err[:, 0]
    np.testing.assert_allclose(errors[2:], 0.1)
    assert np.isinf(errors[:2]).all()
    np.testing.assert_allclose(load({**columns, "lower": -np.abs(lower)}, pair).X_err[2:, 0], 0.1)


@pytest.mark.parametrize("of_pair", [False, True])
def test_rows_that_do_not_count_say_nothing_of_the_sign_of_errors(tmp_path, of_pair):
    """What stands beside no value, or beside one that is cut off, whatever the block."""
    feature = {"column": "X", "error": "pair" if of_pair else ["lower", "upper"], "above": 0.0}
    for name, X, lower in (
        ("a", [1, 2, np.nan, 3, -5, 4], [-0.1, -0.1, 9, -0.1, 9, -0.1]),
        ("b", [np.nan, np.nan, -1, 1, 2, 3], [-1, -1, -1, 0.1, 0.1, 0.1]),
        ("c", [1, 2, 3, 4, np.nan, np.nan], [-0.1, -0.1, -0.1, -0.1, 99, 99]),
    ):
        table = Table({"X": np.array(X, float), "lower": lower, "upper": np.full(6, 0.1)})
        table["pair"] = np.column_stack([table["lower"], table["upper"]])
        table.write(tmp_path / f"{name}.fits")
        mapping = {"features": {"x": feature}}
        whole = load_catalog(tmp_path / f"{name}.fits", mapping=mapping).X_err[:, 0]
        blocks = CatalogBlocks.of(tmp_path / f"{name}.fits", mapping=mapping, rows=3)
        for errors in (whole, np.concatenate([block.X_err[:, 0] for block in blocks])):
            np.testing.assert_allclose(errors, np.where(np.array(X, float) > 0, 0.1, np.inf))


def test_features_of_one_error_column_may_say_otherwise_what_is_none(tmp_path):
    values = np.arange(1.0, 7.0)
    table = Table({"X": values, "Y": values, "lower": [-0.1, -0.1, 99, -0.1, 99, -0.1]})
    table["upper"] = np.where(table["lower"] > 0, 99, 0.1)
    table.write(tmp_path / "a.fits")
    first, second = ({"column": c, "error": ["lower", "upper"], "sentinels": [99]} for c in "XY")
    load_catalog(tmp_path / "a.fits", mapping={"features": {"x": first, "y": second}})
    del second["sentinels"]
    with pytest.raises(InputError, match="column 'lower', row 0"):
        load_catalog(tmp_path / "a.fits", mapping={"features": {"x": first, "y": second}})


@pytest.mark.parametrize("of_pair", [False, True])
def test_blocks_of_a_table_agree_on_the_sign_of_lower_errors(tmp_path, of_pair):
    """The last row of seven, alone in its block, has a lower error of -1."""
    lower, upper = np.array([0.1] * 6 + [-1.0]), np.full(7, 0.1)
    table = Table({"X": np.arange(7.0), "lower": lower, "upper": upper})
    table["pair"] = np.column_stack([lower, upper])
    table.write(tmp_path / "a.fits")
    feature = {"column": "X", "error": "pair" if of_pair else ["lower", "upper"]}
    options = {"mapping": {"features": {"x": feature}}, "rows": 3}
    with pytest.raises(InputError, match=r"row .*: -1"):
        list(CatalogBlocks.of(tmp_path / "a.fits", **options))
    table["lower"], table["pair"] = lower[::-1], table["pair"][::-1]
    table[[0, 0, 0, *range(7)]].write(tmp_path / "b.fits")
    with pytest.raises(InputError, match="below 0 in all rows so far, and above 0 in later ones"):
        list(CatalogBlocks.of(tmp_path / "b.fits", **options))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("requires", "q"),
        ("above", 0.25),
        ("error", "none"),
        ("unit", "mJy"),
        ("missing", "forbid"),
        ("missing_error", "forbid"),
        ("zero_error", "missing"),
    ],
)
def test_what_a_hardness_does_not_heed_is_refused(load, key, value):
    with pytest.raises(InputError, match=f"a hardness takes no {key}"):
        load({"X": [1.0]}, {"column": "", "hardness": ["a", "b"], key: value})


@pytest.mark.parametrize("last", [40, 40_000])
def test_a_declared_null_is_none_where_another_cell_is_too_large(tmp_path, last):
    numbers = [-5, 1, 2, -5, 4, last]
    rows = "".join(f"<TR><TD>{k}</TD></TR>" for k in numbers)
    (tmp_path / "a.vot").write_text(
        '<VOTABLE version="1.4" xmlns="http://www.ivoa.net/xml/VOTable/v1.3"><RESOURCE><TABLE>'
        '<FIELD name="k" datatype="short"><VALUES null="-5"/></FIELD>'
        f"<DATA><TABLEDATA>{rows}</TABLEDATA></DATA></TABLE></RESOURCE></VOTABLE>"
    )
    feature = {"column": "k", "error": "none"}
    catalog = load_catalog(tmp_path / "a.vot", mapping={"features": {"k": feature}})
    np.testing.assert_array_equal(catalog.X[:, 0], [np.nan, 1, 2, np.nan, 4, last])


def test_one_side_of_an_error_that_is_missing_is_counted(load):
    columns = {"X": [1.0, 2, 3], "lo": [0.1, -99, 0.1], "hi": [0.1, 0.3, 0.1]}
    catalog = load(columns, {"error": ["lo", "hi"]}, sentinels=[-99])
    assert catalog.X_err[:, 0].tolist() == pytest.approx([0.1, 0.3, 0.1])
    counted = {(d.column, d.rule): d.count for d in catalog.decisions}
    assert counted == {("X", "one side of the error is missing: the other stands for both"): 1}


def test_a_number_that_stands_for_no_class_is_counted(load):
    columns = {"X": range(5), "X_err": 0.1, "z": [0.1, 1.4, -99, -99, np.nan]}
    catalog = load(columns, **{"class": "z", "sentinels": [-99], "classes": {"edges": [0, 1, 2]}})
    assert catalog.is_target.tolist() == [False, False, True, True, True]
    counted = {(d.column, d.rule): d.count for d in catalog.decisions}
    assert counted == {("z", "-99: no class, to be classified"): 2}


@pytest.mark.parametrize(
    ("feature", "said"),
    [
        ({"limit_confidence": 0.8}, "limit_confidence means nothing where it has no limit"),
        ({"error": "none", "error_kind": "variance"}, "error_kind means nothing where it has no e"),
    ],
)
def test_what_belongs_to_nothing_is_refused(load, feature, said):
    with pytest.raises(InputError, match=said):
        load({"X": [1.0, 2], "X_err": 0.1}, feature)


def test_a_logarithm_of_nothing_names_its_feature_and_the_remedies(load):
    with pytest.raises(InputError, match=r"feature 'x', row 1: log10 of -2 .* give it above = 0"):
        load({"X": [1.0, -2], "X_err": 0.1}, {"transform": "log10"})


def test_a_kind_of_error_goes_with_the_column_that_has_one(load):
    """The other of a difference may be exact; and a table may have no error column."""
    made = {"difference": ["X", "Y"], "error": ["none", "V"], "error_kind": "variance"}
    columns = {"X": [1.0, 2], "Y": [0.5, 0.5], "V": [0.04, 0.09]}
    catalog = load(columns, {"column": "", **made})
    assert catalog.X_err[:, 0].tolist() == pytest.approx([0.2, 0.3])
    with pytest.warns(UserWarning, match="no error column found for 'x'"):
        catalog = load({"X": [1.0, 2]}, {"error_kind": "variance"})
    assert catalog.provenance["schema"]["features"]["x"] == {"column": "X", "error": "none"}
