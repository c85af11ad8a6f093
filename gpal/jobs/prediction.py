"""Probabilities for a table by a model of before: nothing is fitted, no class need be known.

    model = GPClassifier.load("results/model.npz")
    predict(catalog_for(model, "tonight.csv"), model, "tonight.fits")

A model that `gpal classify` saved knows which columns its features were made of, and how. A table
whose features are made otherwise (another transform or unit, errors scaled or not) is refused; of
one that lacks the error of a feature a warning says so.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from astropy.table import Table
from tqdm import tqdm

from gpal.catalog import Catalog, load_catalog
from gpal.catalog.registry import known_names
from gpal.catalog.release_files import recognise
from gpal.classifier import GPClassifier
from gpal.errors import InputError
from gpal.files.output import atomic_path
from gpal.jobs.probability_catalogue import prediction_table, write_table
from gpal.names import check_run
from gpal.provenance import provenance

__all__ = ["ENDINGS", "catalog_for", "predict"]

ENDINGS = (".fits", ".csv")
BLOCK = 10_000  # sources between two steps of the progress bar
NO_CLASS: dict[str, Any] = {"class": "", "classes": {"default": []}}


def catalog_for(
    model: GPClassifier,
    source: str | os.PathLike,
    *,
    schema: str | os.PathLike | None = None,
    cuts: Sequence[str] | None = None,
    error_scale: Any = None,
) -> Catalog:
    """The sources of a table with the features of a fitted model, whatever their class.

    source  a known release, or a file
    schema  how to read it, as in `load_catalog`; None: as the release that it is or, of any other
            file, by the columns that the model was fitted to

    Raises InputError where a feature is not there or made otherwise than the model's.
    """
    features = list(getattr(model, "feature_names_in_", ()))
    if not features:
        raise InputError(
            "the model was fitted without names of features: give it Measurements or a data frame"
            " when you fit it, or call its predict_proba"
        )
    mapping = NO_CLASS
    path = Path(source).expanduser()
    if schema is None and str(source).lower() not in known_names() and path.is_file():
        mapping = NO_CLASS if recognise(path) else {**_recorded_columns(model), **NO_CLASS}
    catalog = load_catalog(
        str(source),
        schema=None if schema is None else str(schema),
        features=features,
        mapping=mapping,
        cuts=cuts,
        error_scale=error_scale,
    )
    _check_features(catalog, model)
    return catalog


def predict(
    catalog: Catalog,
    model: GPClassifier | str | os.PathLike,
    out: str | os.PathLike,
    *,
    confidence: float = 0.6,
    prior: Mapping[str, float] | None = None,
    progress: bool | None = None,
) -> Table:
    """Give every source of `catalog` the probabilities of `model` and write them to the file `out`.

    model       fitted, or the file that it was saved to
    out         ends in .fits or .csv
    confidence  a source whose largest probability is below it is called MIXED
    prior       class -> fraction that the probabilities refer to; None: as the model was made
    progress    True or False; None shows a bar on a terminal only

    The columns are those of the probability catalogue that need no labelled source. Raises
    InputError, before any computation, on a file that cannot be written.
    """
    out = Path(out)
    if out.suffix.lower() not in ENDINGS:
        raise InputError(f"'{out.name}' should end in {' or '.join(ENDINGS)}: that is the format")
    if not 0 <= confidence <= 1:
        raise InputError(f"confidence is a probability, got {confidence}; give one from 0 to 1")
    fitted = model if isinstance(model, GPClassifier) else GPClassifier.load(model)
    classes = [str(name) for name in fitted.classes_.tolist()]
    check_run(classes, catalog.feature_names, catalog.names, out)
    with atomic_path(out) as temporary:
        hidden = True if progress is False else None
        P, deviation = np.empty((2, len(catalog), len(classes)))
        with tqdm(total=len(catalog), desc="predicting", unit="source", disable=hidden) as bar:
            for rows in _blocks(len(catalog)):
                block = catalog.measurements[rows]
                P[rows] = fitted.predict_proba(block, prior=prior)
                deviation[rows] = fitted.predict_proba_std(block, prior=prior)
                bar.update(len(block))
        settings = {
            "classes": classes,
            "features": list(catalog.feature_names),
            "confidence": confidence,
            "prior": "train" if prior is None else dict(prior),
            "model": fitted.settings_,
        }
        origin = provenance(catalog.provenance, settings)
        origin["model_provenance"] = getattr(fitted, "provenance_", {})
        table = prediction_table(catalog, P, deviation, classes, confidence)
        write_table(table, temporary, origin)
    return table


def _blocks(number: int) -> Iterator[slice]:
    return (slice(first, first + BLOCK) for first in range(0, number, BLOCK))


def _recorded(model: GPClassifier) -> Mapping[str, Any]:
    """How the features of the model were made, as `Catalog.provenance` says it."""
    schema = getattr(model, "provenance_", {}).get("catalog", {}).get("schema", {})
    return schema if isinstance(schema, Mapping) else {}


def _recorded_columns(model: GPClassifier) -> dict[str, Any]:
    """A schema of the columns that the model was fitted to."""
    recorded = _recorded(model)
    features = recorded.get("features", {})
    if not features or any("hardness" in made for made in features.values()):
        raise InputError(
            "the model does not say of which columns its features are made; give the schema that"
            " it was fitted with (--schema, in Python schema=)"
        )
    places = {key: recorded[key] for key in ("id", "ra", "dec") if key in recorded}
    return {**places, "features": features}


def _check_features(catalog: Catalog, model: GPClassifier) -> None:
    """Features made otherwise are refused; an error bar that the model had is missed aloud."""
    theirs = _recorded(model).get("features", {})
    ours = catalog.provenance["schema"]["features"]
    for name in catalog.feature_names:
        made, wanted = ours[name], theirs.get(name, {})
        for key in ("transform", "unit") if wanted else ():
            if made.get(key) != wanted.get(key) and (key == "transform" or made.get(key)):
                raise InputError(
                    f"feature '{name}' has the {key} '{made.get(key, 'none')}' here and"
                    f" '{wanted.get(key, 'none')}' in the model; give the schema that the model"
                    " was fitted with"
                )
        if made.get("error") == "none" and wanted and wanted.get("error") != "none":
            warnings.warn(
                f"feature '{name}' has no error bar here, and had one when the model was fitted:"
                " its values are taken as exact",
                stacklevel=3,
            )
    scaled = bool(getattr(model, "provenance_", {}).get("catalog", {}).get("error_scale"))
    if theirs and scaled != bool(catalog.provenance.get("error_scale")):
        remedy = (
            "scaled by an error calibration; give one: --error-scale"
            if scaled
            else "as they are; leave --error-scale out"
        )
        raise InputError(f"the model was fitted with errors {remedy}")
