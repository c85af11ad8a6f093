"""Values and errors side by side: features go by name, rows by place, and a frame whose rows are
others is no error of these values."""

from __future__ import annotations

import copy
import pickle
import warnings
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
from astropy.table import QTable, Table
from sklearn.model_selection import GridSearchCV, cross_val_predict, train_test_split

from gpal import GPClassifier, InputError, Measurements, NoisyInputGP
from gpal.arrays import as_measurements

rng = np.random.default_rng(0)
VALUES = rng.normal(size=(40, 2))
ERRORS = np.abs(rng.normal(size=(40, 2))) * 0.2
Y = np.where(VALUES[:, 0] > 0, "bll", "psr")
X, X_err = (pd.DataFrame(values, columns=["flux", "index"]) for values in (VALUES, ERRORS))
close = partial(np.testing.assert_allclose, rtol=1e-9)  # frames lie otherwise in memory
FEW = dict(max_rounds=0, n_inducing=6)


def test_errors_of_other_rows_are_refused():
    message = r"row 0 of X is '0' and of X_err '39': give X_err\.loc\[X\.index\]"
    with pytest.raises(InputError, match=message):
        GPClassifier(**FEW).fit(X, Y, X_err=X_err[::-1])
    with pytest.raises(InputError, match=message):
        as_measurements(X, X_err[::-1])
    model = GPClassifier(**FEW).fit(X, Y, X_err=X_err)
    with pytest.raises(InputError, match="row 0 of X is '0' and of X_err '3'"):
        model.predict_proba(X[:3], X_err[3:6])
    expected = model.predict_proba(X[:3], X_err[:3])
    in_order = X_err[::-1].loc[X.index[:3]]
    np.testing.assert_array_equal(model.predict_proba(X[:3], in_order), expected)


@pytest.mark.parametrize("model", [GPClassifier(**FEW), NoisyInputGP(**FEW)])
@pytest.mark.filterwarnings("default:row 0 of X")
def test_labels_or_weights_of_other_rows_are_said(model):
    """scikit-learn's permutation test shuffles them on purpose: no error."""
    y = pd.Series(Y if isinstance(model, GPClassifier) else VALUES[:, 0])
    with pytest.warns(UserWarning, match="and of y '39': they are taken row by row"):
        model.fit(X, y[::-1])
    with pytest.warns(UserWarning, match="and of sample_weight '39'"):
        model.fit(X, y, sample_weight=pd.Series(np.linspace(1, 2, 40))[::-1])


@pytest.mark.parametrize("errors", [ERRORS[:, :1], ERRORS[:1], ERRORS[:, 0], [0.1]])
def test_errors_of_one_feature_are_not_those_of_all(errors):
    model = GPClassifier(**FEW).fit(VALUES, Y, ERRORS)
    for use in (as_measurements, model.predict_proba):
        with pytest.raises(InputError, match=r"X has \(40, 2\): give the same shape, one error"):
            use(VALUES, errors)
    with pytest.raises(InputError, match=r"X has \(40, 2\): give the same shape, one error"):
        Measurements(VALUES, errors, ("flux", "index"))


def test_named_errors_beside_an_array_are_in_the_order_of_the_fit():
    model = GPClassifier(**FEW).fit(X, Y, X_err=X_err)
    expected = model.predict_proba(X, X_err)
    several = pd.Series({"index": 0.5, "flux": 0.1})
    with pytest.warns(UserWarning, match="valid feature names"):
        close(model.predict_proba(VALUES, X_err[["index", "flux"]]), expected)
        close(model.predict_proba(VALUES, several), model.predict_proba(X, several))
        with pytest.raises(InputError, match="X_err has errors for flux and X has flux, index"):
            model.predict_proba(VALUES, several[["flux"]])
        close(model.predict_proba(VALUES, ERRORS), expected)


def test_an_error_for_each_feature_goes_by_name():
    by_name = pd.Series({"index": 0.5, "flux": 0.1})
    np.testing.assert_array_equal(as_measurements(X, by_name).X_err[3], [0.1, 0.5])
    model = GPClassifier(**FEW).fit(X, Y, X_err=by_name)
    expected = model.predict_proba(X, [0.1, 0.5])
    wider = X.assign(other=1.0)[["other", "index", "flux"]]
    np.testing.assert_array_equal(model.predict_proba(X, by_name), expected)
    np.testing.assert_array_equal(model.predict_proba(wider, by_name), expected)
    with pytest.raises(InputError, match="X_err has errors for flux and X has flux, index"):
        as_measurements(X, by_name[["flux"]])


@pytest.mark.parametrize("columns", [[0, 1], [7, 3], ["flux", 1]])
def test_columns_may_be_numbers(columns):
    values, errors = (part.set_axis(columns, axis=1) for part in (X, X_err))
    model = GPClassifier(**FEW).fit(values, Y, X_err=errors)
    expected = GPClassifier(**FEW).fit(VALUES, Y, X_err=ERRORS).predict_proba(VALUES, ERRORS)
    other = columns[::-1]
    close(model.predict_proba(values[other], errors), expected)
    close(model.predict_proba(values[other], errors[other]), expected)
    fitted = GPClassifier(**FEW).fit(values, Y, X_err=errors[other])
    close(fitted.predict_proba(values, errors), expected)


def test_numbers_and_the_same_numbers_as_text_are_one_name():
    text, numbers = (X.set_axis(names, axis=1) for names in (["0", "1"], [0, 1]))
    model = GPClassifier(**FEW).fit(text, Y)
    expected = model.predict_proba(text)
    np.testing.assert_array_equal(model.predict_proba(numbers[[1, 0]]), expected)


@pytest.mark.parametrize(
    "table",
    [Table({"flux": VALUES[:, 0]}), QTable({"flux": VALUES[:, 0]})],
)
def test_a_table_of_astropy_says_what_to_give(table):
    with pytest.raises(InputError, match=r"X is an astropy Q?Table; give X\.to_pandas\(\)"):
        GPClassifier().fit(table, Y)
    with pytest.raises(InputError, match="X_err is an astropy"):
        as_measurements(X, table)


@pytest.mark.parametrize(
    ("errors", "message"),
    [
        ("small", "X_err is 'small', of which no array of numbers can be made"),
        ({"flux": 0.1}, "X_err is {'flux': 0.1}, of which no array"),
        ([[0.1, 0.2], [0.1]], "of which no array of numbers can be made"),
        ([0.1, "b"], r"row 1 of X_err is 'b', which is no number \(1 such in all\)"),
        (np.full((40, 2), "2020-01-01", "M8[D]"), "column '0', row 0 of X_err is "),
        (np.full((40, 2), 1j), "X_err is array"),
        (X_err.assign(index="wide"), "column 'index', row 0 of X_err is 'wide', which is no"),
        (X_err.astype("Float64").mask(X_err > 0.3), "has error NaN"),
    ],
)
def test_errors_that_are_no_numbers(errors, message):
    with pytest.raises(InputError, match=message):
        GPClassifier().fit(X, Y, X_err=errors)


def test_a_frame_of_pandas_own_numbers():
    model = GPClassifier(**FEW).fit(X, Y, X_err=X_err)
    own = model.predict_proba(X.astype("Float64"), X_err.astype("Float64"))
    np.testing.assert_array_equal(own, model.predict_proba(X, X_err))


def test_tools_that_make_an_array_of_measurements_are_told_of_those_that_do_not():
    rng, y = np.random.default_rng(0), np.arange(20) % 2
    sources = Measurements(rng.normal(size=(20, 2)), 0.1, ("a", "b"))
    rows, _, labels, _ = train_test_split(sources, y)  # scikit-learn takes them for a list of rows
    small = GPClassifier(max_rounds=0, n_inducing=4)
    search = GridSearchCV(small, {"n_inducing": [3]}, cv=2, error_score="raise")
    for refused in (
        lambda: np.asarray(sources),
        lambda: np.array([sources], dtype=object),
        lambda: cross_val_predict(small, sources, y, cv=2),
        lambda: search.fit(sources, y),
        lambda: small.fit(rows, labels),
        lambda: small.fit(sources, y).predict(rows),
    ):
        with pytest.raises(InputError, match=r"packed=True, or use gpal\.cross_validate"):
            refused()
    again = pickle.loads(pickle.dumps(copy.deepcopy(replace(sources, units=("x", "y")))))
    assert again.units == ("x", "y") and sources == sources and sources != again.names
    assert "20 sources" in repr(pd.DataFrame({"of": [sources]})["of"][0])


def test_a_packed_frame_whose_second_half_is_not_the_errors_of_the_first():
    """As a step that chooses columns leaves it."""
    rng, y = np.random.default_rng(1), np.arange(20) % 2
    numbers = np.abs(rng.normal(size=(20, 4)))
    model = GPClassifier(packed=True, max_rounds=0, n_inducing=4)

    def frame(names):
        return pd.DataFrame(numbers, columns=names.split())

    for names in ("g r g_err r_err", "W1mag W2mag e_W1mag e_W2mag", "g r d_g d_r"):
        model.fit(frame(names), y)
    for names, of in (("g r z g_err", "g"), ("g r r_err g_err", "r")):
        error = names.split()[-2 if of == "r" else -1]
        refused = pytest.raises(InputError, match=f"takes '{error}' for .* it is that of '{of}'")
        with warnings.catch_warnings(), refused:
            warnings.simplefilter("ignore")
            model.fit(frame(names), y)
    with pytest.warns(UserWarning, match="takes 'z' for the error of 'g', 'i' ") as told:
        model.fit(frame("g r z i"), y)
    assert told[0].filename == __file__
    with pytest.warns(UserWarning, match="takes 'g_ivar' for the error of 'g', 'r_ivar' "):
        model.fit(frame("g r g_ivar r_ivar"), y)
    model.fit(numbers, y)
