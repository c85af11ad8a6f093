"""Model files: arrays and JSON in one .npz, never pickles.

    description      JSON: format, version of gpal, kind of estimator, everything that is no array
    provenance.json  what made the model, where the caller knows (catalog, settings, seed, date)
    NAME             the arrays
    checkpoint/NAME  of a fit in the making: what it takes to go on, and no model asks for

What stands in them is the estimators' affair (`to_data`, `from_data`); here is how it is written,
in one step, and read, without trust.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gpal._version import __version__
from gpal.errors import InputError, shown
from gpal.files.npz import json_text, read_npz, read_text, write_npz
from gpal.provenance import to_json

__all__ = ["FORMAT", "read_checkpoint", "read_model", "read_provenance", "write_model"]

FORMAT = 5
PROVENANCE = "provenance.json"
CHECKPOINT = "checkpoint/"
FILE, REMEDY = "a gpal model file", "fit it again"  # in messages
HEADER = ("format", "gpal", "kind")


def write_model(
    path: str | os.PathLike,
    kind: str,
    data: Mapping[str, Any],
    arrays: Mapping[str, np.ndarray],
    provenance: Mapping[str, Any] | None = None,
    checkpoint: Mapping[str, np.ndarray] | None = None,
) -> None:
    """Write a model to `path`, whole or not at all.

    kind  the estimator's class name; data  JSON-able; arrays, checkpoint  of numbers
    """
    description = {"format": FORMAT, "gpal": __version__, "kind": kind, **data}
    text = json.dumps(description, allow_nan=True)
    texts = {} if provenance is None else {PROVENANCE: to_json(provenance)}
    more = {CHECKPOINT + name: array for name, array in (checkpoint or {}).items()}
    write_npz(path, {"description": np.array(text), **arrays, **more}, texts)


def read_model(path: str | os.PathLike, kind: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """(data, arrays) of a file that `write_model` wrote.

    Raises InputError where it is missing, damaged, of another kind, or of another format.
    """
    path = Path(path)
    if not path.exists():
        raise InputError(f"no model file '{path}'")
    if (path / "model.npz").is_file():
        raise InputError(f"'{path}' is a folder; give '{path / 'model.npz'}', which is in it")
    arrays = read_npz(path, FILE, REMEDY, texts=[PROVENANCE])
    try:
        description = json_text(arrays.pop("description"))
        found = description["format"]
        if type(found) is not int:
            raise TypeError("'format' is no whole number")
        author = shown(description["gpal"])
        if not isinstance(description["gpal"], str):
            raise TypeError("'gpal' is no text")
    except (KeyError, ValueError, TypeError, OverflowError) as error:
        what = f"it is not {FILE} or is damaged ({shown(repr(error))})"
        raise InputError(f"cannot read '{path}': {what}; {REMEDY}") from None
    if found > FORMAT:
        raise InputError(f"'{path}' was written by gpal {author}; upgrade gpal")
    if found < FORMAT:
        raise InputError(
            f"'{path}' was written by gpal {author}, whose model files gpal {__version__} does not"
            " read; fit the model again"
        )
    if description.get("kind") != kind:
        other = shown(description.get("kind"))
        raise InputError(f"'{path}' holds a {other}; load it with that class")
    return {name: description[name] for name in description if name not in HEADER}, {
        name: array for name, array in arrays.items() if not name.startswith(CHECKPOINT)
    }


def read_checkpoint(path: str | os.PathLike) -> dict[str, np.ndarray]:
    """The `checkpoint` of a file that `read_model` has read."""
    arrays = read_npz(path, FILE, REMEDY, texts=[PROVENANCE])
    return {
        name.removeprefix(CHECKPOINT): array
        for name, array in arrays.items()
        if name.startswith(CHECKPOINT)
    }


def read_provenance(path: str | os.PathLike) -> dict[str, Any]:
    """What made the model of a file that `read_model` has read, where it says so, and the file's
    checksum, `model_sha256`."""
    checksum = hashlib.sha256(Path(path).read_bytes()).hexdigest()
    try:
        return {**json.loads(read_text(path, PROVENANCE) or "{}"), "model_sha256": checksum}
    except (ValueError, TypeError, RecursionError) as error:
        raise InputError(
            f"'{path}': its {PROVENANCE} cannot be read ({shown(error)}); fit the model again"
        ) from error
