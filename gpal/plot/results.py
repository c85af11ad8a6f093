"""What figures are drawn from, out of whatever holds it.

A figure takes arrays, or one of these, from which its arrays come:

    ClassificationResult, ValidationResult    as `classify` and `validate` return them
    CrossValidation, ProspectiveValidation    predictions of several models, see `model=`
    a folder                                  that `gpal classify` or `gpal validate` wrote
    a table of probabilities                  as `predict` returns it, for the sky
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
import pandas as pd
from astropy.table import Table
from astropy.units import Unit, UnitConversionError

from gpal.errors import InputError, as_python, shown
from gpal.evaluation.cross_validation import CrossValidation
from gpal.evaluation.prospective import ProspectiveValidation
from gpal.files.csv import read_csv
from gpal.files.json import read_json
from gpal.metrics import class_index, confusion_matrix
from gpal.names import KINDS, MIXED, probability_column

__all__ = [
    "Confusion",
    "Known",
    "Places",
    "confusion_of",
    "is_path",
    "known_of",
    "metrics_of",
    "places_of",
    "provenance_of",
    "read",
    "refuses_unfit_folders",
    "truths_of",
    "words_of",
]

# What is met in the files of a damaged folder, of one of another version, or not gpal's.
UNFIT = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError)
Drawing = TypeVar("Drawing", bound=Callable[..., Any])
TAKEN = "arrays, what classify, validate or cross_validate returned, or the folder of a result"


class Known(NamedTuple):
    """Sources of known class: y (n,) indices into the C `classes`, P (n, C) what was predicted."""

    y: np.ndarray
    P: np.ndarray
    classes: list[str]


class Confusion(NamedTuple):
    """(C, C) rows normalised to one, their standard errors or None, and sources per class."""

    mean: np.ndarray
    se: np.ndarray | None
    counts: list[int]
    classes: list[str]


class Places(NamedTuple):
    """Where n sources are, and what is predicted of those that are candidates."""

    glon: np.ndarray
    glat: np.ndarray
    prediction: np.ndarray
    candidate: np.ndarray
    classes: list[str]


def refuses_unfit_folders(function: Drawing) -> Drawing:
    """Its first argument may be a folder whose files lack what it needs: InputError says so."""

    @wraps(function)
    def refusing(data: Any, *arguments: Any, **options: Any) -> Any:
        try:
            return function(data, *arguments, **options)
        except UNFIT as error:
            if isinstance(error, InputError) or not is_path(data):
                raise
            what = shown(error) or type(error).__name__
            raise InputError(
                f"the files in '{shown(data, 300)}' lack what the figure shows ({what}); make the"
                " folder again with this version of gpal"
            ) from error

    return cast(Drawing, refusing)


@refuses_unfit_folders
def known_of(
    data: Any,
    P: Any = None,
    classes: Sequence[str] | None = None,
    model: str | None = None,
    correction: str = "train",
) -> Known:
    """What was predicted of sources whose class is known.

    data, P, classes  y and P as in `gpal.metrics`; or a result, alone
    model             one of those that the result compares; None: the first
    correction        of a validation, see gpal.evaluation.prospective
    """
    if P is not None:
        y, P = class_index(data, P, classes)
        names = map(str, range(P.shape[1]) if classes is None else classes)
        _refuse_options("probabilities alone have", model=model, correction=correction)
        return Known(y, P, list(names))
    _refuse_options("a result has its own", classes=classes)
    if is_path(data):
        return _known_of_folder(Path(data), model, correction)
    if isinstance(validation := _validation(data), CrossValidation):
        _refuse_options("a cross-validation has", correction=correction)
        chosen = _model(model, validation.models)
        return Known(validation.y, validation.out_of_fold(chosen), validation.classes.tolist())
    if isinstance(validation, ProspectiveValidation):
        split = validation.split
        P = validation.corrected(_model(model, validation.models), correction)[0][split.examined]
        return Known(split.y, P, split.classes.tolist())
    raise _not_taken(data)


@refuses_unfit_folders
def confusion_of(
    data: Any, P: Any = None, classes: Sequence[str] | None = None, model: str | None = None
) -> Confusion:
    """How sources of known class are taken for others, with errors where there were folds."""
    if P is None and isinstance(validation := _validation(data), CrossValidation):
        found = validation.estimate(confusion_matrix, _model(model, validation.models))
        counts = np.bincount(validation.y, minlength=len(validation.classes)).tolist()
        return Confusion(found.mean, found.se, counts, validation.classes.tolist())
    if P is None and is_path(data) and not _is_validation(metrics := metrics_of(data)):
        classes = _classes(metrics)
        matrix = metrics[_model(model, metrics["models"])]["confusion_matrix"]
        counts = [metrics["n_labelled_per_class"][name] for name in classes]
        mean, se = (np.array(matrix[part], float) for part in ("mean", "se"))
        return Confusion(mean, se, counts, classes)
    y, P, names = known_of(data, P, classes, model)
    matrix = confusion_matrix(y, P)
    return Confusion(matrix, None, np.bincount(y, minlength=len(names)).tolist(), names)


@refuses_unfit_folders
def places_of(
    data: Any,
    glat: Any = None,
    prediction: Any = None,
    candidate: Any = None,
    classes: Sequence[str] | None = None,
) -> Places:
    """Galactic positions in degrees, with predictions; or a result or table, alone."""
    if glat is None:
        table = data if isinstance(data, Table) else None
        if hasattr(data, "metrics"):
            table = data.table
        elif table is None and not is_path(data):
            raise _not_taken(data)
        found, known = _places_of_table(table) if table is not None else _places_of_folder(data)
        data, glat, prediction, candidate = found
        classes = known if classes is None else classes
    glon, glat = _degrees(data), _degrees(glat)
    prediction = words_of(prediction)
    candidate = np.full(glon.shape, True) if candidate is None else truths_of(candidate)
    if not glon.shape == glat.shape == prediction.shape == candidate.shape == (len(glon),):
        raise InputError(
            f"positions, predictions and candidates have the shapes {glon.shape}, {glat.shape},"
            f" {prediction.shape} and {candidate.shape}: give one of each for every source"
        )
    if classes is None:
        classes = sorted(set(prediction.tolist()) - {MIXED})
    return Places(glon, glat, prediction, candidate, [str(name) for name in classes])


def _degrees(angle: Any) -> np.ndarray:
    """(n,) NaN where it is masked; of what has a unit, in degrees."""
    unit = getattr(angle, "unit", None)
    try:
        factor = Unit(unit).to("deg") if unit is not None and str(unit) else 1.0
    except (UnitConversionError, ValueError, TypeError):
        raise InputError(f"a position is an angle, and this one has the unit '{unit}'") from None
    values: Any = np.ma.asarray(getattr(angle, "value", angle), dtype=float)
    return factor * np.ma.filled(values, np.nan)


def words_of(words: Any) -> np.ndarray:
    """(n,) text, '' where there is none: masked, None or NaN."""
    words = np.ma.asarray(words)
    missing = np.ma.getmaskarray(words) | pd.isna(np.ma.getdata(words).astype(object))
    return np.where(missing, "", np.ma.getdata(words).astype(str))


def truths_of(values: Any) -> np.ndarray:
    """(n,) bool, false where masked or NA; InputError for what is neither true nor false."""
    if getattr(values, "dtype", None) == "boolean":  # of pandas
        values = values.to_numpy(dtype=bool, na_value=False)
    values = np.ma.filled(np.ma.asarray(values), False)
    odd = ~np.isin(values, (False, True))
    if odd.any():
        row = int(odd.argmax())
        raise InputError(
            f"row {row} of candidate is {shown(repr(as_python(values[row])))}: give True or False"
        )
    return values.astype(bool)


def metrics_of(data: Any) -> Mapping[str, Any]:
    """The content of a result's metrics.json."""
    if isinstance(data, Mapping):
        return data
    if is_path(data):
        return read(Path(data) / "metrics.json", read_json)
    if hasattr(data, "metrics"):
        return data.metrics
    raise _not_taken(data)


def provenance_of(data: Any) -> Mapping[str, Any]:
    """What made a result, or a table that says so; a provenance itself as it is."""
    if isinstance(data, Table):
        if "PROVENAN" not in data.meta:
            raise InputError("the table does not say what made it: give the result, or its folder")
        return json.loads(data.meta["PROVENAN"])
    found = metrics_of(data)
    return found.get("provenance", found)


def _validation(data: Any) -> Any:
    """The predictions in a result, or what it is itself."""
    if hasattr(data, "variants"):
        return next(iter(data.variants.values()))
    return getattr(data, "cross_validation", data)


def is_path(data: Any) -> bool:
    """Whether it names a folder."""
    return isinstance(data, str | os.PathLike)


def _is_validation(metrics: Mapping[str, Any]) -> bool:
    return metrics.get("kind") == "validation"


def _classes(metrics: Mapping[str, Any]) -> list[str]:
    return [str(name) for name in metrics["settings"]["classes"]]


def _model(model: str | None, models: Sequence[str]) -> str:
    if model is None:
        return models[0]
    if model not in models:
        raise InputError(f"no model '{shown(model)}'; there are: {', '.join(models)}")
    return model


def _known_of_folder(folder: Path, model: str | None, correction: str) -> Known:
    metrics = metrics_of(folder)
    _model(model, metrics["models"][:1])  # the one whose probabilities the folder holds
    classes, kind, truth = _classes(metrics), "", "label"
    if not _is_validation(metrics):
        _refuse_options("a classification has", correction=correction)
    if _is_validation(metrics):
        truth = "new_class"
        held = ("train", metrics["settings"]["correction"])
        if correction not in held:
            names = " and ".join(f"'{name}'" for name in held)
            raise InputError(f"a folder holds {names}, no '{shown(correction)}'")
        kind = "" if correction == "train" else "_prior"
    columns = [probability_column(name, kind) for name in classes]
    table = _probabilities(folder, {truth: str, **dict.fromkeys(columns, float)})
    rows = np.isin(table[truth].astype(str), classes)
    P = np.column_stack([table[name][rows] for name in columns])
    return Known(*class_index(table[truth][rows], P, classes), classes)


def _refuse_options(has: str, **given: Any) -> None:
    """InputError for options of a figure that mean nothing for what it is drawn from."""
    for name, value in given.items():
        if value is not None and not (isinstance(value, str) and value == "train"):
            no = "" if name == "classes" else "no "
            raise InputError(f"{has} {no}{name}: leave {name} out")


def _places_of_folder(folder: Any) -> tuple[list[np.ndarray], list[str]]:
    metrics = metrics_of(folder)
    kinds = {"glon": float, "glat": float, "prediction": str, "candidate": bool}
    table = _probabilities(Path(folder), kinds)
    return [table[name] for name in kinds], _classes(metrics)


def _places_of_table(table: Table) -> tuple[list[Any], list[str]]:
    absent = [name for name in ("glon", "glat", "prediction") if name not in table.colnames]
    if absent:
        raise InputError(f"the table has no column '{absent[0]}'; give one of probabilities")
    candidate = table["candidate"] if "candidate" in table.colnames else None
    columns = [name for name in table.colnames if name.startswith("p_")]
    more = {name + kind for name in columns for kind in KINDS if kind}
    found = [table["glon"], table["glat"], table["prediction"], candidate]
    return found, [name[2:] for name in columns if name not in more]


def _probabilities(folder: Path, kinds: Mapping[str, type]) -> dict[str, np.ndarray]:
    return read(folder / "probabilities.csv", lambda path: read_csv(path, kinds))


def read(path: Path, reader: Any) -> Any:
    """A file of a result; InputError where there is none, or a damaged one."""
    try:
        return reader(path)
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(
            f"no '{path.name}' in '{shown(path.parent, 300)}': give the folder of a result"
        ) from None
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"cannot read '{shown(path, 300)}': {error}") from error


def _not_taken(data: Any) -> InputError:
    return InputError(f"a {type(data).__name__} is not what this is drawn from: give {TAKEN}")
