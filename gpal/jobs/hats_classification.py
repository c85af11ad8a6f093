"""The main job for a survey in HATS layout.

1. the sources of known class are read into memory, partition by partition;
2. they are what `classify` learns from, validates with and reports on;
3. every source of the survey gets its probabilities, in a folder of the survey's own layout; those
   of known class have there what `classify` said of them, which did not see their label.

What an interrupted run has finished is not done again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Set
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from gpal.catalog import Catalog
from gpal.catalog.release_files import sha256
from gpal.errors import InputError
from gpal.files.output import atomic_path
from gpal.jobs.class_fractions import check_prior
from gpal.jobs.classification import classify
from gpal.jobs.hats import HatsRows, files_of, open_hats, said_of_survey
from gpal.jobs.hats_prediction import predict_hats, refuse_inside
from gpal.jobs.result_folder import MARK
from gpal.provenance import to_json

if TYPE_CHECKING:
    from distributed import Client

__all__ = ["HATS_OUTPUTS", "classify_hats", "labelled_sources"]

HATS_OUTPUTS = ("probabilities", MARK)


def classify_hats(
    known: Catalog,
    source: str | os.PathLike,
    out: str | os.PathLike,
    rows: HatsRows,
    *,
    classifier: Any = None,
    prior: str | Mapping[str, float] = "train",
    confidence: float = 0.6,
    client: Client | None = None,
    progress: bool | None = None,
    **options: Any,
) -> dict[str, int]:
    """Classify every source of a catalog in HATS layout.

    Parameters
    ----------
    known : Catalog
        The sources of known class, see `labelled_sources`.
    source : str or path
        Folder of a catalog or of a collection.
    out : str or path
        The folder of results: that of `classify` for the sources of known class, and in it
        `probabilities`, a catalog in HATS layout.
    rows : HatsRows
        How to read the rows, with a schema.
    classifier, confidence
        As of `classify`.
    prior : str or mapping of str to float
        "train", or class -> fraction, for the sources without a class. By "train" those of an
        undecided class have the fractions that the schema knows (`Catalog.known_fractions`).
    client : dask.distributed.Client, optional
        Whose workers read and predict; None: this process, one partition at a time.
    progress : bool, optional
        None shows a bar on a terminal only.
    **options
        Others of `classify`: n_splits, n_repeats, random_state, jobs.

    Returns
    -------
    dict of str to int
        Prediction -> sources of the survey.

    Raises
    ------
    InputError
        As `classify` and `predict_hats` do, and where the folder holds another job's results.
    """
    out = Path(out)
    if prior == "estimated":
        raise InputError(
            "class fractions are not estimated on a catalog in HATS layout; give prior='train' or"
            " fractions"
        )
    refuse_inside(out, Path(source))
    check_prior(prior, dict.fromkeys(known.classes, 0), known.is_target)
    job = {
        "catalog": known.provenance,
        "files": files_of(source),
        "groups": {name: list(labels) for name, labels in known.groups.items()},
        "classifier": repr(classifier),
        "confidence": confidence,
        **{name: value for name, value in options.items() if name != "jobs"},
    }
    if not _is_learned(out, job):
        (out / MARK).unlink(missing_ok=True)
        classify(
            known, out, classifier=classifier, confidence=confidence, progress=progress, **options
        )
        with atomic_path(out / MARK) as temporary:
            Path(temporary).write_text(to_json(job | {"made": _made(out)}), encoding="utf-8")
    fractions = known.known_fractions() if prior == "train" else {}
    return predict_hats(
        out / "model.npz",
        source,
        out / "probabilities",
        rows=rows,
        confidence=confidence,
        prior=prior if isinstance(prior, Mapping) else None,
        prior_of={name: fractions[name] for name in fractions if name not in known.known_as},
        known=out / "probabilities.fits",
        client=client,
        progress=progress,
    )


def labelled_sources(
    source: str | os.PathLike,
    rows: HatsRows,
    client: Client | None = None,
    named: Iterable[str] = (),
) -> Catalog:
    """The sources of known class that pass the cuts, in memory.

    named  classes that are learned from although the schema has them undecided, since a group
           names them

    Raises InputError where the schema names no column of classes or of identifiers, and where there
    is no such source.
    """
    import dask

    schema = rows.schema
    if schema is None or not schema.class_column or not schema.id:
        raise InputError(
            "a schema with `class` and `id` says which sources of the survey are of known class;"
            " give one (--schema)"
        )
    catalog, first, rows = open_hats(source, rows)
    groups = schema.classes.groups
    named = {label.lower() for label in (*schema.classes.default, *named)}
    learned = named.union(*(groups.get(name, ()) for name in named))
    with dask.config.set({} if client is not None else {"scheduler": "synchronous"}):
        parts = dask.compute(
            *(dask.delayed(_of_known_class)(part, rows, learned) for part in catalog.to_delayed())
        )
    table = pd.concat([first.iloc[:0], *parts]).reset_index(drop=True)
    if not len(table):
        raise InputError(f"column '{schema.class_column}' names the class of no source")
    known, _ = rows.catalog(table)
    said = known.provenance | said_of_survey(source, schema)
    known = replace(known, schema=schema, provenance=said)
    return known.with_classes(schema.classes.default) if schema.classes.default else known


def _of_known_class(rows: pd.DataFrame, how: HatsRows, learned: Set[str]) -> pd.DataFrame:
    """The rows of a partition that pass the cuts and have a class, or one that is `learned`."""
    assert how.schema is not None
    column = rows[how.schema.class_column]
    rows = rows[column.notna() & (column.astype(str).str.strip() != "")]  # few, as a rule
    if not len(rows):
        return pd.DataFrame(rows)
    catalog, kept = how.catalog(rows)
    known = (catalog.y != "") | np.isin(catalog.labels, np.array([*learned], dtype=str))
    return pd.DataFrame(rows[kept][known])


def _is_learned(out: Path, job: dict[str, Any]) -> bool:
    """Whether the folder has the model of this job. InputError where it has that of another, and
    probabilities by it."""
    mark = out / MARK
    if not mark.is_file():
        return False
    held = json.loads(mark.read_text(encoding="utf-8"))
    made = held.pop("made", None)  # none of folders of before
    same = held == json.loads(to_json(job)) and made in (None, _made(out))
    if not same and (out / "probabilities").exists():
        raise InputError(
            f"the folder '{out}' holds results of another survey, schema, model or settings; give"
            " another folder"
        )
    return same and (out / "model.npz").is_file() and (out / "probabilities.fits").is_file()


def _made(out: Path) -> dict[str, str]:
    """Checksums of what was learned: `classify` of a file may have put its own in their place."""
    paths = (out / "model.npz", out / "probabilities.fits")
    return {path.name: sha256(path) for path in paths if path.is_file()}
