"""A model knows its features: by name in any order, in other units, and what it learned from."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from gpal import GPClassifier, InputError, Measurements
from gpal.arrays import as_measurements
from gpal.model.known_features import in_units
from gpal.model.training_sample import MOST, TrainingSample

NAMES, UNITS = ("flux", "index", "curvature"), ("mJy", "", "log10(erg)")


@pytest.fixture(scope="module")
def sources():
    rng = np.random.default_rng(0)
    y = np.repeat(["agn", "psr"], 30)
    X = rng.normal(size=(60, 3)) + (y == "psr")[:, None] * [2.0, 1.0, 0.3]
    X_err = rng.uniform(0.05, 0.4, size=X.shape)
    X_err[3, 1] = np.inf
    return Measurements(X, X_err, NAMES, UNITS), y


@pytest.fixture(scope="module")
def model(sources):
    return GPClassifier(n_inducing=8, max_rounds=1).fit(*sources)


def close(p, q):
    np.testing.assert_allclose(p, q, rtol=0, atol=1e-12)


def frames(sources, order=NAMES):
    values, errors = (pd.DataFrame(a, columns=NAMES) for a in (sources.X, sources.X_err))
    return values[list(order)], errors


def test_measurements_in_another_order(model, sources):
    shuffled = sources[0].select(["curvature", "flux", "index"])
    close(model.predict_proba(shuffled), model.predict_proba(sources[0]))
    close(model.predict_proba_std(shuffled), model.predict_proba_std(sources[0]))


@pytest.mark.parametrize("errors_as", ["a frame", "an array", "a covariance", "one per feature"])
def test_a_data_frame_in_another_order(sources, errors_as):
    X, X_err = np.nan_to_num(sources[0].X), np.where(sources[0].measured, sources[0].X_err, 0.3)
    order = [2, 0, 1]
    frame = pd.DataFrame(X, columns=NAMES)
    more = frame.iloc[:, order].assign(name="S1").iloc[:, [3, 0, 1, 2]]
    variances = X_err[:, :, None] ** 2 * np.eye(3)
    fitted, shuffled, of = {
        "a frame": (
            {"X_err": pd.DataFrame(X_err, columns=NAMES)},
            {"X_err": pd.DataFrame(X_err, columns=NAMES).iloc[:, ::-1].assign(other=0.1)},
            more,
        ),
        "an array": ({"X_err": X_err}, {"X_err": X_err[:, order]}, frame.iloc[:, order]),
        "a covariance": (
            {"X_cov": variances},
            {"X_cov": variances[:, order][:, :, order]},
            frame.iloc[:, order],
        ),
        "one per feature": (
            {"X_err": [0.1, 0.2, 0.3]},
            {"X_err": [0.3, 0.1, 0.2]},
            frame.iloc[:, order],
        ),
    }[errors_as]
    model = GPClassifier(n_inducing=8, max_rounds=0).fit(frame, sources[1], **fitted)
    close(model.predict_proba(of, **shuffled), model.predict_proba(frame, **fitted))
    assert model.can_refit(frame, sources[1], **fitted)


def test_what_is_missing_is_named(model, sources):
    values, errors = frames(sources[0])
    lacks = "fitted with the feature 'index', which the sources lack; they have flux, curvature"
    with pytest.raises(InputError, match=lacks):
        model.predict_proba(values.drop(columns="index"), errors)
    with pytest.raises(InputError, match=lacks):
        model.predict_proba(sources[0].select(["flux", "curvature"]))
    with pytest.raises(InputError, match="'index', which the X_err lack"):
        model.predict_proba(values[["index", "flux", "curvature"]], errors[["flux", "curvature"]])
    with pytest.raises(InputError, match="X_err is for 3 features and X has 4 columns"):
        model.predict_proba(values.assign(other=1.0), sources[0].X_err)
    with pytest.raises(InputError, match="X has 2 columns 'flux'; keep one"):
        model.predict_proba(values.assign(other=1.0).set_axis([*NAMES, "flux"], axis=1), 0.0)


def test_without_error_bars_a_model_that_had_them_says_so(model, sources):
    values, _ = frames(sources[0])
    with pytest.raises(InputError, match="was fitted with error bars: pass X_err"):
        model.predict_proba(values.fillna(0.0))


def test_other_units_are_converted(model, sources):
    other = replace(
        sources[0],
        X=sources[0].X * [1e-3, 1, 1] - [0, 0, 7],
        X_err=sources[0].X_err * [1e-3, 1, 1],
        units=("Jy", "", "log10(J)"),
    )
    close(model.predict_proba(other), model.predict_proba(sources[0]))


def test_a_covariance_in_other_units_is_converted(sources):
    rng = np.random.default_rng(1)
    part = rng.normal(size=(60, 3, 3)) * 0.2
    covariance = part @ part.transpose(0, 2, 1)
    X = np.nan_to_num(sources[0].X)
    of = [
        Measurements(
            X * [f, 1, 1],
            np.sqrt(np.einsum("ndd->nd", c)),
            NAMES,
            (unit, "", ""),
            covariance=c,
        )
        for f, unit in ((1, "mJy"), (1e-3, "Jy"))
        for c in [covariance * np.multiply.outer([f, 1, 1], [f, 1, 1])]
    ]
    model = GPClassifier(n_inducing=8, max_rounds=0).fit(of[0], sources[1])
    close(model.predict_proba(of[1]), model.predict_proba(of[0]))


def test_names_that_the_fit_had_none_of_are_said(sources):
    X, X_err = np.nan_to_num(sources[0].X), np.where(sources[0].measured, sources[0].X_err, 1.0)
    model = GPClassifier(n_inducing=8, max_rounds=0).fit(X, sources[1], X_err)
    P = model.predict_proba(X, X_err)
    with pytest.warns(UserWarning, match="without names of features: flux, index, curvature are"):
        close(model.predict_proba(Measurements(X, X_err, NAMES)), P)
    close(model.predict_proba(as_measurements(X, X_err)), P)


@pytest.mark.parametrize("transform", ["none", "log10", "ln", "sqrt"])
def test_units_under_a_transform_are_those_of_the_values(transform):
    """Converted before it or after it; the unit of the other feature is not stated by the fit."""
    mJy = Measurements([[2.0, 1.0], [7.0, 3.0]], 0.3, ("flux", "index"), ("mJy", "counts"))
    Jy = Measurements([[2e-3, 1.0], [7e-3, 3.0]], [3e-4, 0.3], mJy.names, ("Jy", "counts"))
    wanted, other = (part.transform("flux", transform) for part in (mJy, Jy))
    found = in_units(other, (wanted.units[0], ""))
    np.testing.assert_allclose(found.X, wanted.X)
    np.testing.assert_allclose(found.X_err, wanted.X_err)
    assert found.units == wanted.units


def test_an_asinh_has_no_other_unit():
    sources = Measurements([[2.0]], 0.3, ("flux",), ("Jy",)).transform("flux", "asinh")
    with pytest.raises(InputError, match=r"'flux' is in 'asinh\(Jy\)'.* do not convert"):
        in_units(sources, ("asinh(mJy)",))


@pytest.mark.parametrize("unit", ["mag", "GeV", "log10(Jy)", "counts per night"])
def test_units_that_do_not_convert_are_refused(model, sources, unit):
    other = replace(sources[0], units=(unit, *UNITS[1:]))
    with pytest.raises(InputError, match=r"'flux' is in .*the model was fitted to 'mJy'"):
        model.predict_proba(other)


def test_the_training_sample_is_in_the_file(model, sources, tmp_path):
    model.save(tmp_path / "model.npz")
    loaded = GPClassifier.load(tmp_path / "model.npz")
    X = sources[0].X
    for of in (model.training_, loaded.training_):
        np.testing.assert_array_equal(of.values, X)
        np.testing.assert_array_equal(of.lower, np.nanmin(X, axis=0))
        np.testing.assert_array_equal(of.upper, np.nanmax(X, axis=0))
    again = loaded.refit(sources[0][:40], sources[1][:40])
    np.testing.assert_array_equal(again.training_.values, X[:40])
    parts = [(sources[0][k::2], sources[1][k::2]) for k in (0, 1)]
    batched = model.refit_batches(parts).training_
    np.testing.assert_array_equal(batched.upper, model.training_.upper)
    assert len(batched.values) == 60


def test_a_batch_without_a_feature_leaves_its_range():
    whole, part = (
        TrainingSample.of(Measurements(X, 0.0 if np.isfinite(X).all() else [0.0, np.inf], "ab"))
        for X in (np.array([[14.0, 15.0], [16.0, 17.0]]), np.array([[13.0, np.nan]]))
    )
    for both in (whole.with_more(part), part.with_more(whole)):
        assert both.lower.tolist() == [13.0, 15.0] and both.upper.tolist() == [16.0, 17.0]
    assert np.isnan([part.lower[1], part.upper[1]]).all()
    assert np.isnan(TrainingSample.from_arrays(**part.to_arrays()).lower[1])


def test_of_many_sources_some_are_kept():
    X = np.random.default_rng(0).normal(size=(MOST + 500, 2))
    sample = TrainingSample.of(Measurements(X, 0.0, ("a", "b")))
    assert sample.values.shape == (MOST, 2) and len(np.unique(sample.values[:, 0])) == MOST
    assert sample.upper[0] == X[:, 0].max()
    both = sample.with_more(TrainingSample.of(Measurements(X[:9] + 9, 0.0, ("a", "b"))))
    assert len(both.values) == MOST and both.upper[1] == (X[:9, 1] + 9).max()


def test_a_sample_of_many_batches_has_as_many_of_each_as_they_are_long():
    """Shares of 1 to 3 in six batches; each within five standard deviations."""
    sizes, sample = [20_000, 5_000, 60_000, 30_000, 5_000, 60_000], None
    for k, size in enumerate(sizes):
        batch = TrainingSample.of(Measurements(np.full((size, 1), float(k)), 0.0, ("a",)))
        sample = batch if sample is None else sample.with_more(batch)
    found, share = np.bincount(sample.values[:, 0].astype(int)), np.array(sizes) / sum(sizes)
    assert sample.sources == sum(sizes) and found.sum() == MOST
    np.testing.assert_array_less(np.abs(found - MOST * share), 5 * np.sqrt(MOST * share))
