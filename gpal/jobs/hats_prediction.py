"""Probabilities for a survey in HATS layout, in the same layout: partition by partition, margin and
all.

LSDB reads and writes the partitions, and Dask hands them out. A partition is written whole or not
at all, so that a run which was interrupted goes on with those that are missing.
"""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from gpal.catalog import Catalog
from gpal.catalog.release_files import sha256
from gpal.classifier import GPClassifier
from gpal.errors import InputError, shown
from gpal.files.growing_tables import ENDINGS
from gpal.files.output import atomic_path
from gpal.jobs.hats import HatsRows, files_of, is_hats, lsdb, open_hats, said_of_survey
from gpal.jobs.hats_carried import alike_in_partitions
from gpal.jobs.prediction import predict
from gpal.jobs.probability_catalogue import read_probabilities
from gpal.jobs.result_folder import MARK
from gpal.names import probability_column
from gpal.provenance import to_json
from gpal.tensorflow_start import start_tensorflow

if TYPE_CHECKING:
    from distributed import Client

__all__ = ["predict_hats", "refuse_inside"]


def predict_hats(
    model: str | os.PathLike,
    source: str | os.PathLike,
    out: str | os.PathLike,
    *,
    rows: HatsRows | None = None,
    confidence: float = 0.6,
    prior: str | Mapping[str, float] | None = None,
    prior_of: Mapping[str, Mapping[str, float]] | None = None,
    known: str | os.PathLike | None = None,
    client: Client | None = None,
    progress: bool | None = None,
) -> dict[str, int]:
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
    rows : HatsRows, optional
        How to read the rows; None: by the columns that the model was fitted to.
    confidence : float
        A source whose largest probability is below it is called MIXED.
    prior : str or mapping of str to float, optional
        "train", or class -> fraction that the probabilities refer to; None: as the model was made.
    prior_of : mapping of str to mapping of str to float, optional
        Undecided class of a schema -> class -> fraction that the probabilities of its sources refer
        to, whatever `prior` is.
    known : str or path, optional
        A table of the probabilities of the sources that the model learned from, which did not see
        their own labels: what `classify` wrote. They stand in the result in place of the model's,
        and columns `label` and `out_of_fold` say so.
    client : dask.distributed.Client, optional
        Whose workers predict; None: this process, one partition at a time.
    progress : bool, optional
        None shows a bar on a terminal only.

    Returns
    -------
    dict of str to int
        Prediction -> sources, those of the margin not among them.

    Raises
    ------
    InputError
        Where LSDB is missing, where `out` holds something else, and as `predict` does.
    """
    import dask

    lsdb()
    if Path(out).suffix.lower() in ENDINGS:
        raise InputError(
            f"the result is a folder in HATS layout, and '{shown(out, 300)}' the name of a file:"
            " give that of a folder (--out)"
        )
    refuse_inside(Path(out), Path(source))
    fitted, rows = GPClassifier.load(model), rows or HatsRows()
    catalog, first, rows = open_hats(source, rows, fitted)
    job = _Job(
        (str(Path(model).absolute()), fitted.provenance_["model_sha256"]),
        rows,
        {"confidence": confidence, "prior": prior},
        dict(prior_of or {}),
        None if known is None else (str(Path(known).absolute()), sha256(Path(known))),
    )
    whole = job.of(replace(rows, cuts=None))  # none of the first rows may pass
    table = predict(fitted, whole.rows.catalog(first, fitted)[0], progress=False, **job.options)
    origin = json.loads(table.meta["PROVENAN"])
    origin["catalog"]["cuts"] = [rows.cuts] if isinstance(rows.cuts, str) else list(rows.cuts or ())
    origin["catalog"] |= said_of_survey(source, rows.schema)
    origin["settings"] |= {} if job.known is None else {"known_sha256": job.known[1]}
    origin["settings"] |= {"known_fractions": job.prior_of} if job.prior_of else {}
    with dask.config.set({} if client is not None else {"scheduler": "synchronous"}):
        if not _is_complete(Path(out), origin, files_of(source)):
            sky = catalog.hc_structure.catalog_info
            kept = (sky.ra_column, sky.dec_column)
            meta = whole(first, kept, None).iloc[:0]
            hidden = progress is False or (progress is None and not os.isatty(2))
            try:
                catalog.map_partitions(job, kept, meta, meta=meta).write_catalog(
                    out,
                    catalog_name=Path(out).name,
                    addl_hats_properties={"gpal_provenance": to_json(origin)},
                    progress_bar=not hidden,
                    resume=True,
                )
            except RuntimeError as error:  # LSDB's, of a catalog without a row
                if "empty" not in str(error):
                    raise
                shutil.rmtree(out, ignore_errors=True)
                cuts = ", ".join(origin["catalog"]["cuts"])
                raise InputError(
                    f"no source of the survey passes the cuts {cuts}; loosen them"
                ) from error
        result = lsdb().open_catalog(out, columns=["prediction"]).to_delayed()
        counts: Counter[str] = Counter()
        for each in dask.compute(*map(dask.delayed(_counted), result)):
            counts.update(each)
    return dict(counts)


def refuse_inside(out: Path, source: Path) -> None:
    """InputError for a result in the survey's own folder, whose partitions it would be."""
    if out.resolve().is_relative_to(source.resolve()):
        raise InputError(f"'{shown(out, 300)}' is in the survey's own folder; give another")


def _counted(rows: pd.DataFrame) -> dict[str, int]:
    return rows["prediction"].value_counts().to_dict()


def _is_complete(out: Path, origin: dict[str, Any], files: str) -> bool:
    """Whether the folder holds the whole result; else it is marked as that of this job, on these
    files of the survey.

    Raises InputError where it is that of another.
    """
    job = {name: origin[name] for name in ("gpal", "catalog", "settings", "model_provenance")}
    job["files"] = files
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


class _Job:
    """What is done with a partition. It travels to where that is.

    model, known  path and checksum of a file
    prior_of      undecided class -> class fractions of its own
    """

    def __init__(
        self,
        model: tuple[str, str],
        rows: HatsRows,
        options: dict[str, Any],
        prior_of: Mapping[str, Mapping[str, float]],
        known: tuple[str, str] | None,
    ) -> None:
        self.model, self.rows, self.options = model, rows, options
        self.prior_of, self.known = prior_of, known

    def of(self, rows: HatsRows) -> _Job:
        """The same of rows that are read otherwise."""
        return _Job(self.model, rows, self.options, self.prior_of, self.known)

    def __call__(
        self, rows: pd.DataFrame, kept: tuple[str, str], meta: pd.DataFrame | None
    ) -> pd.DataFrame:
        """The columns of the result beside the position and the index of the survey.

        meta  the result without a row; None: it is not known yet
        """
        if meta is not None and not len(rows):
            return meta
        model = _loaded(*self.model)
        catalog, passed = self.rows.catalog(rows, model)
        if meta is not None and not len(catalog):
            return meta
        rows = rows[passed]
        new = self._predicted(model, catalog).set_index(rows.index)
        if self.rows.schema is not None and self.rows.about is not None:
            new = alike_in_partitions(new, self.rows.schema.carry, self.rows.about)
        if self.known is not None:
            new = _with_known(new, _learned_from(*self.known), model.classes_.tolist())
        new = new.drop(columns=["ra", "dec"])
        result = pd.concat([rows[list(kept)], new], axis=1)
        return result if meta is None else result.astype(meta.dtypes)

    def _predicted(self, model: GPClassifier, catalog: Catalog) -> pd.DataFrame:
        table = predict(model, catalog, progress=False, **self.options).to_pandas(index=False)
        others: list[tuple[np.ndarray, Any]] = [
            (catalog.is_target & (catalog.labels == label), prior)
            for label, prior in self.prior_of.items()
        ]
        if self.known is not None and self.options["prior"] is not None:
            # As `classify` does: the fractions are those of the sources whose class is asked for.
            others.append((~catalog.is_target, None))
        for of_those, prior in others:
            if of_those.any():
                options = self.options | {"prior": prior}
                found = predict(model, catalog[of_those], progress=False, **options)
                for column in found.colnames:
                    table.loc[of_those, column] = found[column].tolist()
        return table


@lru_cache(maxsize=1)
def _loaded(path: str, checksum: str) -> GPClassifier:
    """Once in a process, which may be a worker's, and outlive the file."""
    start_tensorflow()
    model = GPClassifier.load(path)
    _check_the_same(path, checksum, model.provenance_["model_sha256"])
    return model


@lru_cache(maxsize=1)
def _learned_from(path: str, checksum: str) -> pd.DataFrame:
    """The sources that the model learned from, by name."""
    _check_the_same(path, checksum, sha256(Path(path)))
    table = read_probabilities(path)
    return table[table["out_of_fold"].astype(bool)].to_pandas(index=False).set_index("name")


def _check_the_same(path: str, checksum: str, found: str) -> None:
    if found != checksum:
        raise InputError(f"'{path}' has changed since this run began; begin again")


def _with_known(new: pd.DataFrame, known: pd.DataFrame, classes: Sequence[Any]) -> pd.DataFrame:
    """What the model says of sources that it learned from in place of what it learned."""
    names = new["name"].to_numpy()
    own = [column for column in new.columns if column.startswith("p_")]
    needed = {probability_column(str(name)) for name in classes}
    if lacking := sorted(needed - {*known.columns}):
        raise InputError(
            f"the table of known sources has no column '{shown(lacking[0])}'; give that of this"
            " model"
        )
    learned = known.index.isin(names)
    place = pd.Index(names).get_indexer(known.index[learned])
    sky = [column for column in ("ra", "dec") if column in new and column in known]
    here, there = new[sky].iloc[place].to_numpy(float), known.loc[learned, sky].to_numpy(float)
    others = ~np.isclose(here, there, rtol=0, atol=1e-9, equal_nan=True).all(axis=1)
    if others.any():
        raise InputError(
            f"two sources of the survey are called '{shown(known.index[learned][others][0])}';"
            " identifiers must differ"
        )
    for column in (*own, "prediction", "entropy", "outside_support"):
        if column in new.columns and column in known.columns:
            new.iloc[place, new.columns.get_loc(column)] = known.loc[learned, column].to_numpy()
    label, out_of_fold = pd.Series("", index=new.index), pd.Series(False, index=new.index)
    label.iloc[place], out_of_fold.iloc[place] = known.loc[learned, "label"].to_numpy(), True
    return new.assign(label=label, out_of_fold=out_of_fold)
