"""What the provenance says of how features were made: of which columns, in which units."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np

from gpal.catalog.column_values import KINDS
from gpal.catalog.columns import conversion, error_column, unit_of
from gpal.catalog.feature import NO_LIMIT
from gpal.errors import InputError

if TYPE_CHECKING:
    from astropy.table import Table

    from gpal.catalog.feature import Feature
    from gpal.catalog.schema import Schema

__all__ = ["schema_used"]


def schema_used(table: Table, schema: Schema, names: Sequence[str]) -> dict[str, Any]:
    """The schema's name and checksum, and which columns it made which features of, and how."""
    columns = {"id": schema.id, "ra": schema.ra, "dec": schema.dec, "class": schema.class_column}
    used: dict[str, Any] = {"name": schema.name, "sha256": schema.checksum}
    used |= {key: column for key, column in columns.items() if column}
    if schema.sentinels is not None:
        used["sentinels"] = schema.sentinels
    if schema.classes.edges:
        used["class_edges"] = schema.classes.edges
    for name in names:
        feature = schema.features[name]
        said = {
            item.name: getattr(feature, item.name)
            for item in fields(feature)
            if item.name not in ("name", "label") and getattr(feature, item.name) != item.default
        }
        errors: Any = feature.error
        if feature.columns and errors is None:
            errors = tuple(error_column(table, column) or "none" for column in feature.columns)
            if feature.column:
                said["error"] = errors = errors[0]
                if errors == "none":
                    said.pop("error_kind", None)  # of a column that is not there
            elif all(isinstance(error, str) for error in errors):  # a pair is found again by name
                said["error"] = errors
        if apart := _units_apart(table, feature, errors, schema):
            said["stated"] = apart
        used.setdefault("features", {})[name] = said
    return used


def _units_apart(table: Table, feature: Feature, errors: Any, schema: Schema) -> dict[str, str]:
    """The units that a feature's columns, errors and limits state, '' for none, where one of them
    was converted: numbers that another table may not leave without units."""
    wanted: dict[str, tuple[str, int]] = {}  # of each column the unit that it is converted to
    power = KINDS[feature.error_kind][0]
    for band in (schema.bands[name] for name in feature.hardness):
        wanted[band.nuFnu] = unit_of(table, schema.bands[feature.hardness[0]].nuFnu), 1
        wanted[band.flux] = unit_of(table, band.flux), 1
        wanted |= dict.fromkeys(np.ravel(band.error).tolist(), (unit_of(table, band.flux), power))
    units = [unit_of(table, column) for column in feature.columns]
    common = feature.unit or next(filter(None, units), "")
    for k, column in enumerate(feature.columns):
        unit = common
        try:
            conversion(table, column, common)
        except InputError:  # another dimension, of a ratio, which is never converted
            unit = units[k]
        wanted[column] = unit, 1
        of_this = [
            each[k] if feature.arithmetic and isinstance(each, tuple) else each
            for each in (errors, feature.upper_limit, feature.lower_limit)
        ]
        wanted |= dict.fromkeys(np.ravel(of_this[0] or ()).tolist(), (unit, power))
        limits = [each for each in of_this[1:] if isinstance(each, str)]
        wanted |= {each: (unit, 1) for each in limits if each not in {*wanted, *NO_LIMIT}}
    wanted.pop("none", None)
    for column, (unit, power) in wanted.items():
        with suppress(InputError):
            if abs(conversion(table, column, unit, "", power, of_errors=True) - 1) > 1e-9:
                return {each: unit_of(table, each) for each in wanted}
    return {}
