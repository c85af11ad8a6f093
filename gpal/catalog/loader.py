"""load_catalog: a name or a file into a Catalog."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gpal._version import __version__
from gpal.catalog.carrying import carried_columns
from gpal.catalog.catalog import Catalog, Decision
from gpal.catalog.class_intervals import intervals
from gpal.catalog.columns import as_stored, conversion, numbers, text
from gpal.catalog.cuts import cut
from gpal.catalog.error_scale import find_calibration, rescale
from gpal.catalog.feature_record import schema_used
from gpal.catalog.features import measure
from gpal.catalog.frames import old_frame
from gpal.catalog.readers import FORMATS, read_table, table_format
from gpal.catalog.registry import find_schema, known_names
from gpal.catalog.release_files import find_file, is_release, recognise, sha256
from gpal.catalog.remarks import Remarks
from gpal.catalog.schema import Schema, close_matches
from gpal.catalog.sentinels import is_sentinel
from gpal.errors import InputError, shown

if TYPE_CHECKING:
    from astropy.table import Table

__all__ = ["load_catalog"]

CACHED_NAME = "contents"  # what astropy's download cache calls every file


def load_catalog(
    name_or_path: str | Path,
    *,
    schema: str | Path | Schema | None = None,
    features: str | Sequence[str] = "default",
    mapping: Mapping[str, Any] | None = None,
    cuts: str | Sequence[str] | None = None,
    error_scale: bool | str | Path | Mapping[str, float] | None = None,
) -> Catalog:
    """Read a catalog.

    A value that was not measured stays in the catalog, as a measurement with infinite error; every
    such treatment is counted in `Catalog.decisions`. Only `cuts` removes sources.

    Parameters
    ----------
    name_or_path : str or path
        A known release ("4fgl-dr4", any case), or a FITS, VOTable, ECSV, CSV or Parquet file.
    schema : str, path or Schema, optional
        For a file gpal does not recognise: the name of a known release that it is laid out like, or
        a TOML schema.
    features : str or sequence of str
        A feature set of the schema ("default", "paper", ...) or a list of features.
    mapping : mapping, optional
        Keys of a schema given inline, on top of `schema` where there is one, e.g. {"id": "Name",
        "class": "Type", "features": {"flux": "F", "index": {"column": "G", "error": "e_G"}}}; an
        error column with one of the usual names (e_F, F_err, psfMagErr_u of psfMag_u, ...) is found
        by itself.
    cuts : str or sequence of str, optional
        Quality cuts such as "Signif_Avg > 30", or names of cuts of the schema.
    error_scale : bool, str, path or mapping, optional
        Scale the errors: True by the schema's own calibration, or a file that `gpal catalogs
        calibrate-errors` wrote, or {feature: factor}.

    Returns
    -------
    Catalog

    Raises
    ------
    InputError
        One line naming column, row and remedy, on anything that cannot be used.

    Warns
    -----
    UserWarning
        Of features without an error column, unless error = "none" says so, and of numbers that look
        like "not measured" and may be values.

    Examples
    --------
    >>> import gpal
    >>> gpal.load_catalog("4fgl-dr4", features=["log_flux", "index"], cuts="Signif_Avg > 30")
    <Catalog '4FGL-DR4': 747 sources
      features  log_flux, index
      labelled  bll 279, fsrq 231, psr 132
      targets   51>
    """
    path, rules = find_source(name_or_path, schema, dict(mapping or {}))
    name = file_name(path, rules)
    try:
        table = read_rows(path, rules)
        catalog = build(table, rules, features)
        catalog = replace(
            catalog, provenance=provenance_of(catalog, sha256(path), name, features, cuts)
        )
        catalog = with_error_scale(catalog, error_scale)
        return cut(catalog, cuts) if cuts else catalog
    except InputError as error:
        raise InputError(f"{name}: {error}") from None


def with_error_scale(catalog: Catalog, error_scale: Any) -> Catalog:
    """Errors scaled, and said so in the provenance; `error_scale` as of `load_catalog`."""
    if error_scale is None or error_scale is False:
        return catalog
    calibration = find_calibration(error_scale, catalog.schema)
    names, measurements = catalog.feature_names, rescale(catalog.measurements, calibration)
    left = [
        f"'{shown(name)}'"
        for name, errors in zip(names, catalog.X_err.T, strict=True)
        if name not in calibration.scale and (np.isfinite(errors) & (errors > 0)).any()
    ]
    if left and not isinstance(error_scale, Mapping):
        warnings.warn(
            f"the error calibration has no factor for {', '.join(left)}: errors there stay as they"
            " are",
            stacklevel=3,
        )
    said = {
        "error_scale": {n: s for n, s in calibration.scale.items() if n in names},
        "error_scale_measured": dict(calibration.measured),
    }
    return replace(catalog, measurements=measurements, provenance={**catalog.provenance, **said})


def file_name(path: Path, schema: Schema) -> str:
    """The file's name, also where it is in a cache."""
    return schema.file if path.name == CACHED_NAME else path.name


def read_rows(path: Path, schema: Schema) -> Table:
    """The table in a file, as the schema says where it is."""
    return read_table(
        path,
        file_name(path, schema),
        schema.hdu,
        words=(schema.id, schema.class_column, schema.association),
        trusted=is_release,  # the checksum that 4FGL states of itself is wrong
    )


def find_source(
    name_or_path: str | Path, schema: str | Path | Schema | None, mapping: dict[str, Any]
) -> tuple[Path, Schema]:
    """The file and how to read it."""
    name, path = str(name_or_path), expanded(name_or_path)
    if name.lower() in known_names():
        if schema is not None:
            raise InputError(f"'{name}' has its own schema; leave schema= out, or give a file")
        release = find_schema(name, mapping)
        return find_file(release), release
    if not is_file(path):
        if _is(path, "is_fifo"):
            raise InputError(f"'{path}' is a pipe, which cannot be read twice; save it first")
        if _is(path, "is_dir"):
            raise InputError(
                f"'{path}' is a folder; give a file (`gpal classify` and `gpal predict` take a"
                " folder in HATS layout too)"
            )
        if not _looks_like_path(name):
            raise InputError(
                f"no catalog named '{shown(name)}' ({close_matches(name, known_names())});"
                " name a known one or give the path of a file"
            )
        raise InputError(
            f"no file '{path}'; check the path, or name a known catalog: {', '.join(known_names())}"
        )
    if isinstance(schema, Schema):
        if mapping:
            raise InputError("mapping= goes with a schema's name or file; change the Schema itself")
        return path, schema
    if schema is not None:
        return path, find_schema(schema, mapping)
    try:
        table_format(path.name)
        release_name = recognise(path)
        if release_name is not None:
            return path, find_schema(release_name, mapping)
        if mapping:
            return path, Schema.from_dict(mapping)
    except InputError as error:
        raise InputError(f"{path.name}: {error}") from None
    raise InputError(
        f"{path.name}: not a file of a known release ({', '.join(known_names())}); give the schema"
        " to read it by, a known name or a TOML file (--schema, in Python schema= or mapping=);"
        " `gpal schema init` drafts one"
    )


def expanded(path: str | Path) -> Path:
    """A path with its `~` spelled out."""
    try:
        return Path(path).expanduser()
    except RuntimeError:  # of a user whom this machine does not know
        return Path(path)


def is_file(path: Path) -> bool:
    """Whether there is such a file; False for what could be the name of none."""
    return _is(path, "is_file")


def _is(path: Path, kind: str) -> bool:
    with suppress(OSError, ValueError):  # no file has such a name
        return bool(getattr(path, kind)())
    return False


def _looks_like_path(name: str) -> bool:
    endings = tuple(ending for group in FORMATS.values() for ending in group)
    return "/" in name or "\\" in name or name.lower().endswith(endings)


def build(
    table: Table,
    schema: Schema,
    features: str | Sequence[str],
    remarks: Remarks | None = None,
) -> Catalog:
    """The catalog that a table is, without its provenance; `remarks` as of `measure`."""
    ids = identifiers(table, schema)
    measurements, decisions = measure(table, schema, feature_names(schema, features), ids, remarks)
    printed = _printed_classes(table, schema)
    labels = np.array([word.lower() for word in printed.tolist()], dtype=str)
    uppercase = schema.classes.uppercase_identified
    identified = np.char.isupper(printed) if uppercase else np.zeros(len(ids), dtype=bool)
    known = sorted(set(labels.tolist()) - schema.classes.open - {""})
    decisions = (*decisions, *_undecided(table, schema, labels))
    unknown = _without_position(table, schema)
    catalog = Catalog(
        measurements=measurements,
        labels=labels,
        original_labels=printed,
        identified=identified,
        ra=_angle(table, schema.ra, ids, 360, unknown),
        dec=_angle(table, schema.dec, ids, 90, unknown),
        position_error=_position_error(table, schema, ids),
        table=table,
        schema=schema,
        provenance={},
        decisions=decisions,
        groups={name: (name,) for name in known},
        carried=carried_columns(table, schema.carry),
    )
    return catalog.with_classes(schema.classes.default) if schema.classes.default else catalog


def _printed_classes(table: Table, schema: Schema) -> np.ndarray:
    """(n,) what stands in the class column, or the intervals that its numbers lie in."""
    column = schema.class_column
    if not column:
        return np.full(len(table), "")
    if not schema.classes.edges:
        return text(table, column)
    values = numbers(table, column)
    values = np.where(is_sentinel(values, schema.sentinels or ()), np.nan, values)
    stored = [as_stored(table, column, edge) for edge in schema.classes.edges]
    return intervals(values, schema.classes.edges, column, stored)


def _undecided(table: Table, schema: Schema, labels: np.ndarray) -> list[Decision]:
    """What stands in the class column for "no class", beside what the schema names a candidate."""
    if schema.classes.edges:
        values = numbers(table, schema.class_column)
        absent = [(each, is_sentinel(values, [each])) for each in schema.sentinels or ()]
        return [
            Decision(schema.class_column, f"{each:g}: no class, to be classified", rows)
            for each, rows in absent
            if rows.any()
        ]
    words = schema.classes.open - {"", *schema.classes.candidates}
    return [
        Decision(schema.class_column, f"'{word}': no class, to be classified", labels == word)
        for word in sorted(words & set(labels.tolist()))
    ]


def provenance_of(
    catalog: Catalog,
    checksum: str,
    name: str,
    features: str | Sequence[str],
    cuts: str | Sequence[str] | None,
) -> dict[str, Any]:
    """Where the catalog came from; an extract names the full file it was taken from."""
    schema = catalog.schema
    is_set = isinstance(features, str) and features in schema.feature_sets
    return {
        "catalog": schema.name,
        "title": schema.title,
        "release": schema.release,
        "file": name,
        "sha256": checksum,
        "release_file": schema.file or name,
        "release_sha256": catalog.table.meta.get("ORIGSHA", checksum),
        "url": schema.url,
        "reference": dict(schema.reference),
        "feature_set": features if is_set else None,
        "features": list(catalog.feature_names),
        "cuts": [cuts] if isinstance(cuts, str) else list(cuts or ()),
        "schema": schema_used(catalog.table, schema, catalog.feature_names),
        "gpal_version": __version__,
    }


def identifiers(table: Table, schema: Schema) -> np.ndarray:
    """(n,) names of the sources, all different: a column of them, or the numbers of the rows."""
    if not schema.id:
        return np.arange(len(table)).astype(str)
    ids = text(table, schema.id)
    empty = np.flatnonzero(ids == "")
    if len(empty):
        raise InputError(
            f"column '{schema.id}', row {empty[0]} is empty ({len(empty)} such in all); name every"
            " source, or leave 'id' out and its row becomes its name"
        )
    unique, counts = np.unique(ids, return_counts=True)
    if (counts > 1).any():
        k = int(np.flatnonzero(counts > 1)[0])
        rows = np.flatnonzero(ids == unique[k])
        raise InputError(
            f"column '{schema.id}': '{shown(unique[k])}' stands in rows {rows[0]} and {rows[1]}"
            f" ({int((counts > 1).sum())} such in all); identifiers must differ"
        )
    return ids


def feature_names(schema: Schema, features: str | Sequence[str]) -> tuple[str, ...]:
    """The features of a feature set or a list, each known to the schema."""
    if isinstance(features, str) and features not in schema.feature_sets:
        if features not in schema.features:
            known = [*schema.feature_sets, *schema.features]
            raise InputError(f"no feature set '{features}'; {close_matches(features, known)}")
        features = [features]
    if isinstance(features, str):
        features = schema.feature_sets[features]
    if not len(features):
        raise InputError(f"no features asked for; {close_matches('', schema.features)}")
    for name in features:
        if name not in schema.features:
            raise InputError(f"no feature '{name}'; {close_matches(name, schema.features)}")
    if len(set(features)) < len(features):
        twice = next(name for name in features if list(features).count(name) > 1)
        raise InputError(f"feature '{twice}' is named twice; name it once")
    return tuple(features)


def _angle(
    table: Table, column: str, ids: np.ndarray, largest: float, unknown: np.ndarray | bool
) -> np.ndarray:
    """Right ascension or declination in degrees; InputError for one of FK4 or B1950."""
    if column and (frame := old_frame(table, column)):
        raise InputError(
            f"column '{column}' is a position of {shown(frame)}, up to 0.7 degrees from those of"
            " ICRS and J2000, which gpal takes: convert it (SkyCoord(...).icrs), or leave out ra"
            " and dec"
        )
    return _degrees(table, column, ids, (-largest, largest), unknown)


def _degrees(
    table: Table,
    column: str,
    ids: np.ndarray,
    limits: tuple[float, float] = (-np.inf, np.inf),
    unknown: np.ndarray | bool = False,
) -> np.ndarray:
    """An angle in degrees, NaN where it is not finite or `unknown`."""
    if not column:
        return np.full(len(table), np.nan)
    values = numbers(table, column) * conversion(table, column, "deg")
    values[~np.isfinite(values) | unknown] = np.nan
    outside = np.flatnonzero((values < limits[0]) | (values > limits[1]))
    if len(outside):
        i = int(outside[0])
        raise InputError(
            f"column '{column}', row {i} ({ids[i]}): {values[i]:g} degrees is not between"
            f" {limits[0]:g} and {limits[1]:g} ({len(outside)} such in all); correct it, or leave"
            " it empty where the position is unknown, or declare sentinels = [...]"
        )
    return values


def _without_position(table: Table, schema: Schema) -> np.ndarray | bool:
    """(n,) bool: both angles are missing or sentinels; a sentinel alone may be an angle."""
    if not (schema.ra and schema.dec and schema.sentinels):
        return False
    ra, dec = (numbers(table, column) for column in (schema.ra, schema.dec))
    missing = [~np.isfinite(x) | is_sentinel(x, schema.sentinels) for x in (ra, dec)]
    return missing[0] & missing[1]


def _position_error(table: Table, schema: Schema, ids: np.ndarray) -> np.ndarray | None:
    if schema.ellipse is None:
        return None
    ellipse = schema.ellipse
    axes = (ellipse.semimajor, ellipse.semiminor)
    unknown = np.any([is_sentinel(numbers(table, c), schema.sentinels or ()) for c in axes], axis=0)
    sizes = [_degrees(table, column, ids, (0.0, np.inf), unknown) for column in axes]
    return np.column_stack([*sizes, _degrees(table, ellipse.angle, ids, unknown=unknown)])
