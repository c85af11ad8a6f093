"""Looking at a table before anything is fitted.

print(inspect_catalog("survey.csv", schema="survey.toml"))    what `gpal schema check` prints
print(inspect_catalog(catalog).short())                       what the other commands print
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gpal.catalog.arithmetic import units_of
from gpal.catalog.catalog import Catalog
from gpal.catalog.column_values import Reading
from gpal.catalog.columns import error_column, unit_of
from gpal.catalog.features import measure
from gpal.catalog.inspection import FeatureFacts, Inspection
from gpal.catalog.loader import build, feature_names, file_name, find_source, identifiers, read_rows
from gpal.catalog.schema import Feature, Schema
from gpal.catalog.sentinels import suspects
from gpal.errors import InputError

if TYPE_CHECKING:
    from astropy.table import Table

__all__ = ["inspect_catalog"]


def inspect_catalog(
    source: Catalog | str | Path,
    *,
    schema: str | Path | Schema | None = None,
    features: str | Sequence[str] = "default",
    mapping: Mapping[str, Any] | None = None,
) -> Inspection:
    """What a table holds: per feature its columns, errors and values, and the classes.

    source    a catalog, or what `load_catalog` takes; `schema`, `features` and `mapping` as there

    A feature that cannot be used is no reason to stop: what is wrong with it is its `problem`.
    Raises InputError where the table itself cannot be read.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # what they say is what is listed here
        if isinstance(source, Catalog):
            return _of_catalog(source)
        return _of_file(source, schema, features, dict(mapping or {}))


def _of_catalog(catalog: Catalog) -> Inspection:
    facts = [
        _facts(catalog.table, catalog.schema, name, catalog.names) for name in catalog.feature_names
    ]
    name = str(catalog.provenance.get("file") or catalog.schema.name)
    return _inspection(name, len(catalog), facts, catalog)


def _of_file(
    source: str | Path,
    schema: str | Path | Schema | None,
    features: str | Sequence[str],
    mapping: dict[str, Any],
) -> Inspection:
    path, rules = find_source(source, schema, mapping)
    name = file_name(path, rules)
    try:
        table = read_rows(path, rules)
        ids = identifiers(table, rules)
        asked = feature_names(rules, features)
        facts = [_facts(table, rules, feature, ids) for feature in asked]
        usable = [f.name for f in facts if not f.problem]
        catalog = build(table, rules, usable[:1]) if usable else None
    except InputError as error:
        raise InputError(f"{name}: {error}") from None
    return _inspection(name, len(table), facts, catalog)


def _inspection(
    name: str, n: int, facts: Sequence[FeatureFacts], catalog: Catalog | None
) -> Inspection:
    if catalog is None or not catalog.schema.class_column:
        return Inspection(name, n, tuple(facts))
    y, labels, target = catalog.y, catalog.labels, catalog.is_target
    return Inspection(
        source=name,
        n=n,
        features=tuple(facts),
        class_column=catalog.schema.class_column,
        groups={group: _counts(labels[y == group]) for group in catalog.classes},
        undecided=_counts(labels[target]),
        others=_counts(labels[(y == "") & ~target]),
    )


def _counts(labels: np.ndarray) -> dict[str, int]:
    """The words and how often each stands there, the most frequent first."""
    return dict(Counter(labels.tolist()).most_common())


def _facts(table: Table, schema: Schema, name: str, ids: np.ndarray) -> FeatureFacts:
    feature = schema.features[name]
    columns = _columns_of(schema, feature)
    value = _value_of(feature, columns)
    errors: tuple[str, ...] = ()
    found = ""
    unit = feature.unit
    try:
        errors, found = _errors_of(table, schema, feature)
        reading = Reading(table, schema, ids)
        zero, negative = _signs(reading, feature, errors)
        suspicious = _suspects(reading, feature, columns)
        if feature.arithmetic:
            unit = units_of(reading, feature)[0]
        elif feature.columns:
            unit = unit or unit_of(table, feature.columns[0])
        measured, decisions = measure(table, schema, (name,), ids)
    except InputError as problem:
        return FeatureFacts(
            name, value, columns, errors, found, unit, feature.transform, problem=str(problem)
        )
    x, error = measured.X[:, 0], measured.X_err[:, 0]
    known = np.isfinite(x) & np.isfinite(error)
    with_error = known & (error > 0)
    return FeatureFacts(
        name=name,
        value=value,
        columns=columns,
        errors=errors,
        error_found=found,
        unit=unit,
        transform=feature.transform,
        n_measured=int(known.sum()),
        values=x[known],
        median_error=float(np.median(error[with_error])) if with_error.any() else np.nan,
        zero_errors=zero,
        negative_errors=negative,
        suspects=suspicious,
        decisions=tuple((decision.rule, decision.count) for decision in decisions),
    )


def _columns_of(schema: Schema, feature: Feature) -> tuple[str, ...]:
    if feature.hardness:
        return tuple(schema.bands[band].nuFnu for band in feature.hardness)
    return feature.columns


def _value_of(feature: Feature, columns: Sequence[str]) -> str:
    """What a feature is of its columns, as one would write it."""
    if feature.hardness:
        return f"hardness of {' and '.join(columns)}"
    return (" - " if feature.difference else " / ").join(columns)


def _errors_of(table: Table, schema: Schema, feature: Feature) -> tuple[tuple[str, ...], str]:
    """The error columns, and how they were found."""
    if feature.hardness:
        bands = (schema.bands[band].error for band in feature.hardness)
        return tuple(c for error in bands for c in _as_tuple(error)), "declared"
    if feature.error == "none":
        return (), "none declared"
    if feature.error is not None:
        return _as_tuple(feature.error), "declared"
    found = [error_column(table, column) for column in feature.columns]
    errors = tuple(name for error in found if error for name in _as_tuple(error))
    return errors, "found by its name" if all(found) else ""


def _as_tuple(value: str | Sequence[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def _signs(reading: Reading, feature: Feature, errors: Sequence[str]) -> tuple[int, int]:
    """Cells of the error columns that are 0, and that are negative; a pair's lower may be."""
    cells = [reading.numbers(feature, column, pair=True) for column in errors]
    negative = cells[0] < 0 if len(cells) == 1 and cells[0].ndim == 1 else np.zeros(1)
    return sum(int((values == 0).sum()) for values in cells), int(negative.sum())


def _suspects(
    reading: Reading, feature: Feature, columns: Sequence[str]
) -> tuple[tuple[float, int], ...]:
    """Numbers that may stand for "no value" beside those declared, unless the schema says that none
    does."""
    if reading.has_only_values(feature):
        return ()
    found = [suspects(reading.numbers(feature, column)) for column in columns]
    return tuple((suspect.number, suspect.count) for several in found for suspect in several)
