"""Sources made fainter: moments against what is measured of noise, and what stays as it is."""

from dataclasses import replace

import numpy as np
import pytest
from astropy.table import Table

from gpal import load_catalog
from gpal.catalog import Fainter
from gpal.errors import InputError
from gpal.limits import Limits

N, S, FAINT = 20_000, 20.0, 5.0
Q = FAINT / S
MAPPING = {
    "id": "name",
    "class": "kind",
    "significance": "S",
    "features": {
        "flux": {"column": "F", "error": "e_F", "transform": "log10", "fainter": "in proportion"},
        **{
            f"flux_{transform}": {
                **{"column": "F", "error": "e_F", "fainter": "in proportion"},
                **({"transform": transform} if transform != "itself" else {}),
            }
            for transform in ("itself", "sqrt", "asinh")
        },
        "index": {"column": "G", "error": "e_G"},
        "colour": {"column": "H", "error": "e_H"},
        "curved": {"column": "C", "error": "none", "transform": "asinh", "fainter": "significance"},
        "varies": {
            **{"column": "V", "error": "none", "transform": "log10", "fainter": "chi-square"},
            "degrees_of_freedom": 9,
        },
        "energy": {"column": "E", "error": "none"},
    },
}


@pytest.fixture(scope="module")
def catalog(tmp_path_factory):
    """N labelled sources alike, at S, and one target at FAINT."""
    n, rng = N + 1, np.random.default_rng(0)
    table = Table(
        {
            "name": [f"s{i}" for i in range(n)],
            "kind": ["psr"] * N + [""],
            "S": [S] * N + [FAINT],
            **{"F": np.full(n, 100.0), "e_F": np.full(n, 5.0)},
            **{"G": np.full(n, 2.0), "e_G": np.full(n, 0.1)},
            **{"H": np.full(n, 1.0), "e_H": np.full(n, 0.2)},
            **{"C": np.full(n, 8.0), "V": rng.chisquare(9, n), "E": np.full(n, 3.0)},
        }
    )
    path = tmp_path_factory.mktemp("fainter") / "sources.ecsv"
    table.write(path)
    return load_catalog(path, mapping=MAPPING)


@pytest.fixture(scope="module")
def known(catalog):
    return catalog.labelled(["psr"]).measurements


@pytest.fixture(scope="module")
def seen(catalog, known):
    return Fainter.of(catalog.with_classes(["psr"]))(known, random_state=1)


def column(sources, name):
    return sources.X[:, sources.names.index(name)]


def error(sources, name):
    return sources.X_err[:, sources.names.index(name)]


def test_a_flux_falls_and_its_error_in_units_of_the_flux_stays(seen):
    flux = 10 ** column(seen, "flux")
    np.testing.assert_allclose(flux, 100 * Q)
    np.testing.assert_allclose(error(seen, "flux") * np.log(10) * flux, 5.0)


@pytest.mark.parametrize(
    "transform, back, slope",
    [
        ("itself", lambda x: x, lambda x: 1.0),
        ("sqrt", np.square, lambda x: 0.5 / np.sqrt(x)),
        ("asinh", np.sinh, lambda x: 1 / np.sqrt(1 + x**2)),
    ],
)
def test_so_does_that_of_a_flux_of_any_transform(seen, transform, back, slope):
    name = f"flux_{transform}"
    np.testing.assert_allclose(back(column(seen, name)), 100 * Q)
    np.testing.assert_allclose(error(seen, name), 5.0 * slope(100 * Q), rtol=1e-3)


def test_what_has_an_error_scatters_as_the_larger_one_says(seen):
    """Noise of the fainter source: that of the brighter one, already in the value, and the rest."""
    index = column(seen, "index")
    np.testing.assert_allclose(error(seen, "index"), 0.1 / Q)
    added = (0.1 / Q) ** 2 - 0.1**2
    assert index.mean() == pytest.approx(2.0, abs=4 * np.sqrt(added / N))
    assert index.var() == pytest.approx(added, rel=0.05)


def test_a_significance_falls_and_has_unit_noise(seen):
    """8 sigma at S = 20 are 2 at S = 5; below 0 there is none."""
    curved = np.sinh(column(seen, "curved"))
    ε = np.random.default_rng(7).normal(size=10**6)
    expected = np.maximum(8 * Q + np.sqrt(1 - Q**2) * ε, 0)
    assert curved.mean() == pytest.approx(expected.mean(), abs=0.03)
    assert curved.std() == pytest.approx(expected.std(), rel=0.03)


def test_the_statistic_of_a_constant_source_keeps_its_distribution(catalog, seen):
    """Chi-square with 9 degrees of freedom before and after: mean 9, variance 18."""
    varies = 10 ** column(seen, "varies")
    assert varies.mean() == pytest.approx(9, abs=0.15)
    assert varies.var() == pytest.approx(18, rel=0.05)


def test_the_statistic_of_a_variable_source_falls_with_the_square(catalog, known):
    excess = 160.0
    X = known.X.copy()
    X[:, known.names.index("varies")] = np.log10(9 + excess)
    seen = Fainter.of(catalog.with_classes(["psr"]))(replace(known, X=X))
    assert (10 ** column(seen, "varies")).mean() == pytest.approx(9 + excess * Q**2, abs=0.2)


def test_all_else_stays(seen, known):
    np.testing.assert_array_equal(column(seen, "energy"), column(known, "energy"))
    assert (error(seen, "energy") == 0).all()


def test_correlated_errors_scatter_together(catalog, known):
    d = len(known.names)
    i, j = known.names.index("index"), known.names.index("colour")
    covariance = np.zeros((N, d, d))
    np.einsum("ndd->nd", covariance)[:] = known.X_err**2
    covariance[:, i, j] = covariance[:, j, i] = 0.8 * 0.1 * 0.2
    seen = Fainter.of(catalog.with_classes(["psr"]))(replace(known, covariance=covariance))
    added = np.cov(seen.X[:, i], seen.X[:, j])
    expected = (1 / Q**2 - 1) * covariance[0][np.ix_([i, j], [i, j])]
    np.testing.assert_allclose(added, expected, rtol=0.06)
    np.testing.assert_allclose(np.sqrt(np.einsum("ndd->nd", seen.covariance)), seen.X_err)
    np.testing.assert_allclose(seen.covariance[:, i, j], covariance[:, i, j] / Q**2)


def test_what_was_not_measured_and_who_has_no_significance_stay(catalog, known):
    some = known[:4]
    X, X_err = some.X.copy(), some.X_err.copy()
    X[0], X_err[0] = np.nan, np.inf
    stranger = np.array([some.ids[0], some.ids[1], "unknown", some.ids[3]])
    seen = Fainter.of(catalog.with_classes(["psr"]))(replace(some, X=X, X_err=X_err, ids=stranger))
    assert not seen.measured[0].any()
    np.testing.assert_array_equal(seen.X[2], some.X[2])
    np.testing.assert_array_equal(seen.X_err[2], some.X_err[2])
    assert (seen.X_err[1] >= some.X_err[1]).all()


def test_the_same_seed_gives_the_same_sources(catalog, known):
    fainter = Fainter.of(catalog.with_classes(["psr"]))
    one, again, other = (fainter(known[:50], random_state=s) for s in (3, 3, 4))
    np.testing.assert_array_equal(one.X, again.X)
    assert (one.X != other.X).any()


def test_significances_are_drawn_from_the_targets_below_each_source():
    catalog = load_catalog("4fgl-dr4")
    known = catalog.labelled()
    seen = Fainter.of(catalog)(known.measurements)
    q = 10 ** (column(seen, "log_significance") - column(known.measurements, "log_significance"))
    assert (q <= 1).all() and (q < 1).mean() > 0.9
    S = np.asarray(catalog.table["Signif_Avg"], float)[catalog.is_target]
    drawn = 10 ** column(seen, "log_significance")[q < 1]
    assert np.isin(np.round(drawn, 4), np.round(S[np.isfinite(S)], 4)).all()


def test_a_floor_is_one_for_fainter_sources_too():
    """The paper's features take the logarithm of the curvature's significance, from .1 on."""
    catalog = load_catalog("4fgl", features="paper")
    seen = Fainter.of(catalog)(catalog.labelled().measurements)
    curved = column(seen, "ln_curvature")
    assert np.nanmin(curved) == pytest.approx(np.log(0.1)) and (curved < -2).mean() > 0.05


def test_a_flux_does_not_fall_below_its_floor(tmp_path):
    flux = {"column": "F", "floor": 5.0, "transform": "log10", "fainter": "in proportion"}
    path = tmp_path / "one.csv"
    path.write_text("name,kind,S,F,F_err\na,psr,20,8,.4\nb,,5,9,.4\n")
    mapping = {"id": "name", "class": "kind", "significance": "S", "features": {"f": flux}}
    catalog = load_catalog(path, mapping=mapping)
    seen = Fainter.of(catalog)(catalog.labelled().measurements)
    assert seen.X[0, 0] == pytest.approx(np.log10(5))
    assert seen.X_err[0, 0] == pytest.approx(0.4 / 5 / np.log(10))


def test_a_hardness_ratio_and_its_error_stay_within_one():
    """As in the catalog; the errors of what is not at that limit grow as all others do."""
    names = ["hardness_1GeV", "hardness_3GeV", "index"]
    catalog = load_catalog("4fgl-dr4", features=names)
    known = catalog.labelled().measurements
    known = known[known.measured[:, 2]]
    seen, some = Fainter.of(catalog)(known), known.measured[:, :2]
    assert (np.abs(seen.X[:, :2][some]) <= 1).all() and (seen.X_err[:, :2][some] <= 1).all()
    q = known.X_err[:, 2] / seen.X_err[:, 2]
    grown = np.minimum(known.X_err[:, :2] / q[:, None], 1.0)
    np.testing.assert_allclose(seen.X_err[:, :2][some], grown[some], rtol=1e-12)
    assert (grown[some] == 1).any()
    diagonal = np.einsum("ndd->nd", seen.covariance)[:, :2]
    np.testing.assert_allclose(np.sqrt(diagonal[some]), seen.X_err[:, :2][some])


@pytest.mark.parametrize("ending", ["ecsv", "parquet", "fits"])
@pytest.mark.parametrize("of_a_feature", [False, True])
def test_a_sentinel_is_no_significance(tmp_path, ending, of_a_feature):
    """And stays in the table, which a reader may have made read-only."""
    table = Table({"name": list("abcd"), "kind": ["psr", "psr", "", ""], "F_err": [0.4] * 4})
    table["S"], table["F"] = [999.0, 20.0, 5.0, 999.0], [8.0, 8.0, 9.0, 9.0]
    path = tmp_path / f"four.{ending}"
    table.write(path)
    mapping = {"id": "name", "class": "kind", "significance": "S", "features": {"f": "F"}}
    if of_a_feature:
        mapping["features"] |= {"s": {"column": "S", "error": "none", "sentinels": [999]}}
        mapping["feature_sets"] = {"default": ["f"]}
    else:
        mapping["sentinels"] = [999]
    catalog = load_catalog(path, mapping=mapping, cuts="S > 4")
    catalog = load_catalog(path, mapping=mapping)
    fainter = Fainter.of(catalog)
    assert catalog.table["S"].tolist() == [999.0, 20.0, 5.0, 999.0]
    assert fainter.targets.tolist() == [5.0]
    np.testing.assert_allclose(fainter(catalog.labelled().measurements).X_err[:, 0], [0.4, 1.6])


def test_a_limit_is_moved_and_widened_by_the_error_that_it_has(catalog, known):
    """That of a colour of which one band was measured; an exact one stays where it is."""
    j, k = (known.names.index(name) for name in ("index", "colour"))
    X, X_err = known.X.copy(), known.X_err.copy()
    X[:, [j, k]], X_err[:, [j, k]] = np.nan, np.inf
    limits = Limits.none(X.shape)
    limits.value[:, [j, k]], limits.confidence[:, [j, k]], limits.error[:, j] = 1.0, 0.95, 0.1
    seen = Fainter.of(catalog.with_classes(["psr"]))(
        replace(known, X=X, X_err=X_err, limits=limits)
    ).limits
    np.testing.assert_allclose(seen.error[:, j], 0.1 / Q)
    assert seen.value[:, j].var() == pytest.approx((0.1 / Q) ** 2 - 0.1**2, rel=0.05)
    assert (seen.value[:, k] == 1.0).all() and (seen.error[:, k] == 0).all()


def test_a_logarithm_of_a_significance_needs_a_floor(catalog, tmp_path):
    path = tmp_path / "two.csv"
    path.write_text("name,kind,S,C\na,psr,9,1\nb,,5,2\n")
    made = {"column": "C", "error": "none", "transform": "ln", "fainter": "significance"}
    mapping = {"id": "name", "significance": "S", "features": {"c": made}}
    with pytest.raises(InputError, match="give it a 'floor'"):
        Fainter.of(load_catalog(path, mapping={**mapping, "class": "kind"}))


def test_a_schema_without_a_significance_is_refused():
    with pytest.raises(InputError, match="does not say how significant a source is"):
        Fainter.of(load_catalog("lsst-dc2")[:50])


@pytest.mark.parametrize(
    ("feature", "message"),
    [
        ({"column": "V", "fainter": "somehow"}, "fainter = 'somehow' is not one of"),
        ({"column": "V", "fainter": "chi-square"}, "degrees_of_freedom, above 0"),
        ({"column": "V", "degrees_of_freedom": 3}, "degrees_of_freedom, above 0"),
    ],
)
def test_a_schema_that_says_it_wrongly_is_refused(catalog, tmp_path, feature, message):
    path = tmp_path / "one.ecsv"
    Table({"V": [1.0, 2.0]}).write(path)
    with pytest.raises(InputError, match=message):
        load_catalog(path, mapping={"features": {"v": {**feature, "error": "none"}}})


def test_a_significance_with_an_error_is_refused(catalog):
    errors = np.where(np.isinf(catalog.X_err), np.inf, 1.0)
    measurements = replace(catalog.measurements, X_err=errors, covariance=None)
    noisy = replace(catalog, measurements=measurements)
    with pytest.raises(InputError, match="'curved' has errors, and a significance has noise of 1"):
        Fainter.of(noisy)
