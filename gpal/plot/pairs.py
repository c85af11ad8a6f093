"""Which two features are drawn, and the sources in them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from astropy.table import Table
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis

from gpal.catalog import Catalog
from gpal.errors import InputError
from gpal.files.csv import read_csv
from gpal.measurements import Measurements
from gpal.plot.results import is_path, read, truths_of, words_of
from gpal.plot.style import MIXED, drawn

__all__ = ["Pair", "most_informative_pair", "sources_of"]

COLUMNS = {"name": str, "label": str, "prediction": str, "candidate": bool}


class Pair(NamedTuple):
    """n sources with two features.

    label, prediction  (n,) class that is known, class that is predicted; '' for none
    candidate          (n,) bool
    axis_labels        may hold mathematics between two $
    """

    sources: Measurements
    label: np.ndarray
    prediction: np.ndarray
    candidate: np.ndarray
    classes: list[str]
    axis_labels: list[str]


def sources_of(
    data: Any,
    table: Any = None,
    label: Any = None,
    prediction: Any = None,
    candidate: Any = None,
    classes: Sequence[str] | None = None,
    pair: Sequence[str] | None = None,
) -> Pair:
    """Two features of a result; of a catalog, with its probabilities; or of Measurements.

    table  the probabilities of a catalog: a table, or the folder of the result
    pair   names of the features; None: the two that tell the labels best apart
    """
    catalog = getattr(data, "catalog", data)
    if isinstance(catalog, Catalog):
        if table is None and catalog is not data:
            table = data.table
        if table is None:
            raise InputError("a catalog is drawn with its probabilities: give their table, too")
        columns = _columns(table)
        if columns["name"].tolist() != catalog.names.tolist():
            raise InputError("the table is not that of the catalog: it holds other sources")
        label, prediction, candidate = (columns[k] for k in list(COLUMNS)[1:])
        classes = sorted(set(label.tolist()) - {""}) if classes is None else classes
        sources = catalog.measurements
    elif isinstance(data, Measurements):
        sources, n = data, len(data)
        none = np.full(n, "")
        label = none if label is None else words_of(label)
        prediction = none if prediction is None else words_of(prediction)
        candidate = prediction != "" if candidate is None else truths_of(candidate)
        if not label.shape == prediction.shape == candidate.shape == (n,):
            raise InputError(f"give a label, a prediction, and `candidate` for each of {n} sources")
        if classes is None:
            classes = sorted({*label.tolist(), *prediction.tolist()} - {"", MIXED})
    else:
        raise InputError(
            f"a {type(data).__name__} holds no measurements: give what classify returned, a catalog"
            " and the folder of its result, or Measurements"
        )
    if len(sources.names) < 2:
        raise InputError("the figure is one of two features, and there is one only")
    names = [str(name) for name in classes]
    if pair is None and len(sources.names) == 2:
        pair = sources.names
    if pair is None:
        known = np.isin(label, names)
        index = np.searchsorted(sorted(names), label[known])
        if len(set(index.tolist())) < 2:
            raise InputError("no two classes to choose features by: name two features as `pair`")
        pair = [sources.names[j] for j in most_informative_pair(sources[known], index)]
    chosen = sources.select(list(pair))
    if len(chosen.names) != 2:
        raise InputError(f"a pair is two features, got {len(chosen.names)}")
    schema = catalog.schema if isinstance(catalog, Catalog) else None
    axis_labels = [_axis_label(schema, *each) for each in zip(chosen.names, chosen.units)]
    return Pair(chosen, label, prediction, candidate, names, axis_labels)


def most_informative_pair(sources: Measurements, y: np.ndarray) -> tuple[int, int]:
    """The two features in which the classes y (n,) separate best, by their numbers.

    Best: highest mean log probability of a quadratic discriminant (one Gaussian per class) of the
    pair, on the sources where both were measured. It judges the pair together, so that a second
    feature which only repeats the first is not chosen. Where too few have both of any, the first.
    """
    X = sources.X

    def separation(pair: tuple[int, int]) -> float:
        measured = np.isfinite(X[:, pair]).all(axis=1)
        # A Gaussian takes two sources.
        several = np.isin(y, [c for c in np.unique(y[measured]) if (y[measured] == c).sum() > 1])
        values, index = X[np.ix_(measured & several, pair)], y[measured & several]
        if len(np.unique(index)) < 2:
            return -np.inf
        values = (values - values.mean(axis=0)) / (values.std(axis=0) + np.finfo(float).tiny)
        discriminant = QuadraticDiscriminantAnalysis(reg_param=1e-3).fit(values, index)
        log_probability = discriminant.predict_log_proba(values)
        column = np.searchsorted(discriminant.classes_, index)
        return float(np.mean(log_probability[np.arange(len(index)), column]))

    return max(combinations(range(X.shape[1]), 2), key=separation)


def _columns(table: Any) -> dict[str, np.ndarray]:
    if is_path(table):
        found = read(Path(table) / "probabilities.csv", lambda path: read_csv(path, COLUMNS))
        return {name: found[name] for name in COLUMNS}
    if not isinstance(table, Table) or set(COLUMNS) - set(table.colnames):
        raise InputError(f"no table of probabilities with the columns {', '.join(COLUMNS)}")
    return {name: (truths_of if name == "candidate" else words_of)(table[name]) for name in COLUMNS}


def _axis_label(schema: Any, name: str, unit: str) -> str:
    """As the schema says; else the name, where values were transformed that of what they are:
    `log10 flux [mJy]`."""
    feature = None if schema is None else schema.features[name]
    if feature is not None and feature.label:
        return feature.label
    if feature is not None and feature.transform != "none" and len(feature.columns) == 1:
        name = f"{feature.transform} {feature.columns[0]}"
        unit = unit.removeprefix(f"{feature.transform}(").removesuffix(")") if unit else ""
    return drawn(f"{name} [{unit}]" if unit else name, 48)
