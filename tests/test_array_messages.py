"""Plain arrays and frames with a value that is no number: column, row and remedy, not a remark that
another library's estimator would take it.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from gpal import GPClassifier, InputError, Measurements, NoisyInputGP
from gpal.metrics import class_index

X = np.random.default_rng(0).normal(size=(30, 3))
Y = np.array(["bll", "fsrq"])[(X[:, 0] > 0).astype(int)]
FEW_POINTS = {"max_rounds": 0, "n_inducing": 5}


def with_value(value, column: int = 2, row: int = 4) -> np.ndarray:
    changed = X.astype(object if isinstance(value, str) else float)
    changed[row, column] = value
    return changed


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("frame", [False, True])
def test_a_value_that_is_not_finite(value, frame):
    bad, good = with_value(value), X
    if frame:
        bad, good = (pd.DataFrame(values, columns=list("abc")) for values in (bad, good))
    message = (
        rf"column '{'c' if frame else 2}', row 4 is {value} \(1 such in all\); give X_err=inf there"
    )
    with pytest.raises(InputError, match=message):
        GPClassifier(max_rounds=0).fit(bad, Y)
    with pytest.raises(InputError, match=message):
        NoisyInputGP(max_rounds=0).fit(bad, X[:, 0])
    fitted = GPClassifier(max_rounds=0, n_inducing=5).fit(good, Y)
    with pytest.raises(InputError, match=message):
        fitted.predict_proba(bad)


def test_text_among_numbers():
    message = r"column '2', row 4 is 'bll', which is no number \(1 such in all\)"
    with pytest.raises(InputError, match=message):
        GPClassifier().fit(with_value("bll"), Y)
    names = pd.DataFrame({"flux": X[:, 0], "Source_Name": [f"4FGL J{i}" for i in range(30)]})
    with pytest.raises(InputError, match=r"column 'Source_Name', row 0 is '4FGL J0', .* leave the"):
        GPClassifier().fit(names, Y)


NAMES = [*Y[:7], None, *Y[8:]]


@pytest.mark.parametrize(
    "y",
    [
        np.where(np.arange(30) == 7, np.nan, Y == "bll"),
        NAMES,
        pd.Categorical(NAMES),
        pd.DataFrame({"class": NAMES}),
        np.where(np.arange(30) == 7, np.nan, Y == "bll")[:, None],
        ["a", "b"] * 3 + ["a", np.nan] + ["a", "b"] * 11,
    ],
)
@pytest.mark.filterwarnings("ignore:A column-vector y")
def test_a_label_that_is_missing(y):
    with pytest.raises(InputError, match=r"y contains NaN: row 7 \(1 such in all\); leave out"):
        GPClassifier().fit(X, y)


def test_text_under_one_of_two_columns_of_one_name():
    frame = pd.DataFrame(with_value("bll"), columns=["a", "b", "b"])
    with pytest.raises(InputError, match="column 'b', row 4 is 'bll'"):
        GPClassifier().fit(frame, Y)


def test_another_mistake_is_not_blamed_on_text_that_is_a_number():
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        GPClassifier().fit(np.full(X.shape, "1_000", dtype=object), Y[1:])


def test_numbers_as_text_are_numbers():
    """As everywhere in scikit-learn."""
    few = dict(max_rounds=0, n_inducing=5)
    P = GPClassifier(**few).fit(X, Y).predict_proba(X)
    np.testing.assert_array_equal(GPClassifier(**few).fit(X.astype(str), Y).predict_proba(X), P)


def test_labels_of_batches_may_be_a_list():
    few = dict(max_rounds=0, n_inducing=5)
    assert GPClassifier(**few).fit_batches([(X, Y.tolist())]).score(X, Y) > 0.8


def test_dates_and_missing_values_of_pandas():
    days = pd.DataFrame({"flux": X[:, 0], "day": pd.date_range("2020", periods=30)})
    with pytest.raises(InputError, match="column 'day', row 0 is '2020-01-01 00:00:00', which is"):
        GPClassifier().fit(days, Y)
    holes = pd.DataFrame(X, columns=list("abc")).astype(object)
    holes.iloc[3, 1] = pd.NA
    with pytest.raises(InputError, match=r"column 'b', row 3 is '<NA>', .* X_err=inf there"):
        GPClassifier().fit(holes, Y)


@pytest.mark.parametrize(
    "y",
    [
        pd.Series(np.arange(30) % 2, dtype="Int64"),
        pd.Series(np.arange(30) % 2 == 0, dtype="boolean"),
        pd.Series(2**60 + np.arange(30) % 2, dtype="Int64"),
    ],
)
def test_classes_of_pandas_own_types_stay_what_they_are(y):
    """scikit-learn makes float64 of them, and one class of two numbers beyond 2⁵³."""
    model = GPClassifier(max_rounds=0, n_inducing=5).fit(X, y)
    assert model.classes_.tolist() == sorted(set(y.tolist()))
    assert model.classes_.dtype == y.dtype.numpy_dtype


@pytest.mark.parametrize("dtype", ["string", object, "category"])
def test_a_label_that_is_missing_for_pandas(dtype):
    y = pd.Series(Y, dtype=object)
    y[7] = pd.NA
    with pytest.raises(InputError, match=r"y contains NaN: row 7 \(1 such in all\)"):
        GPClassifier().fit(X, y.astype(dtype))


@pytest.mark.parametrize(
    "y", [["bll", 5] * 15, np.array(["bll", 5] * 15, object), [*Y[:1], {"bll": 1, 5: 2}, *Y[2:]]]
)
def test_numbers_among_text_are_no_classes(y):
    with pytest.raises(
        InputError, match=r"the label of row 1 is 5 and that of row 0 '(bll|fsrq)': give"
    ):
        GPClassifier().fit(X, y)


@pytest.mark.skipif(not hasattr(np.dtypes, "StringDType"), reason="of NumPy 2")
def test_text_of_any_width_is_as_a_list_of_it():
    kind = np.dtypes.StringDType
    y, words = Y.astype(kind()), Y.tolist()
    model, same = (GPClassifier(**FEW_POINTS).fit(X, labels) for labels in (y, words))
    assert model.classes_.dtype == same.classes_.dtype
    np.testing.assert_array_equal(model.predict_proba(X), same.predict_proba(X))
    np.testing.assert_array_equal(model.refit(X, y).predict(X), same.refit(X, words).predict(X))
    assert model.score(X, y) == model.score(X, words)
    in_batches = GPClassifier(**FEW_POINTS).fit_batches([(X, y)])
    assert in_batches.classes_.tolist() == model.classes_.tolist()
    index = class_index(y, model.predict_proba(X), classes=model.classes_)[0]
    np.testing.assert_array_equal(model.classes_[index], Y)
    ids = np.array([f"4FGL J{i}" for i in range(30)], dtype=kind())
    assert Measurements(X, 0.1, ("a", "b", "c"), ids=ids).ids.tolist() == ids.tolist()
    missing = np.array([*words[:7], None, *words[8:]], dtype=kind(na_object=None))
    with pytest.raises(InputError, match=r"y contains NaN: row 7 \(1 such in all\)"):
        GPClassifier().fit(X, missing)


def test_a_response_that_is_text():
    with pytest.raises(InputError, match=rf"row 0 of y is '{Y[0]}', which is no number \(30 such"):
        NoisyInputGP().fit(X, Y)
    own = pd.Series(X[:, 0], dtype="Float64")
    few = dict(max_rounds=0, n_inducing=5)
    expected = NoisyInputGP(**few).fit(X, X[:, 0]).predict(X)
    np.testing.assert_array_equal(NoisyInputGP(**few).fit(X, own).predict(X), expected)
