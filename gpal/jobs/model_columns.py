"""Of which columns a fitted model's features are made, and whether a table makes them the same way.

What `gpal classify` saved says it: the schema of its features stands in the model's provenance.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gpal.catalog.columns import error_column, unit_of
from gpal.catalog.cuts import read_beside
from gpal.catalog.units import factor_between
from gpal.errors import InputError, shown

if TYPE_CHECKING:
    from astropy.table import Table

    from gpal.catalog import Catalog
    from gpal.classifier import GPClassifier

__all__ = ["check_features", "columns_for", "known_features", "warn_without_names"]


def known_features(model: GPClassifier) -> list[str]:
    """Names of the features, in the model's order; InputError where it knows none."""
    features = [str(name) for name in getattr(model, "feature_names_in_", ())]
    if not features:
        raise InputError(
            "the model was fitted without names of features: give it Measurements or a data frame"
            " when you fit it, or call its predict_proba"
        )
    return features


def columns_for(model: GPClassifier, table: Table) -> dict[str, Any]:
    """A mapping by which `table` is read as the table that the model was fitted to.

    Numbers are converted to the model's units. An error column that is not there is looked for
    under the usual names; without one the value is exact, which `check_features` warns of.
    """
    recorded = _recorded(model)
    features = recorded.get("features", {})
    if not features or any("hardness" in made for made in features.values()):
        raise InputError(
            "the model does not say of which columns its features are made; give the schema that"
            " it was fitted with (--schema, in Python schema=)"
        )
    places = {
        key: recorded[key]
        for key in ("id", "ra", "dec")
        if key in recorded and recorded[key] in table.colnames
    }
    kept = {key: recorded[key] for key in ("sentinels",) if key in recorded}
    units = _units_before_transform(model)
    made = {
        name: _as_here(_without_units(features[name]), units.get(name, ""), table)
        for name in known_features(model)
        if name in features
    }
    _warn_of_unstated_units(made, features, table)
    return {**places, **kept, "features": made}


def _without_units(made: Mapping[str, Any]) -> dict[str, Any]:
    """What a schema says; the units stated by the table of the fit are for `check_features`."""
    return {key: value for key, value in made.items() if key != "stated"}


def warn_without_names(model: GPClassifier, mapping: Mapping[str, Any]) -> None:
    """Of a table without the columns of names and positions that the model's had."""
    recorded = _recorded(model)
    column = recorded.get("id")
    places = [recorded[key] for key in ("ra", "dec") if recorded.get(key) and key not in mapping]
    if places:
        warnings.warn(
            f"the table has no column {shown(', '.join(map(repr, places)))} of positions: the"
            " results have none; rename its own, or give a schema that names them",
            stacklevel=4,
        )
    if column and "id" not in mapping:
        warnings.warn(
            f"the table has no column '{shown(column)}' of names: sources are called by the number"
            " of their row",
            stacklevel=4,
        )


def _as_here(made: dict[str, Any], unit: str, table: Table) -> dict[str, Any]:
    """How a feature is made, with the model's unit, and the error column that `table` has."""
    column = made.get("column", "")
    if made.get("error") == "none":  # models of before have it on record
        made.pop("error_kind", None)
    if unit and (column or made.get("difference")):
        made.setdefault("unit", unit)
    if not column:
        return made
    errors = made.get("error") or "none"
    needed = [errors] if isinstance(errors, str) else list(errors)
    if errors != "none" and not all(_is_in(table, one) for one in needed):
        made["error"] = "none"
        if _is_in(table, column):
            made["error"] = error_column(table, column) or "none"
        kind = made.pop("error_kind", "sigma")  # of the column that is not there
        if kind != "sigma" and made["error"] != "none":
            warnings.warn(
                f"the table lacks '{', '.join(needed)}' ({kind}), of which the model had the errors"
                f" of '{column}': taken from '{made['error']}', as 1-sigma errors",
                stacklevel=5,
            )
    return made


def _warn_of_unstated_units(
    made: Mapping[str, Any], recorded: Mapping[str, Any], table: Table
) -> None:
    """Of columns without a unit, where the table of the fit had one."""
    unstated = [
        f"{name} in {how['unit']}"
        for name, how in made.items()
        if how.get("unit")
        and not recorded[name].get("unit")
        and not recorded[name].get("stated")  # which `check_features` refuses
        and any(
            _is_in(table, column) and not unit_of(table, column)
            for column in (how.get("column"), *how.get("difference", ()))
            if column
        )
    ]
    _say_unstated(unstated)


def _say_unstated(features: Sequence[str]) -> None:
    """Features, with the units that they are taken to be in."""
    if features:
        warnings.warn(
            f"the table states no units: taken to be those of the model, {', '.join(features)}",
            stacklevel=5,
        )


def _is_in(table: Table, column: str) -> bool:
    """Whether the table has a column, or `Flux_Band` of an element `Flux_Band[3]`."""
    return column in table.colnames or re.sub(r"(\[\d+\])+$", "", column) in table.colnames


def _units_before_transform(model: GPClassifier) -> dict[str, str]:
    recorded = _recorded(model).get("features", {})
    return _before_transform(recorded, known_features(model), model.units_in_)


def _before_transform(
    recorded: Mapping[str, Any], names: Sequence[str], units_in: Sequence[str]
) -> dict[str, str]:
    """Feature -> the unit of what its transform was taken of."""
    units = {}
    for name, unit in zip(names, units_in):
        transform = recorded.get(name, {}).get("transform", "none")
        inner = re.fullmatch(rf"{transform}\((.*)\)", unit)
        plain = inner[1] if inner else unit
        if softening := recorded.get(name, {}).get("softening"):
            plain = plain.removeprefix(f"{softening:g}").strip()
        units[name] = plain
    return units


def _recorded(model: GPClassifier) -> Mapping[str, Any]:
    """How the features of the model were made, as `Catalog.provenance` says it."""
    schema = _catalog_of(model).get("schema", {})
    return schema if isinstance(schema, Mapping) else {}


def _catalog_of(model: GPClassifier) -> Mapping[str, Any]:
    catalog = model.provenance_.get("catalog", {})
    return catalog if isinstance(catalog, Mapping) else {}


def check_features(catalog: Catalog, model: GPClassifier) -> None:
    """Features made otherwise are refused; an error bar that the model had is missed aloud."""
    theirs = _recorded(model).get("features", {})
    ours = catalog.provenance.get("schema", {}).get("features", {})
    units, measured = _units_before_transform(model), catalog.measurements
    units_here = _before_transform(ours, measured.names, measured.units)
    exact = []
    for name in known_features(model):
        if name not in ours or name not in theirs:
            continue
        made, wanted = ours[name], theirs[name]
        for key, here, there in (
            ("transform", made.get("transform", "none"), wanted.get("transform", "none")),
            ("unit", made.get("unit", ""), wanted.get("unit", "") or units[name]),
        ):
            # Another unit is converted, or refused, by the model; here only where it knows none.
            if here != there and (key == "transform" or (here and not there)):
                raise InputError(
                    f"feature '{name}' has the {key} '{here}' here and '{there or 'none'}' in the"
                    " model; give the schema that the model was fitted with"
                )
        for key in ("difference", "ratio", "hardness"):
            here, there = list(made.get(key) or ()), list(wanted.get(key) or ())
            if here and here == there[::-1]:
                raise InputError(
                    f"feature '{name}' is the {key} of {' and '.join(here)} here, and of"
                    f" {' and '.join(there)} in the model; give the schema that the model was"
                    " fitted with"
                )
        softened = [one.get("softening") or 1.0 for one in (made, wanted)]
        # With units they are part of these, and compared by the model.
        if softened[0] != softened[1] and not (made.get("unit") and units[name]):
            raise InputError(
                f"feature '{name}' has the softening {softened[0]:g} here and {softened[1]:g} in"
                " the model; give the schema that the model was fitted with"
            )
        _check_constants(name, made, wanted, units_here[name], units[name])
        for column, unit in _need_units(catalog, name, made, wanted).items():
            needed = unit != "" and _is_in(catalog.table, column)
            if needed and not unit_of(catalog.table, column):
                raise InputError(
                    f"column '{column}' states no unit here; when the model was fitted, columns of"
                    f" feature '{name}' were converted"
                    + (f", and this one was in {unit}" if unit else "")
                    + ": state its unit in the file (FITS, ECSV, Parquet)"
                )
        if any(here and not there for here, there in zip(_exact(made), _exact(wanted))):
            exact.append(f"'{name}'")
    _warn_of_other_units(ours, theirs, units_here, units)
    if exact:
        several = len(exact) > 1
        warnings.warn(
            f"{'features' if several else 'feature'} {', '.join(exact)}"
            f" {'have' if several else 'has'} no error bar here, and had one when the model was"
            f" fitted: {'their' if several else 'its'} values are taken as exact",
            stacklevel=3,
        )
    scaled = bool(_catalog_of(model).get("error_scale"))
    if theirs and scaled != bool(catalog.provenance.get("error_scale")):
        remedy = (
            "scaled by an error calibration; give one: --error-scale"
            if scaled
            else "as they are; leave --error-scale out"
        )
        raise InputError(f"the model was fitted with errors {remedy}")


def _warn_of_other_units(
    ours: Mapping[str, Any],
    theirs: Mapping[str, Any],
    units_here: Mapping[str, str],
    units: Mapping[str, str],
) -> None:
    """Of features that have a unit here or in the model, and none in the other."""
    both = [name for name in units if name in ours and name in theirs and name in units_here]
    new = [f"{name} in {units_here[name]}" for name in both if units_here[name] and not units[name]]
    if new:
        warnings.warn(
            "the model was fitted to numbers without units, and the table states some: taken as"
            f" they stand, {', '.join(new)}",
            stacklevel=4,
        )
    lost = [f"{name} in {units[name]}" for name in both if units[name] and not units_here[name]]
    _say_unstated(lost)


def _check_constants(
    name: str, made: Mapping[str, Any], wanted: Mapping[str, Any], here: str, there: str
) -> None:
    """InputError for numbers of a schema that are in the unit of the table, where that is another
    than the model's and the schema names none; and for another floor, or another `above`."""
    numbers = [
        key
        for key in ("floor", "above", "upper_limit", "lower_limit")
        if isinstance(made.get(key), int | float)
    ]
    if numbers and not made.get("unit") and not np.isclose(_factor(here, there), 1.0, rtol=1e-9):
        raise InputError(
            f"feature '{name}' is in '{here}' here and was in '{there}' when the model was fitted,"
            f" and its {' and '.join(numbers)} would be in the one or the other; give the feature"
            f" unit = '{there}' in the schema"
        )
    for key in ("floor", "above"):
        given, asked = (
            np.nan if how.get(key) is None else float(how[key]) for how in (made, wanted)
        )
        if not np.isclose(given * _factor(here, there), asked, rtol=1e-9, atol=0, equal_nan=True):
            raise InputError(
                f"feature '{name}' has {key} = {made.get(key)} here and {wanted.get(key)} in the"
                f" model{f', in {there}' if there else ''}; give the schema that the model was"
                " fitted with"
            )


def _factor(here: str, there: str) -> float:
    """From a unit to another; 1 where one of them is not known, NaN where there is none."""
    if here == there or not (here and there):
        return 1.0
    try:
        return factor_between(here, there)
    except ValueError:
        return np.nan


def _need_units(
    catalog: Catalog, name: str, made: Mapping[str, Any], wanted: Mapping[str, Any]
) -> dict[str, str | None]:
    """The columns that a feature is read from here, where their numbers were converted when the
    model was fitted: the unit then of what played the same part, '' where it stated none, None
    where no one knows which column that was."""
    stated = wanted.get("stated", {})
    if not stated:
        return {}
    same: dict[str, str | None] = {}
    for part in ("column", "error", "difference", "ratio", "upper_limit", "lower_limit"):
        here, there = (np.ravel(how.get(part) or ()).tolist() for how in (made, wanted))
        same |= {column: stated[was] for column, was in zip(here, there) if was in stated}
    renamed = not all(_is_in(catalog.table, column) for column, unit in stated.items() if unit)
    other = None if renamed else ""
    feature = catalog.schema.features[name]
    read = [*feature.columns, *read_beside(catalog.table, catalog.schema, feature)]
    unitless = {feature.requires, feature.limit_flag} - {*feature.columns}
    return {
        column: same.get(column, stated.get(column, other))
        for column in read
        if column not in unitless
    }


def _exact(made: Mapping[str, Any]) -> list[bool]:
    """Whether each of the columns that a feature is made of has no error column. Pairs of those of
    a difference or ratio, which are found by their names, are not on record."""
    error, members = made.get("error"), made.get("difference") or made.get("ratio")
    if isinstance(error, str):
        return [error == "none"] * len(members or (error,))
    if not members or error is None:
        return [False] * len(members or (error,))
    return [each == "none" for each in error]
