"""Values and errors travel together: against Monte Carlo, and after a round trip."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from astropy import units as u
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import norm, qmc

from gpal.arrays import as_measurements
from gpal.errors import InputError
from gpal.measurements import (
    TRANSFORMS,
    Measurements,
    pack,
    symmetric_error,
    unpack,
)

FEW = settings(deadline=None, max_examples=25)
shapes = st.tuples(st.integers(1, 5), st.integers(1, 4))
seeds = st.integers(0, 2**32 - 1)


def sample(seed: int, n: int = 6, d: int = 3, covariance: bool = True) -> Measurements:
    """Positive values, one exact, one not measured, with a covariance per source."""
    rng = np.random.default_rng(seed)
    factor = rng.normal(size=(n, d, d)) * 0.1
    covariances = factor @ factor.transpose(0, 2, 1)
    X_err = np.sqrt(np.diagonal(covariances, axis1=1, axis2=2)).copy()
    X_err[0, 0], covariances[0, 0, :], covariances[0, :, 0] = 0.0, 0.0, 0.0
    if not covariance:
        X_err[-1, -1] = np.inf
    return Measurements(
        rng.uniform(1.0, 9.0, size=(n, d)),
        X_err,
        names=tuple("abcdefgh"[:d]),
        units=("ph", "", "MeV", "", "", "", "", "")[:d],
        ids=[f"J{i:04d}" for i in range(n)],
        covariance=covariances if covariance else None,
    )


def equal(a: Measurements, b: Measurements) -> None:
    np.testing.assert_array_equal(a.X, b.X)
    np.testing.assert_array_equal(a.X_err, b.X_err)
    np.testing.assert_array_equal(a.ids, b.ids)
    assert (a.names, a.units) == (b.names, b.units)
    if a.covariance is None:
        assert b.covariance is None
    else:
        np.testing.assert_array_equal(a.covariance, b.covariance)


def diagonal_is_the_variance(m: Measurements) -> None:
    diagonal = np.diagonal(m.covariance, axis1=1, axis2=2)
    np.testing.assert_allclose(np.sqrt(diagonal), m.X_err, rtol=1e-12, atol=1e-300)


@FEW
@given(
    st.sampled_from(sorted(TRANSFORMS)), st.floats(0.05, 50.0), st.floats(1e-4, 2e-3), st.booleans()
)
def test_transformed_error_is_the_spread_of_transformed_samples(name, x, relative, negative):
    if negative and name in ("none", "asinh"):
        x = -x
    m = Measurements([[x, 1.0]], [[relative * abs(x), 0.2]], names=("a", "b"))
    epsilon = norm.ppf(qmc.Sobol(1, scramble=True, seed=0).random(2**14))[:, 0]
    samples = TRANSFORMS[name][0](x + relative * abs(x) * epsilon)
    out = m.transform("a", name)
    np.testing.assert_allclose(out.X_err[0, 0], samples.std(), rtol=2e-3)
    np.testing.assert_allclose(out.X[0, 0], samples.mean(), atol=samples.std() * 1e-2)
    np.testing.assert_array_equal(out.X_err[:, 1], m.X_err[:, 1])


def test_log10_error_in_closed_form():
    m = Measurements([[100.0]], [[5.0]], names=("flux",), units=("ph",))
    out = m.transform("flux", "log10")
    np.testing.assert_allclose(out.X, 2.0)
    np.testing.assert_allclose(out.X_err, 5.0 / (100.0 * np.log(10.0)))
    assert out.units == ("log10(ph)",)


@FEW
@given(seeds, st.sampled_from(["log10", "ln", "sqrt", "asinh"]))
def test_transformed_covariance_is_that_of_transformed_samples(seed, name):
    m = sample(seed, n=2)
    small = Measurements(m.X, m.X_err * 1e-2, m.names, covariance=m.covariance * 1e-4)
    out = small.transform("b", name)
    diagonal_is_the_variance(out)
    epsilon = norm.ppf(qmc.Sobol(3, scramble=True, seed=1).random(2**12))
    draws = small.X[1] + epsilon @ np.linalg.cholesky(small.covariance[1]).T
    draws[:, 1] = TRANSFORMS[name][0](draws[:, 1])
    scale = np.outer(out.X_err[1], out.X_err[1])
    np.testing.assert_allclose(np.cov(draws.T) / scale, out.covariance[1] / scale, atol=2e-2)


def test_transform_leaves_what_was_not_measured_not_measured():
    m = sample(0, covariance=False).transform("c", "log10")
    assert np.isnan(m.X[-1, -1]) and np.isposinf(m.X_err[-1, -1])
    assert not m.measured[-1, -1] and m.measured[:-1].all()


@FEW
@given(seeds, seeds)
def test_scale_is_undone_by_its_inverse_and_keeps_the_significance(seed, other):
    m = sample(seed)
    rng = np.random.default_rng(other)
    offset, width = rng.normal(size=3), rng.uniform(0.1, 10.0, size=3)
    scaled = m.scale(offset, width)
    diagonal_is_the_variance(scaled)
    back = scaled.scale(-offset / width, 1.0 / width)
    np.testing.assert_allclose(back.X, m.X, rtol=1e-10)
    np.testing.assert_allclose(back.X_err, m.X_err, rtol=1e-10)
    np.testing.assert_allclose(back.covariance, m.covariance, rtol=1e-9, atol=1e-15)
    error = scaled.X_err > 0
    np.testing.assert_allclose(
        ((scaled.X + offset / width) / np.where(error, scaled.X_err, 1.0))[error],
        (m.X / np.where(error, m.X_err, 1.0))[error],
    )


def test_scale_by_a_scalar_is_scale_by_a_constant_vector():
    m = sample(1)
    equal(m.scale(2.0, 4.0), m.scale(np.full(3, 2.0), np.full(3, 4.0)))


@FEW
@given(seeds, st.permutations(["a", "b", "c"]), st.integers(1, 3))
def test_select_takes_columns_of_everything(seed, order, count):
    m, names = sample(seed), order[:count]
    out = m.select(names)
    columns = ["abc".index(name) for name in names]
    np.testing.assert_array_equal(out.X, m.X[:, columns])
    np.testing.assert_array_equal(out.X_err, m.X_err[:, columns])
    np.testing.assert_array_equal(out.covariance, m.covariance[np.ix_(range(6), columns, columns)])
    assert out.names == tuple(names) and out.units == tuple(m.units[j] for j in columns)
    diagonal_is_the_variance(out)


@FEW
@given(seeds, st.lists(st.integers(-6, 5), min_size=1, max_size=8))
def test_indexing_takes_rows_of_everything(seed, rows):
    m = sample(seed)
    out = m[rows]
    np.testing.assert_array_equal(out.X, m.X[rows])
    np.testing.assert_array_equal(out.X_err, m.X_err[rows])
    np.testing.assert_array_equal(out.ids, m.ids[rows])
    np.testing.assert_array_equal(out.covariance, m.covariance[rows])


def test_what_is_masked_was_not_measured():
    X = np.ma.array([[20.1, 0.0], [19.5, 0.3]], mask=[[0, 1], [0, 0]])
    with pytest.raises(InputError, match=r"column 'b', row 0 is nan .*X_err=inf"):
        Measurements(X, [[0.1, 0.1], [0.1, 0.1]], ("a", "b"))
    found = Measurements(X, [[0.1, np.inf], [0.1, 0.1]], ("a", "b"))
    assert np.isnan(found.X[0, 1]) and found.measured.tolist() == [[True, False], [True, True]]
    X_err = np.ma.array([[0.1, 0.0], [0.1, 0.1]], mask=[[0, 1], [0, 0]])
    with pytest.raises(InputError, match="column 'b', row 0 has error NaN"):
        Measurements(X.data, X_err, ("a", "b"))
    kept = found[np.ma.array([True, True], mask=[True, False])]
    assert kept.ids.tolist() == ["1"]
    with pytest.raises(InputError, match="row numbers are masked"):
        found[np.ma.array([0, 1], mask=[True, False])]


@pytest.mark.parametrize(
    "ids",
    [
        np.ma.array(["a", "b", "c"], mask=[False, True, False]),
        pd.Series(["a", None, "c"]),
        ["a", np.nan, "c"],
    ],
)
def test_a_masked_identifier_is_refused(ids):
    with pytest.raises(InputError, match="the identifier of row 1 is m"):
        Measurements(np.ones((3, 1)), 0.1, ("x",), ids=ids)


def test_units_and_columns_that_an_array_would_lose_are_refused():
    with pytest.raises(InputError, match="X_err has the unit 'Jy'"):
        Measurements([[5.0]], [[0.001]] * u.Jy, ("flux",), ("mJy",))
    a, b = pd.DataFrame({"a": [1.0], "b": [2.0]}), pd.DataFrame({"b": [0.1], "a": [0.2]})
    with pytest.raises(InputError, match=r"X_err has the columns b, a and the features are a, b"):
        Measurements(a, b, ("a", "b"))
    assert Measurements(a, b[["a", "b"]], ("a", "b")).X_err.tolist() == [[0.2, 0.1]]
    x, y = a.set_axis(["x"]), b[["a", "b"]].set_axis(["y"])
    with pytest.raises(InputError, match="row 0 of X is 'x' and of X_err 'y'"):
        Measurements(x, y, ("a", "b"))
    numbered = pd.DataFrame([[1.0, 2.0]])
    assert Measurements(numbered, 0.1, ("a", "b")).X.tolist() == [[1.0, 2.0]]


@pytest.mark.parametrize("small", [[[1, 5], [5, 1]], [[1, 0.9], [0.1, 1]]])
def test_a_covariance_of_small_numbers_beside_large_ones_is_checked_too(small):
    covariance = np.zeros((1, 3, 3))
    covariance[0, :2, :2] = 1e-24 * np.array(small)
    covariance[0, 2, 2] = 0.01
    with pytest.raises(InputError, match="covariance of row 0 is none"):
        Measurements([[1.0, 2.0, 3.0]], [[1e-12, 1e-12, 0.1]], "abc", covariance=covariance)
    covariance[0, :2, :2] = 1e-24 * np.array([[1, 0.9], [0.9, 1]])
    Measurements([[1.0, 2.0, 3.0]], [[1e-12, 1e-12, 0.1]], "abc", covariance=covariance)


def test_slices_masks_and_single_rows_agree():
    m = sample(3)
    equal(m[1:4], m[[1, 2, 3]])
    equal(m[np.arange(6) == 2], m[[2]])
    equal(m[2], m[[2]])
    assert len(m[np.zeros(6, bool)]) == 0 and len(m) == 6


@FEW
@given(seeds, st.integers(1, 5), st.booleans())
def test_stack_undoes_slicing(seed, cut, covariance):
    m = sample(seed, covariance=covariance)
    equal(Measurements.stack([m[:cut], m[cut:]]), m)


def test_stacked_errors_without_a_covariance_are_uncorrelated():
    m = sample(0)
    bare = Measurements(m.X, m.X_err, m.names, m.units, m.ids)
    stacked = Measurements.stack([m, bare])
    np.testing.assert_array_equal(stacked.covariance[:6], m.covariance)
    np.testing.assert_array_equal(stacked.covariance[6:], [np.diag(e**2) for e in m.X_err])
    assert Measurements.stack([bare, bare]).covariance is None


def test_parts_alike_count_as_having_the_errors_of_the_whole():
    X_err = np.zeros((4, 3))
    X_err[0, 1], X_err[2, 2] = 0.3, np.inf
    whole = Measurements(np.ones((4, 3)), X_err, ("a", "b", "c"))
    alike, none = whole.with_parts_alike(), [False, False, False]
    assert whole[1:2].have_errors.tolist() == none and whole[:1].have_errors[1]
    for part in (alike, alike[:1], alike[1:2], alike[1:2].scale(1.0, 2.0)):
        assert part.have_errors.tolist() == [False, True, True]
    assert alike[1:2].select(["c", "a"]).have_errors.tolist() == [True, False]
    assert Measurements.stack([whole[1:2], alike[3:]]).have_errors.tolist() == [False, True, True]
    assert Measurements.stack([whole[1:2], whole[3:]]).have_errors.tolist() == none
    equal(alike, whole)
    with pytest.raises(InputError, match="each of 3 features"):
        Measurements(whole.X, whole.X_err, whole.names, noisy=[True])


def test_a_covariance_is_checked_against_the_errors():
    m = sample(0)
    with pytest.raises(InputError, match="other variances than X_err"):
        Measurements(m.X, 2.0 * m.X_err + 0.1, m.names, covariance=m.covariance)
    skew = m.covariance.copy()
    skew[2, 0, 1] += 0.5
    with pytest.raises(InputError, match=r"covariance of row 2 \(J0002\) is none"):
        Measurements(m.X, m.X_err, m.names, ids=m.ids, covariance=skew)


def test_arrays_become_measurements_at_the_door():
    m = sample(4, covariance=False)
    assert as_measurements(m) is m
    made = as_measurements(m.X, m.X_err)
    assert made.names == ("0", "1", "2") and not made.named
    np.testing.assert_array_equal(made.X_err, m.X_err)
    frame = pd.DataFrame(m.X, columns=["a", "b", "c"])
    assert as_measurements(frame, m.X_err).names == ("a", "b", "c")
    np.testing.assert_array_equal(as_measurements(made.X[:2], 0.5).X_err, 0.5)
    np.testing.assert_array_equal(as_measurements(made.X[:2]).X_err, 0.0)
    c = sample(5)
    from_covariance = as_measurements(c.X, X_cov=c.covariance, names=c.names)
    np.testing.assert_allclose(from_covariance.X_err, c.X_err, rtol=1e-12)
    np.testing.assert_array_equal(from_covariance.covariance, c.covariance)
    unmeasured = c.covariance.copy()
    unmeasured[1, 2, 2] = np.inf
    missing = as_measurements(c.X, X_cov=unmeasured)
    assert np.isinf(missing.X_err[1, 2]) and np.isnan(missing.X[1, 2])
    assert (missing.covariance[1, 2, :2] == 0).all()
    with pytest.raises(InputError, match="carry their errors"):
        as_measurements(m, X_err=0.1)
    with pytest.raises(InputError, match="X_err or X_cov, not both"):
        as_measurements(c.X, 0.1, c.covariance)
    with pytest.raises(InputError, match="X_err has shape"):
        as_measurements(c.X, np.ones(2))
    with pytest.raises(InputError, match="X_cov has shape"):
        as_measurements(c.X, X_cov=np.ones((3, 3)))
    negative = np.array(c.covariance)
    negative[1, 2, 2] = -0.04
    with pytest.raises(InputError, match=r"row 1 has negative variance -0\.04 \(1 such in all\)"):
        as_measurements(c.X, X_cov=negative)


@FEW
@given(
    shapes.flatmap(lambda shape: arrays(float, shape, elements=st.floats(-1e6, 1e6))),
    st.floats(0.0, 1e6),
)
def test_unpack_undoes_pack(X, error):
    values, errors = unpack(pack(X, error))
    np.testing.assert_array_equal(values, X)
    np.testing.assert_array_equal(errors, np.full(X.shape, error))


def test_packed_measurements_keep_what_was_not_measured():
    m = sample(2, covariance=False)
    values, errors = unpack(m.pack())
    equal(Measurements(values, errors, m.names, m.units, m.ids), m)


def test_packing_does_not_lose_a_covariance_in_silence():
    with pytest.raises(InputError, match="no place for a covariance"):
        sample(2).pack()


def test_symmetric_error():
    lower, upper = [-3.0, np.nan, 2.0, np.nan], [4.0, 5.0, np.nan, np.nan]
    expected = [np.sqrt(12.5), 5.0, 2.0, np.nan]
    np.testing.assert_allclose(symmetric_error(lower, upper), expected)


def test_the_input_is_copied():
    X, X_err = np.ones((2, 1)), np.ones((2, 1))
    m = Measurements(X, X_err, names=("a",))
    X[:], X_err[:] = 7.0, 7.0
    np.testing.assert_array_equal(m.X, 1.0)
    np.testing.assert_array_equal(m.X_err, 1.0)


@pytest.mark.parametrize(
    "value, error, words",
    [
        (np.nan, 1.0, ("is nan", "X_err=inf")),
        (np.inf, 1.0, ("is inf", "X_err=inf")),
        (-np.inf, 0.0, ("is -inf", "X_err=inf")),
        (1.0, np.nan, ("error NaN", "give 0")),
        (1.0, -0.5, ("negative error -0.5", "1-sigma")),
    ],
)
def test_bad_values_are_named_by_column_row_and_identifier(value, error, words):
    X, X_err = np.ones((4, 3)), np.ones((4, 3))
    X[2, 1], X_err[2, 1] = value, error
    with pytest.raises(InputError) as info:
        Measurements(X, X_err, names=("a", "flux", "c"), ids=["s0", "s1", "4FGL J1", "s3"])
    message = str(info.value)
    assert "\n" not in message
    for word in ("column 'flux'", "row 2", "4FGL J1", "1 such", *words):
        assert word in message


@pytest.mark.parametrize(
    "transform, value", [("log10", 0.0), ("ln", -1.0), ("sqrt", -4.0), ("sqrt", 0.0)]
)
def test_values_outside_a_domain_are_named_by_feature_and_row(transform, value):
    X = np.ones((4, 2))
    X[3, 1] = value
    m = Measurements(X, 0.1, names=("a", "flux"), ids=["s0", "s1", "s2", "4FGL J9"])
    with pytest.raises(InputError) as info:
        m.transform("flux", transform)
    for word in ("feature 'flux'", "row 3", "4FGL J9", transform, "floor"):
        assert word in str(info.value)


@pytest.mark.parametrize(
    "arguments, word",
    [
        (dict(X=np.ones(3), X_err=0.0, names=("a",)), "two-dimensional"),
        (dict(X=[["one", 2.0]], X_err=0.0, names=("a", "b")), "row 0"),
        (dict(X=[[1.0, 2.0], [3.0]], X_err=0.0, names=("a", "b")), "no array of numbers"),
        (dict(X=np.ones((3, 2)), X_err=np.ones(3), names=("a", "b")), "X_err has shape (3,)"),
        (dict(X=np.ones((2, 2)), X_err=0.0, names=("a",)), "2 features"),
        (dict(X=np.ones((2, 2)), X_err=0.0, names=("a", "a")), "different names"),
        (dict(X=np.ones((2, 2)), X_err=0.0, names=("a", "b"), ids=["x"]), "2 identifiers"),
        (dict(X=np.ones((2, 2)), X_err=0.0, names=("a", "b"), units=("m",)), "2 units"),
        (
            dict(X=np.ones((2, 2)), X_err=0.0, names=("a", "b"), covariance=np.zeros((2, 2))),
            "covariance must be (2, 2, 2)",
        ),
    ],
)
def test_shapes_that_do_not_fit(arguments, word):
    with pytest.raises(InputError, match=word.replace("(", r"\(").replace(")", r"\)")):
        Measurements(**arguments)


def test_unknown_names():
    m = sample(0)
    with pytest.raises(InputError, match="no feature 'z'; there are: a, b, c"):
        m.select(["a", "z"])
    with pytest.raises(InputError, match="a feature is named twice among a, a"):
        m.select(["a", "a"])
    with pytest.raises(InputError, match="no feature 'z'"):
        m.transform("z", "log10")
    with pytest.raises(InputError, match="no transform 'cube'"):
        m.transform("a", "cube")
    with pytest.raises(InputError, match="cannot stack"):
        Measurements.stack([m, m.select(["a", "b"])])
    with pytest.raises(InputError, match="even number of columns"):
        unpack(np.ones((2, 3)))


def test_a_comparison_of_what_is_missing_chooses_no_row():
    sources = Measurements(np.arange(6.0).reshape(3, 2), 0.1, ("a", "b"))
    wanted = pd.array([True, None, False], dtype="boolean")
    for rows in (wanted, pd.Series(wanted)):
        assert sources[rows].X.tolist() == [[0.0, 1.0]]
