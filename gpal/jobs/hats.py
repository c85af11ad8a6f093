"""Probabilities for a survey in HATS layout, in the same layout: partition by partition, margin and
all.

LSDB reads and writes the partitions, and Dask hands them out. A partition is written whole or not
at all, so that a run which was interrupted goes on with those that are missing.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from gpal.classifier import GPClassifier
from gpal.errors import InputError
from gpal.files.output import atomic_path
from gpal.jobs.prediction import predict
from gpal.provenance import to_json
from gpal.tensorflow_start import start_tensorflow

if TYPE_CHECKING:
    from distributed import Client

__all__ = ["is_hats", "predict_hats"]

MARK = "gpal.json"  # in a folder of results: of which job it is
FIRST = 100  # rows by which the columns of the result are known


def is_hats(path: str | os.PathLike) -> bool:
    """Whether a folder is a catalog, or a collection of them, in HATS layout."""
    marks = ("collection.properties", "hats.properties")
    return any((Path(path) / mark).is_file() for mark in marks)


def predict_hats(
    model: str | os.PathLike,
    source: str | os.PathLike,
    out: str | os.PathLike,
    *,
    confidence: float = 0.6,
    prior: Mapping[str, float] | None = None,
    client: Client | None = None,
    progress: bool | None = None,
) -> int:
    """As `predict_file`, for a catalog in HATS layout, into a folder of that layout.

    Parameters
    ----------
    model : str or path
        The file that the model was saved to, which workers can read.
    source : str or path
        Folder of a catalog or of a collection.
    out : str or path
        Folder of the result, a collection with the partitions of the source. One that an
        interrupted run of the same job has left is completed.
    confidence : float
        A source whose largest probability is below it is called MIXED.
    prior : mapping of str to float, optional
        Class -> fraction that the probabilities refer to; None: as the model was made.
    client : dask.distributed.Client, optional
        Whose workers predict; None: this process, one partition at a time.
    progress : bool, optional
        None shows a bar on a terminal only.

    Returns
    -------
    int
        Sources in the result, those of the margin not among them.

    Raises
    ------
    InputError
        Where LSDB is missing, where `out` holds something else, and as `predict` does.
    """
    lsdb = _lsdb()
    import dask

    fitted = GPClassifier.load(model)
    options: dict[str, Any] = {"confidence": confidence, "prior": prior}
    catalog = lsdb.open_catalog(source)
    first = _first_rows(catalog)
    table = predict(fitted, first, progress=False, **options)
    origin = json.loads(table.meta["PROVENAN"])
    origin["catalog"] = {"name": Path(source).name, "sha256": _digest(Path(source))}
    if _is_complete(Path(out), origin):
        return int(lsdb.open_catalog(out).hc_structure.catalog_info.total_rows)
    sky = catalog.hc_structure.catalog_info
    kept = [sky.ra_column, sky.dec_column]
    meta = _columns(first, table, kept).iloc[:0]
    predicted = catalog.map_partitions(
        _of_partition, str(Path(model).absolute()), options, kept, meta, meta=meta
    )
    hidden = progress is False or (progress is None and not os.isatty(2))
    with dask.config.set({} if client is not None else {"scheduler": "synchronous"}):
        predicted.write_catalog(
            out,
            catalog_name=Path(out).name,
            addl_hats_properties={"gpal_provenance": to_json(origin)},
            progress_bar=not hidden,
            resume=True,
        )
    return int(lsdb.open_catalog(out).hc_structure.catalog_info.total_rows)


def _lsdb() -> Any:
    try:
        import lsdb
    except ImportError:
        raise InputError(
            "a catalog in HATS layout is read by LSDB, which is not installed; type"
            " `pip install lsdb`"
        ) from None
    return lsdb


def _digest(source: Path) -> str:
    """Of what a catalog says of itself and of its partitions."""
    digest = hashlib.sha256()
    for name in ("*.properties", "*/hats.properties", "partition_info.csv", "*/partition_info.csv"):
        for path in sorted(source.glob(name)):
            digest.update(path.read_bytes())
    return digest.hexdigest()


def _first_rows(catalog: Any) -> pd.DataFrame:
    for partition in catalog.to_delayed():
        rows = partition.compute(scheduler="synchronous")
        if len(rows):
            return rows.head(FIRST)
    raise InputError("the catalog has no rows; give one with at least one source")


def _is_complete(out: Path, origin: dict[str, Any]) -> bool:
    """Whether the folder holds the whole result; else it is marked as that of this job.

    Raises InputError where it is that of another.
    """
    job = {name: origin[name] for name in ("gpal", "catalog", "settings", "model_provenance")}
    mark = out / MARK
    if out.exists() and not out.is_dir():
        raise InputError(f"'{out}' is a file; give a folder for a catalog in HATS layout")
    if out.is_dir() and any(out.iterdir()):
        if not mark.is_file():
            raise InputError(f"the folder '{out}' is not empty; give another, or empty it")
        if json.loads(mark.read_text(encoding="utf-8")) != json.loads(to_json(job)):
            raise InputError(
                f"the folder '{out}' holds results of another model, table or settings; give"
                " another folder"
            )
        return is_hats(out)
    out.mkdir(parents=True, exist_ok=True)
    with atomic_path(mark) as temporary:
        Path(temporary).write_text(to_json(job), encoding="utf-8")
    return False


@lru_cache(maxsize=1)
def _loaded(path: str) -> GPClassifier:
    """Once in a process, which may be a worker's."""
    start_tensorflow()
    return GPClassifier.load(path)


def _of_partition(
    rows: pd.DataFrame, path: str, options: dict[str, Any], kept: list[str], meta: pd.DataFrame
) -> pd.DataFrame:
    if not len(rows):
        return meta
    table = predict(_loaded(path), rows, progress=False, **options)
    return _columns(rows, table, kept).astype(meta.dtypes)


def _columns(rows: pd.DataFrame, table: Any, kept: list[str]) -> pd.DataFrame:
    """The columns of the result beside the position and the index of the survey."""
    new = table.to_pandas(index=False).set_index(rows.index)
    new = new.drop(columns=[name for name in ("ra", "dec") if name in new])
    return pd.concat([rows[kept], new], axis=1)
