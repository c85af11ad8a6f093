"""What the provenance says of how features were made: of which columns, in which units."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np

from gpal.catalog.column_values import KINDS
from gpal.catalog.columns import conversion, error_column, unit_of
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
            elif all(isinstance(error, str) for error in errors):  # a pair is found again by name
                said["error"] = errors
        if apart := _units_apart(table, feature, errors, schema):
            said["stated"] = apart
        used.setdefault("features", {})[name] = said
    return used


def _units_apart(table: Table, feature: Feature, errors: Any, schema: Schema) -> dict[str, str]:
    """The stated units of a feature's columns, errors and limits where one of them was converted:
    numbers that another table may not leave without units."""
    wanted: dict[str, tuple[str, int]] = {}  # of each column the unit that it is converted to
    for band in (schema.bands[name] for name in feature.hardness):
        wanted[band.nuFnu] = unit_of(table, schema.bands[feature.hardness[0]].nuFnu), 1
        beside = (band.error,) if isinstance(band.error, str) else band.error
        wanted |= dict.fromkeys((band.flux, *beside), (unit_of(table, band.flux), 1))
    for k, column in enumerate(feature.columns):
        unit = feature.unit or unit_of(table, feature.columns[0])
        with suppress(InputError):  # another dimension, of a ratio, which is never converted
            conversion(table, column, unit)
            wanted[column] = unit, 1
        unit, _ = wanted.setdefault(column, (unit_of(table, column), 1))
        own = errors[k] if feature.arithmetic and isinstance(errors, tuple) else errors
        power = KINDS[feature.error_kind][0]
        wanted |= dict.fromkeys(np.ravel(own or ()).tolist(), (unit, power))
        if k == 0:
            wanted |= dict.fromkeys(feature.limit_columns, (unit, 1))
    wanted.pop("none", None)
    stated = {column: unit for column in wanted if (unit := unit_of(table, column))}
    for column in stated:
        with suppress(InputError):
            if abs(conversion(table, column, wanted[column][0], "", wanted[column][1]) - 1) > 1e-9:
                return stated
    return {}
