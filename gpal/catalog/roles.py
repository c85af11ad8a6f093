"""What the columns of a table that nobody has described are for, guessed by names, UCDs and cells.

A guess is a proposal for a person to read: `gpal schema init` writes it down with its reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from gpal.catalog.bounds import bounds_of
from gpal.catalog.cells import LARGEST_WHOLE
from gpal.catalog.columns import error_column, numbers, text, unit_of
from gpal.catalog.frames import old_frame
from gpal.catalog.sky_columns import DEC, OLD, RA, equatorial, plain, positions, words_of
from gpal.errors import InputError, shown

if TYPE_CHECKING:
    from astropy.table import Table

__all__ = ["B1950", "Roles", "guess_roles", "is_magnitude"]

# Names of columns in lower case without anything between letters and digits, the likeliest first.
IDS = (
    *("sourcename", "name", "sourceid", "objid", "objectid", "id", "designation", "mainid"),
    *("iauname", "source", "specobjid", "object", "objname", "starid", "catid", "diaobjectid"),
)
CLASSES = (
    *("class", "type", "label", "kind", "classification", "srcclass", "sourceclass", "objclass"),
    *("otype", "objtype", "objecttype", "sourcetype", "srctype", "category", "class1"),
    *("classname", "spectype", "sptype", "target", "specclass"),
)
B1950 = "a position of B1950"
# What such words in a name mean is no property of a source.
NOT_A_MEASUREMENT = {
    "a flag": ("flag", "flags", "quality", "qual", "mask", "warning", "zwarning", "clean"),
    "a time": ("mjd", "jd", "hjd", "bjd", "epoch", "date", "time", "obsdate"),
    "another position": ("glon", "glat", "elon", "elat", "supergal", "gallon", "gallat"),
    "how well a position is known": (
        *("conf", "poserr", "poserror", "posunc", "posang", "errmaj", "errmin", "errang"),
        *("errellmaj", "errellmin", "errellpa"),
    ),
    "of an association, which may tell the class": ("assoc", "association", "counterpart"),
    "a number of an observation": (
        *("id", "recno", "plate", "fiber", "fiberid", "run", "rerun", "camcol", "htmid"),
        *("healpix", "ccd", "ccdid", "tile", "objid", "specobjid"),
    ),
    "a count": ("nobs", "count", "counts", "ndet", "nepochs", "npoints"),
}
LIKE_AN_ERROR = (
    *("err", "error", "unc", "sigma", "sig", "uncertainty", "stderr", "rms", "lowerr", "uperr"),
)
UCD_NOT_A_MEASUREMENT = ("meta.", "pos", "time.", "obs.", "stat.probability")
UCD_OF_MOTION = ("pos.pm", "pos.parallax")
UCD_OF_SIGNIFICANCE = "stat.snr"
NO_KIND = "none"
LIMIT_MARKS = {"<", ">", ""}
MANY_CLASSES = 50
FEW_CODES = 10  # different whole numbers, at most: flags and codes
CLASS_WORDS = 2  # at least: less has nothing to tell apart


@dataclass(frozen=True)
class Roles:
    """What each column may be for.

    id, ra, dec, class_column  columns, '' for none
    classes_perhaps            columns of which any may be the class column, where several may
    features                   value -> its error column or columns, None where none was found
    limit_marks                value -> the column that marks some of them as limits
    unclear                    value -> why its error column was not chosen: several may be it
    others                     any other column -> why it is none of these
    """

    id: str = ""
    ra: str = ""
    dec: str = ""
    class_column: str = ""
    classes_perhaps: tuple[str, ...] = ()
    features: dict[str, str | tuple[str, ...] | None] = field(default_factory=dict)
    limit_marks: dict[str, str] = field(default_factory=dict)
    unclear: dict[str, str] = field(default_factory=dict)
    others: dict[str, str] = field(default_factory=dict)


def guess_roles(table: Table) -> Roles:
    """A role for every column."""
    ucds = {name: ucd_of(table, name) for name in table.colnames}
    identifier = next((c for c in _named(table, ucds, "meta.id", IDS) if _differ(table, c)), "")
    if not identifier:
        words = (c for c in table.colnames if _kind(table, c) in "USO" and _differ(table, c))
        identifier = next(words, "")
    class_column = next(
        (c for c in _named(table, ucds, "src.class", CLASSES) if _sorts(table, c)), ""
    )
    perhaps: list[str] = []
    if not class_column:
        sorting = [c for c in table.colnames if c != identifier and _has_words_that_sort(table, c)]
        class_column = sorting[0] if len(sorting) == 1 else ""
        perhaps = sorting if not class_column else []
    errors, unclear = _errors(table, ucds, {identifier, class_column})
    with_errors = {*errors, *unclear}
    beside = positions(table, with_errors)
    ra, dec = equatorial(table, ucds, beside)
    roles = Roles(identifier, ra, dec, class_column, tuple(perhaps), unclear=unclear)
    taken = {identifier, ra, dec, class_column}
    of = {column: value for value, found in errors.items() for column in _as_tuple(found)}
    bounded = {bound: value for value in table.colnames for bound in bounds_of(table, value)}
    marks = {name: value for name in table.colnames if (value := _marked_by(table, name))}
    for name in table.colnames:
        if name in taken:
            continue
        if name in marks:
            roles.limit_marks[marks[name]] = name
            roles.others[name] = f"marks of limits of '{marks[name]}'"
            continue
        reason = f"the error of '{of[name]}'" if name in of else ""
        reason = reason or (f"a bound of '{bounded[name]}'" if name in bounded else "")
        reason = reason or _no_feature(table, name, ucds[name], name in with_errors, name in beside)
        if reason:
            roles.others[name] = reason
        else:
            roles.features[name] = errors.get(name)
    return roles


def ucd_of(table: Table, name: str) -> str:
    """What a column says to be, in the vocabulary of the Virtual Observatory; '' where it does not.

    In a VOTable it is the column's, in FITS a keyword TUCDn of the header.
    """
    meta = getattr(table[name].info, "meta", None) or {}
    keyword = f"TUCD{table.colnames.index(name) + 1}"
    return str(meta.get("ucd") or table.meta.get(keyword) or "").strip().lower()


def is_magnitude(table: Table, name: str) -> bool:
    """Whether a column is a magnitude by its unit, its UCD or its name."""
    by_ucd = ucd_of(table, name).startswith("phot.mag")
    return by_ucd or unit_of(table, name) == "mag" or "mag" in words_of(name)


def _named(table: Table, ucds: dict[str, str], ucd: str, names: Sequence[str]) -> Iterator[str]:
    """Columns by their UCD, the main one first, then by their names in the order of `names`."""
    by_ucd = [name for name in table.colnames if ucds[name].startswith(ucd)]
    yield from sorted(by_ucd, key=lambda name: "meta.main" not in ucds[name])
    for wanted in names:
        yield from (name for name in table.colnames if plain(name) == wanted)


def _kind(table: Table, name: str) -> str:
    """NumPy's kind of a column; NO_KIND of a time or a position, which are no arrays."""
    return getattr(getattr(table[name], "dtype", None), "kind", NO_KIND)


def _texts(table: Table, name: str) -> list[str]:
    try:
        return text(table, name).tolist()
    except InputError:
        return []


def _differ(table: Table, name: str) -> bool:
    """Whether every source has a name of its own there."""
    if _kind(table, name) in ("f", NO_KIND):
        return False
    words = _texts(table, name)
    return bool(words) and "" not in words and len(set(words)) == len(words)


def _sorts(table: Table, name: str) -> bool:
    """Whether some words there stand for many sources each."""
    if _kind(table, name) in ("f", NO_KIND):
        return False
    counts = Counter(word.lower() for word in _texts(table, name) if word)
    return CLASS_WORDS <= len(counts) <= max(MANY_CLASSES, len(table) // 20) and (
        counts.most_common(CLASS_WORDS)[-1][1] > 1
    )


def _has_words_that_sort(table: Table, name: str) -> bool:
    if _kind(table, name) not in "USO" or set(_texts(table, name)) <= LIMIT_MARKS:
        return False
    return not _is_numeric(table, name) and _sorts(table, name)


def _marked_by(table: Table, name: str) -> str:
    """The column whose limits `name` marks by < and >, as `l_Flux` does in VizieR; '' if none."""
    value = name[2:] if name[:2].lower() == "l_" else ""
    words = set(_texts(table, name)) if value in table.colnames else set()
    return value if words - {""} and words <= LIMIT_MARKS else ""


def _is_numeric(table: Table, name: str) -> bool:
    try:
        return bool(np.isfinite(numbers(table, name)).any())
    except InputError:
        return False


def _errors(
    table: Table, ucds: dict[str, str], taken: set[str]
) -> tuple[dict[str, str | tuple[str, ...]], dict[str, str]]:
    """Column -> its error column or columns, by the usual names, else by the UCD; and
    column -> why it was not chosen among several."""
    errors: dict[str, str | tuple[str, ...]] = {}
    unclear: dict[str, str] = {}
    for name in table.colnames:
        if name in taken or not _is_numeric(table, name):
            continue
        try:
            found = error_column(table, name)
        except InputError as error:
            unclear[name] = str(error)
            continue
        if not found and ucds[name]:
            main = ucds[name].removesuffix(";meta.main")
            same = [c for c in table.colnames if ucds[c] == f"stat.error;{main}"]
            values = [c for c in table.colnames if ucds[c].removesuffix(";meta.main") == main]
            found = same[0] if len(same) == len(values) == 1 else None
        if found:
            errors[name] = found
    return errors, unclear


def _is_correlation(table: Table, name: str) -> bool:
    """Whether a column is that of two others, as Gaia's `ra_dec_corr`."""
    words, end = name.lower().removesuffix("_corr").split("_"), name.lower().endswith("_corr")
    names = {each.lower() for each in table.colnames}
    parts = (("_".join(words[:i]), "_".join(words[i:])) for i in range(1, len(words)))
    return end and any(names.issuperset(pair) for pair in parts)


def _as_tuple(value: str | tuple[str, ...]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def _no_feature(table: Table, name: str, ucd: str, has_error: bool, is_position: bool) -> str:
    """Why a column is no measurement to learn from, '' where it may be one."""
    column = table[name]
    if _kind(table, name) == NO_KIND:
        return "a time or a position"
    if column.ndim > 1:
        return f"an array; one element is a feature: column = '{shown(name)}[0]'"
    if column.dtype.kind == "b":
        return "true or false"
    try:
        values = numbers(table, name)
    except InputError:
        return "words" if column.dtype.kind in "US" else "no numbers"
    known = values[np.isfinite(values)]
    if len(np.unique(known)) < 2:
        return "the same in all rows" if len(known) else "empty"
    old = OLD.search(plain(name)) or old_frame(table, name)
    if old and (ucd.startswith("pos.eq") or OLD.sub("", plain(name)) in (*RA, *DEC)):
        return B1950
    if ucd.startswith("stat.correlation") or (not ucd and _is_correlation(table, name)):
        return "a correlation of errors"
    if "stat.error" in ucd.split(";"):
        return "an error, of a column that its UCD does not tell"
    if ucd.startswith(UCD_NOT_A_MEASUREMENT) and not ucd.startswith(UCD_OF_MOTION):
        return f"no property of a source ({ucd})"
    words = words_of(name)
    if is_position:
        return "another position"
    for reason, list_of_words in NOT_A_MEASUREMENT.items():
        if {*words, plain(name)} & set(list_of_words):
            return reason
    # All large numbers are whole, of single precision from 2^24 on: a luminosity in erg/s.
    largest = LARGEST_WHOLE if column.dtype.itemsize > 4 else 1 << 24
    told = column.dtype.kind != "f" or np.abs(known).max() < largest
    whole = told and (known == np.round(known)).all()
    if whole and len(np.unique(known)) == len(table) > FEW_CODES and not has_error:
        return "a whole number of its own in every row"
    if whole and len(np.unique(known)) <= FEW_CODES:
        return "few whole numbers: a code, a flag or a count"
    like_an_error = set(words) & set(LIKE_AN_ERROR) or words[:1] == ["e"]
    if like_an_error and not ucd.startswith(UCD_OF_SIGNIFICANCE):
        return "it looks like an error, but of which column?"
    return ""
