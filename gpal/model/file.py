"""Model files: arrays and JSON in one .npz, never pickles.

    description      JSON: format, version of gpal, kind of estimator, everything that is no array
    provenance.json  what made the model, where the caller knows (catalog, settings, seed, date)
    NAME             the arrays

What stands in them is the estimators' affair (`to_data`, `from_data`); here is how it is written,
in one step, and read, without trust.
"""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gpal._version import __version__
from gpal.errors import InputError
from gpal.output_files import atomic_path
from gpal.provenance import to_json

__all__ = ["FORMAT", "read_model", "write_model"]

FORMAT = 2
PROVENANCE = "provenance.json"


def write_model(
    path: str | os.PathLike,
    kind: str,
    data: Mapping[str, Any],
    arrays: Mapping[str, np.ndarray],
    provenance: Mapping[str, Any] | None = None,
) -> None:
    """Write a model to `path`, whole or not at all.

    kind  the estimator's class name; data  JSON-able; arrays  of numbers
    """
    description = {"format": FORMAT, "gpal": __version__, "kind": kind, **data}
    text = json.dumps(description, allow_nan=True)
    with atomic_path(path) as temporary:
        with open(temporary, "wb") as stream:
            np.savez_compressed(stream, description=np.array(text), **arrays)
        if provenance is not None:
            with zipfile.ZipFile(temporary, "a") as archive:
                archive.writestr(zipfile.ZipInfo(PROVENANCE), to_json(provenance))


def read_model(path: str | os.PathLike, kind: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """(data, arrays) of a file that `write_model` wrote.

    Raises InputError where it is missing, damaged, of another kind, or of another format.
    """
    path = Path(path)
    try:
        # Opened here: of a damaged archive NumPy would leave the file open.
        with open(path, "rb") as stream, np.load(stream, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files if name != PROVENANCE}
        description = json.loads(str(arrays.pop("description")))
        found = int(description["format"])
        author = str(description["gpal"])
    except FileNotFoundError:
        raise InputError(f"no model file '{path}'") from None
    except (zipfile.BadZipFile, KeyError, ValueError, TypeError, OSError, EOFError):
        raise InputError(f"'{path}' is not a gpal model file or is damaged; fit it again") from None
    if found > FORMAT:
        raise InputError(f"'{path}' was written by gpal {author}; upgrade gpal")
    if found < FORMAT:
        raise InputError(
            f"'{path}' was written by gpal {author}, whose model files gpal {__version__} does not"
            " read; fit the model again"
        )
    if description.get("kind") != kind:
        raise InputError(f"'{path}' holds a {description.get('kind')}; load it with that class")
    return description, arrays
