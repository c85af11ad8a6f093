"""Differences, ratios and softened asinh against Monte Carlo, and what shared columns correlate."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from astropy.table import Table

from gpal import GPClassifier
from gpal.arrays import as_measurements
from gpal.catalog import load_catalog
from gpal.catalog.registry import find_schema
from gpal.errors import InputError

MAGNITUDES = {
    **{"g": [18.0, 19.0, np.nan, 17.0], "e_g": [0.1, 0.2, 0.1, np.nan]},
    **{"r": [17.5, 18.0, 18.0, 16.0], "e_r": [0.05, 0.1, 0.1, 0.1]},
    **{"i": [17.0, 17.5, 17.5, 15.5], "e_i": [0.02, 0.1, 0.1, 0.1]},
}


@pytest.fixture
def load(tmp_path):
    def load_columns(columns, features, **keys):
        pd.DataFrame(columns).to_csv(tmp_path / "a.csv", index=False)
        return load_catalog(tmp_path / "a.csv", mapping={"features": features, **keys})

    return load_columns


def test_a_colour_is_measured_where_both_magnitudes_are(load):
    catalog = load(MAGNITUDES, {"g-r": {"difference": ["g", "r"]}})
    np.testing.assert_allclose(catalog.X[:, 0], [0.5, 1.0, np.nan, np.nan])
    np.testing.assert_allclose(catalog.X_err[:2, 0], np.hypot([0.1, 0.2], [0.05, 0.1]))
    assert np.isinf(catalog.X_err[2:]).all() and catalog.measurements.covariance is None
    assert [(d.column, d.rule, d.count) for d in catalog.decisions] == [
        ("g", "no value: not measured", 1),
        ("g", "no error: not measured", 1),
    ]
    used = catalog.provenance["schema"]["features"]["g-r"]
    assert used == {"difference": ("g", "r"), "error": ("e_g", "e_r")}


FEATURES = {
    "r": "r",
    "g-r": {"difference": ["g", "r"]},
    "r-i": {"difference": ["r", "i"]},
    "log g/i": {"ratio": ["g", "i"], "transform": "log10", "above": 0},
    "soft r": {"column": "r", "transform": "asinh", "softening": 3.0},
    "r/g": {"ratio": ["r", "g"], "transform": "sqrt"},
}


def test_covariance_against_monte_carlo(load):
    rng = np.random.default_rng(0)
    values = {"g": 5.0, "r": 8.0, "i": 3.0}
    errors = {"g": 0.05, "r": 0.1, "i": 0.02}
    columns = {**values, **{f"e_{name}": error for name, error in errors.items()}}
    catalog = load({name: [value] for name, value in columns.items()}, FEATURES)
    g, r, i = (rng.normal(values[k], errors[k], 400_000) for k in "gri")
    draws = [r, g - r, r - i, np.log10(g / i), np.arcsinh(r / 3), np.sqrt(r / g)]
    found, expected = catalog.measurements.covariance[0], np.cov(draws)
    scale = np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
    np.testing.assert_allclose(found / scale, expected / scale, atol=0.01)
    np.testing.assert_allclose(catalog.X[0], np.mean(draws, axis=1), atol=2e-3)
    assert catalog.measurements.covariance[0, 1, 3] > 0  # of g alone


def test_hardness_ratios_with_a_band_in_common_against_monte_carlo(load):
    rng = np.random.default_rng(0)
    flux, error, energy = (np.array(x) for x in ([5.0, 8.0, 3.0], [0.05, 0.1, 0.02], [1.0, 2, 4]))
    columns = {f"F{k}": [F] for k, F in enumerate(flux)}
    columns |= {f"e{k}": [e] for k, e in enumerate(error)}
    columns |= {f"E{k}": [F * per] for k, (F, per) in enumerate(zip(flux, energy))}
    columns["of_E1"] = [error[1] * energy[1]]
    bands = {f"{k}": {"nuFnu": f"E{k}", "flux": f"F{k}", "error": f"e{k}"} for k in range(3)}
    features = {
        "soft": {"hardness": ["0", "1"]},
        "hard": {"hardness": ["1", "2"]},
        "wide": {"hardness": ["0", "2"]},
        "F1": {"column": "F1", "error": "e1"},
        "E1": {"column": "E1", "error": "of_E1"},
    }
    found = load(columns, features, bands=bands).measurements.covariance[0]
    F = rng.normal(flux, error, (400_000, 3))
    E = F * energy
    pairs = [(0, 1), (1, 2), (0, 2)]
    draws = [(E[:, b] - E[:, a]) / (E[:, b] + E[:, a]) for a, b in pairs]
    expected = np.cov([*draws, F[:, 1], E[:, 1]])
    scale = np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
    np.testing.assert_allclose(found / scale, expected / scale, atol=0.01)
    assert found[0, 1] < 0 < found[0, 2]


def test_what_is_made_of_both_fluxes_of_a_band_keeps_its_covariance(load):
    """That of two columns, as its own error is."""
    columns = {"E0": [2.0, -2.0], "E1": 3.0, "F0": 1.0, "F1": 1.5, "e0": 0.1, "e1": 0.1, "eE": 0.3}
    bands = {k: {"nuFnu": f"E{k}", "flux": f"F{k}", "error": f"e{k}"} for k in "01"}
    features = {
        "hr": {"hardness": ["0", "1"]},
        "per": {"ratio": ["E0", "F0"], "error": ["eE", "e0"]},
        "F0": {"column": "F0", "error": "e0"},
    }
    sources = load(columns, features, bands=bands).measurements
    correlation = sources.covariance[:, 1, 2] / (sources.X_err[:, 1] * sources.X_err[:, 2])
    by_flux, by_energy = 0.1 * np.array([2.0, -2.0]), 0.3
    np.testing.assert_allclose(correlation, -by_flux / np.hypot(by_flux, by_energy))


def test_an_error_limited_to_half_the_range_keeps_its_correlations(load):
    columns = {"E0": 1.0, "E1": 1.0, "E2": 1.0, "F0": 1.0, "F1": 1.0, "F2": 1.0}
    columns |= {"e0": 0.1, "e1": [0.2, 30.0], "e2": 0.1}
    bands = {f"{k}": {"nuFnu": f"E{k}", "flux": f"F{k}", "error": f"e{k}"} for k in range(3)}
    features = {"soft": {"hardness": ["0", "1"]}, "hard": {"hardness": ["1", "2"]}}
    sources = load(columns, features, bands=bands).measurements
    assert sources.X_err[1].tolist() == [1.0, 1.0]
    correlation = sources.covariance[:, 0, 1] / sources.X_err.prod(axis=1)
    np.testing.assert_allclose(correlation, [-(0.2**2) / (0.1**2 + 0.2**2), -1], atol=1e-4)


def test_features_without_a_column_in_common_have_no_covariance(load):
    features = {"g-r": {"difference": ["g", "r"]}, "i": "i"}
    assert load(MAGNITUDES, features).measurements.covariance is None
    exact = {"g-r": {"difference": ["g", "r"], "error": ["e_g", "none"]}, "r": "r"}
    assert load(MAGNITUDES, exact).measurements.covariance is None


def test_a_shared_column_in_two_units(tmp_path):
    table = Table({"a": [2.0], "b": [500.0], "e_a": [0.1], "e_b": [50.0]})
    for name, unit in (("a", "Jy"), ("b", "mJy"), ("e_a", "Jy"), ("e_b", "mJy")):
        table[name].unit = unit
    table.write(tmp_path / "a.ecsv")
    features = {
        "b": {"column": "b", "unit": "uJy"},
        "difference": {"difference": ["a", "b"]},
        "ratio": {"ratio": ["a", "b"]},
    }
    sources = load_catalog(tmp_path / "a.ecsv", mapping={"features": features}).measurements
    assert sources.units == ("uJy", "Jy", "")
    np.testing.assert_allclose(sources.X[0], [5e5, 1.5, 4.0])
    np.testing.assert_allclose(sources.X_err[0], [5e4, np.hypot(0.1, 0.05), np.hypot(0.2, 0.4)])
    np.testing.assert_allclose(sources.covariance[0, 0, 1], -5e4 * 0.05)
    np.testing.assert_allclose(sources.covariance[0, 0, 2], -5e4 * 0.4)


def test_a_ratio_of_what_has_other_units_says_so(tmp_path):
    table = Table({"a": [2.0], "b": [4.0], "e_a": [0.1], "e_b": [0.1]})
    table["a"].unit, table["b"].unit = "count", "s"
    table.write(tmp_path / "a.ecsv")
    mapping = {"features": {"rate": {"ratio": ["a", "b"]}}}
    catalog = load_catalog(tmp_path / "a.ecsv", mapping=mapping)
    assert catalog.X[0, 0] == 0.5 and catalog.measurements.units == ("(ct) / (s)",)
    mapping = {"features": {"rate": {"difference": ["a", "b"]}}}
    with pytest.raises(InputError, match="column 'b' has the unit 's', which does not convert"):
        load_catalog(tmp_path / "a.ecsv", mapping=mapping)


def test_a_ratio_to_zero_is_not_measured(load):
    columns = {"a": [1.0, 2.0, -1.0], "b": [0.0, 4.0, 2.0], "e_a": 0.1, "e_b": 0.1}
    catalog = load(columns, {"q": {"ratio": ["a", "b"], "above": 0, "transform": "ln"}})
    np.testing.assert_allclose(catalog.X[:, 0], [np.nan, np.log(0.5), np.nan])
    assert [(d.column, d.rule) for d in catalog.decisions] == [
        ("q", "divided by 0: not measured"),
        ("q", "not above 0: not measured"),
    ]


def test_a_column_without_an_error_is_named(load):
    columns = {"g": [1.0], "e_g": [0.1], "r": [2.0]}
    with pytest.warns(UserWarning, match=r"found for 'g-r' \(column 'r'\): taken as exact"):
        load(columns, {"g-r": {"difference": ["g", "r"]}})
    catalog = load(columns, {"g-r": {"difference": ["g", "r"], "error": ["e_g", "none"]}})
    assert catalog.X_err.tolist() == [[0.1]]


def test_sentinels_of_both_columns(load):
    columns = {"g": [1.0, 2.0, 99.0], "r": [-99.0, 1.0, 2.0], "e_g": 0.1, "e_r": 0.1}
    feature = {"difference": ["g", "r"]}
    for found in (
        load(columns, {"g-r": feature}, sentinels=[-99, 99]),
        load(columns, {"g-r": {**feature, "sentinels": [-99, 99]}}),
    ):
        np.testing.assert_array_equal(found.X[:, 0], [np.nan, 1.0, np.nan])


ODD = {
    **{"g": [5.0, np.nan, 5.0, 5.0], "e_g": [0.2, 0.2, np.nan, 0.2]},
    **{"r": [4.0, 4.0, 4.0, 4.0], "e_r": [0.1, 0.1, 0.1, 0.0], "seen": [1.0, 1, 1, np.nan]},
}


@pytest.mark.parametrize(
    ("key", "value", "errors"),
    [
        ("error_kind", "variance", [np.sqrt(0.3), np.inf, np.inf, np.sqrt(0.2)]),
        ("missing_error", "exact", [np.hypot(0.2, 0.1), np.inf, 0.1, 0.2]),
        ("zero_error", "missing", [np.hypot(0.2, 0.1), np.inf, np.inf, np.inf]),
        ("requires", "seen", [np.hypot(0.2, 0.1), np.inf, np.inf, np.inf]),
    ],
)
def test_what_is_said_of_a_feature_is_said_of_both_columns(load, key, value, errors):
    for pair, sign in ((["g", "r"], 1), (["r", "g"], -1)):
        catalog = load(ODD, {"x": {"difference": pair, key: value}})
        np.testing.assert_allclose(catalog.X_err[:, 0], errors)
        assert catalog.X[0, 0] == sign


def test_what_is_forbidden_is_forbidden_in_both_columns(load):
    for pair in (["g", "r"], ["r", "g"]):
        with pytest.raises(InputError, match="column 'g', row 1"):
            load(ODD, {"x": {"difference": pair, "missing": "forbid"}})
    negative = {**ODD, "e_r": [0.1, 0.1, 0.1, -0.1]}
    feature = {"difference": ["g", "r"]}
    with pytest.raises(InputError, match="column 'e_r', row 3"):
        load(negative, {"x": feature})
    catalog = load(negative, {"x": {**feature, "negative_error": "missing"}})
    assert np.isinf(catalog.X_err[3, 0])


def test_a_ratio_of_very_small_or_large_numbers(load):
    """The square of 1e-200 is no number."""
    columns = {"a": [3e-200, 3e200], "b": [2e-200, 2e200]}
    catalog = load({**columns, "e_a": 0.0, "e_b": [1e-201, 1e199]}, {"x": {"ratio": ["a", "b"]}})
    np.testing.assert_allclose(catalog.X_err[:, 0], 1.5 * 0.05)


def test_a_value_at_the_bound_is_not_above_it(load):
    catalog = load(MAGNITUDES, {"g-r": {"difference": ["g", "r"], "above": 0.5}})
    assert np.isfinite(catalog.X_err[:, 0]).tolist() == [False, True, False, False]


def test_softened_asinh_is_the_asinh_magnitude(load):
    """Lupton et al. 1999: m = m0 − 2.5 log10(b) − 1.0857 asinh(f/2b); Pogson's if bright."""
    flux, b = np.array([-0.05, 0.0, 0.2, 5.0, 4000.0]), 0.14
    columns = {"f": flux, "e_f": 0.1}
    feature = {"column": "f", "transform": "asinh", "softening": 2 * b}
    x = load(columns, {"m": feature}).measurements
    assert x.units == ("asinh(0.28)",)
    a = 2.5 / np.log(10)
    magnitude = 22.5 - 2.5 * np.log10(b) - a * x.X[:, 0]
    assert magnitude[-1] == pytest.approx(22.5 - 2.5 * np.log10(4000), abs=1e-6)
    expected = a * 0.1 / (2 * b) / np.sqrt(1 + (flux / 2 / b) ** 2)  # SDSS
    np.testing.assert_allclose(a * x.X_err[:, 0], expected)


def test_error_scales_of_features_that_share_a_column(tmp_path, load):
    sources = load(MAGNITUDES, {"g": "g", "g-r": {"difference": ["g", "r"]}}).measurements
    scale = {"g": 2.0, "g-r": 3.0}
    mapping = {"features": {"g": "g", "g-r": {"difference": ["g", "r"]}}}
    scaled = load_catalog(tmp_path / "a.csv", mapping=mapping, error_scale=scale).measurements
    np.testing.assert_allclose(scaled.covariance[0, 0, 1], 6 * sources.covariance[0, 0, 1])
    assert np.isfinite(sources.covariance[0]).all()


def test_a_model_takes_magnitudes_and_their_colour():
    """Three features of two columns: the covariance is singular."""
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b"], 40)
    true = rng.normal(0, 1, (80, 2)) + 1.5 * (y == "b")[:, None]
    σ = rng.uniform(0.1, 0.6, (80, 2))
    g, r = (true + σ * rng.normal(size=(80, 2))).T
    J = np.array([[1.0, 0], [0, 1], [1, -1]])
    X = np.column_stack([g, r, g - r])
    X_cov = np.einsum("ij,nj,kj->nik", J, σ**2, J)
    sources = as_measurements(X, X_cov=X_cov)
    classifier = GPClassifier(n_inducing=10, max_rounds=1).fit(sources, y)
    P = classifier.predict_proba(sources)
    assert np.isfinite(P).all() and (classifier.classes_[P.argmax(1)] == y).mean() > 0.7
    alone = classifier.predict_proba(replace(sources, covariance=None))
    assert np.abs(P - alone).max() > 0.001


@pytest.mark.parametrize(
    ("feature", "said"),
    [
        ({"difference": ["g"]}, "difference needs two columns"),
        ({"ratio": ["g", "r", "i"]}, "ratio needs two columns"),
        ({"ratio": ["g", "g"]}, "the ratio of 'g' and itself is the same for every source"),
        ({"column": "g", "difference": ["g", "r"]}, "needs either a 'column' or two columns"),
        ({"difference": ["g", "r"], "error": "e_g"}, "the error of a difference is that of both"),
        ({"difference": ["g", "r"], "error": ["e_g"]}, "the error of a difference is that of both"),
        ({"ratio": ["g", "r"], "unit": "mag"}, "leave unit out"),
        ({"column": "g", "softening": 2.0}, "softening is a number above 0"),
        ({"column": "g", "transform": "asinh", "softening": 0}, "softening is a number above 0"),
    ],
)
def test_arithmetic_at_fault(load, feature, said):
    with pytest.raises(InputError, match=said):
        load(MAGNITUDES, {"x": feature})


def test_a_schema_knows_the_columns_of_a_difference(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('[features.c]\ndifference = ["g", "r"]\nerror = ["e_g", "none"]\n')
    assert find_schema(path).columns() == ("g", "r", "e_g")
