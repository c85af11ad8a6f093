"""Plain arrays and frames with a value that is no number: column, row and remedy, not a remark that
another library's estimator would take it.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from gpal import GPClassifier, InputError, NoisyInputGP

X = np.random.default_rng(0).normal(size=(30, 3))
Y = np.array(["bll", "fsrq"])[(X[:, 0] > 0).astype(int)]


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
