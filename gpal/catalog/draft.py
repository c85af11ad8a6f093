"""A schema for a table that nobody has described: TOML with comments, for a person to edit.

print(draft_schema("survey.csv"))        what `gpal schema init` prints or writes
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gpal.catalog.bounds import bounds_of
from gpal.catalog.columns import numbers, text, unit_of
from gpal.catalog.error_names import similar_names
from gpal.catalog.loader import expanded, is_file
from gpal.catalog.readers import read_sample
from gpal.catalog.registry import known_names
from gpal.catalog.release_files import recognise
from gpal.catalog.roles import B1950, Roles, guess_roles, is_magnitude
from gpal.catalog.schema import UNDECIDED, Schema
from gpal.catalog.sentinels import is_sentinel, suspects
from gpal.errors import InputError, shown
from gpal.names import LONGEST, check_names

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from astropy.table import Table

__all__ = ["draft_schema", "schema_for"]

LEAST = 10  # sources of a class that is worth telling apart: one for each fold of classify
DECADES = 2  # from the least to the largest value, from which on a positive feature is a logarithm
MANY_FEATURES = 15
LIMITS = "the values it marks by < and > are limits, taken as 95 % ones"


def draft_schema(path: str | Path, schema_name: str = "") -> str:
    """The text of a schema for a table file: FITS, VOTable, ECSV, CSV or Parquet.

    schema_name  of the schema's own file, for the commands that its first lines tell

    Identifier, position and class, values with their errors, sentinels and placeholder classes are
    guessed from names, units, UCDs and cells, and what was guessed is said beside it. What was not
    taken is listed with the reason. Raises InputError on a file that cannot be read, and where no
    column can be a feature. Of a long table it looks at rows evenly spread over it, and says so.
    """
    path = expanded(path)
    try:
        if not is_file(path):
            raise InputError("no such file; check the path")
        table, rows = read_sample(path)
        roles = guess_roles(table)
        if not roles.features:
            reasons = "; ".join(f"'{c}': {reason}" for c, reason in [*roles.others.items()][:5])
            raise InputError(f"no column can be a feature ({reasons}); write the schema by hand")
    except InputError as error:
        raise InputError(f"{path.name}: {error}") from None
    lines = [
        *_head(table, rows, str(path), schema_name or f"{path.name.split('.')[0]}.toml"),
        *_sources(roles),
        *_classes(table, roles),
        *_features(table, roles),
        *_colours(table, roles),
        *_rest(roles),
    ]
    return "\n".join(lines) + "\n"


def schema_for(source: str | Path) -> Schema | None:
    """The schema drafted for a file of no known release; None for a release."""
    path = expanded(source)
    if str(source).lower() in known_names() or not is_file(path):
        return None
    try:
        if recognise(path) is not None:
            return None
    except InputError as error:
        raise InputError(f"{path.name}: {error}") from None
    return Schema.from_dict(tomllib.loads(draft_schema(path)), "draft")


def _head(table: Table, rows: int, file: str, schema: str) -> list[str]:
    file, schema = shown(file, 200), shown(schema, 200)
    sample = f"# Ranges and counts are those of {len(table)} rows, evenly spread over the table."
    return [
        f"# Drafted from {file} ({rows} rows, {len(table.colnames)} columns). All of it is a"
        " guess: read it, edit it, then",
        f"#     gpal schema check {file} --schema {schema}",
        f"#     gpal classify {file} --schema {schema}",
        "# Every key is explained on the page 'Catalogs' of the documentation.",
        *([sample] if len(table) < rows else []),
        "",
    ]


def _sources(roles: Roles) -> list[str]:
    def line(key: str, column: str, without: str) -> str:
        return f"{key} = {_quoted(column)}" if column else f'# {key} = "..."   # {without}'

    without = "no column of degrees was recognised"
    if B1950 in roles.others.values():
        without += f" that is ICRS or J2000, but {B1950}"
    no_class = "no column of classes was recognised: gpal needs one"
    if roles.classes_perhaps:
        perhaps = ", ".join(f"'{shown(column)}'" for column in roles.classes_perhaps)
        no_class = f"several columns may be of classes: {perhaps}; gpal needs one"
    return [
        line("id", roles.id, "no column names every source; rows are counted instead"),
        line("ra", roles.ra, without),
        line("dec", roles.dec, without),
        line("class", roles.class_column, no_class),
        "",
    ]


def _classes(table: Table, roles: Roles) -> list[str]:
    """The words of the class column: to tell apart, undecided, or too few."""
    if not roles.class_column:
        return []
    printed = [word for word in text(table, roles.class_column).tolist() if word]
    counts = Counter(word.lower() for word in printed)
    spelled = {word.lower(): word for word in reversed(printed)}
    undecided = [word for word, _ in counts.most_common() if word in UNDECIDED]
    classes = [word for word, count in counts.most_common() if word not in undecided]
    chosen = [word for word in classes if counts[word] >= LEAST]
    rare = [word for word in classes if counts[word] < LEAST]
    lines = ["[classes]"]
    if chosen:
        lines += ["# to tell apart: " + _counted({word: counts[word] for word in chosen})]
        lines += [f"default = {_quoted([spelled[word] for word in chosen])}"]
    if rare:
        lines += [
            f"# fewer than {LEAST} sources each, neither learned nor classified: "
            + _counted({word: counts[word] for word in rare})
        ]
    if undecided:
        lines += ["# no class, to be classified: " + _counted({w: counts[w] for w in undecided})]
        lines += ["# Such words are known; undecided = [...] in their place replaces all of them."]
    empty = len(table) - len(printed)
    return [*lines, *([f"# {empty} cells are empty: to be classified"] if empty else []), ""]


def _features(table: Table, roles: Roles) -> Iterator[str]:
    if len(roles.features) > MANY_FEATURES:
        yield f"# {len(roles.features)} columns may be features: keep those that tell classes"
        yield "# apart."
        yield ""
    taken: list[str] = []
    for column, error in roles.features.items():
        name = _feature_name(column, taken)
        taken.append(name)
        yield from _feature(table, name, column, error, roles.unclear.get(column, ""))
        if column in roles.limit_marks:
            yield f"limit_flag = {_quoted(roles.limit_marks[column])}   # {LIMITS}"
        yield ""


def _feature(
    table: Table, name: str, column: str, error: str | Sequence[str] | None, unclear: str
) -> Iterator[str]:
    """One feature, with what its cells ask a person to decide."""
    errors = [error] if isinstance(error, str) else list(error or ())
    cells = [numbers(table, column), *(numbers(table, each, pair=True) for each in errors)]
    of_values = suspects(cells[0])
    of_errors = [suspect for values in cells[1:] for suspect in suspects(values)]
    no_values = [one for one in of_values if one.certain]
    # What is declared is none of the values either, and 99 may be one of them.
    no_errors = [one for one in of_errors if one.certain and not _holds(cells[0], one.number)]
    certain = sorted({one.number for one in (*no_values, *no_errors)})
    x, *σ = (np.where(is_sentinel(values, certain), np.nan, values) for values in cells)
    known = x[np.isfinite(x)]

    yield f"[features.{_key(name)}]{_about(known, len(x), unit_of(table, column))}"
    yield f"column = {_quoted(column)}"
    yield from _error_lines(table, column, errors, unclear)
    if certain:
        what = "values" if no_values else "errors"
        count = sum(one.count for one in no_values or no_errors)
        yield f"sentinels = [{_listed(certain)}]   # no {what}: {count} cells, far from all others"
    for suspect in (*of_values, *of_errors):
        if _holds(np.array(certain), suspect.number):
            continue
        listed = _listed([*certain, suspect.number])
        number = f"{suspect.number:.10g}"
        if suspect.certain:
            yield f"# {suspect.count} errors are {number}, far from all others, and values are that"
            yield f"# too; if {number} is neither: sentinels = [{listed}]"
        else:
            yield f"# {suspect.count} cells are {number}, at the edge of the others; if"
            yield f"# these are no values: sentinels = [{listed}]"
    if len(σ) == 1 and σ[0].ndim == 1:
        yield from _about_errors(column, x, σ[0])
    if len(known) and known.min() > 0 and known.max() / known.min() > 10**DECADES:
        decades = np.log10(known.max() / known.min())
        yield f'transform = "log10"   # positive, over {decades:.1f} decades'


def _holds(values: np.ndarray, number: float) -> bool:
    return bool(is_sentinel(values, [number]).any())


def _error_lines(table: Table, column: str, errors: Sequence[str], unclear: str) -> Iterator[str]:
    if unclear:
        yield f"# {shown(unclear, 300)}"
    elif errors:
        yield f"error = {_quoted(errors[0] if len(errors) == 1 else errors)}"
    else:
        yield '# NO ERROR COLUMN FOUND: name it, error = "...", or say that there is none,'
        yield '# error = "none": the values are then taken as exact'
        bounds = bounds_of(table, column)
        if bounds:
            yield f"# its bounds are {' and '.join(_quoted(shown(one)) for one in bounds)}: make"
            yield '# columns of value - lower and upper - value, error = ["...", "..."]'
        for other in similar_names(column, (c for c in table.colnames if c not in bounds)):
            kind = "inverse variance" if "iv" in other.lower() else "variance"
            said = f', error_kind = "{kind}"' if "var" in other.lower() else ""
            yield f"# perhaps error = {_quoted(shown(other))}{said}"


def _about_errors(column: str, x: np.ndarray, σ: np.ndarray) -> Iterator[str]:
    """What to do with errors that are none."""
    with np.errstate(invalid="ignore"):
        negative, zero = int((σ < 0).sum()), int((σ == 0).sum())
    if negative:
        yield f'negative_error = "missing"   # negative errors: {negative}, not measured'
    if zero and (σ > 0).any():
        yield f'zero_error = "missing"   # errors of 0: {zero}; remove this if they are exact'
    missing = int((np.isfinite(x) & np.isnan(σ)).sum())
    if missing:
        yield f"# values without an error: {missing}; they are not measured, or take the error that"
        yield '# is typical of the sources nearest in value: missing_error = "nearest". If such a'
        yield "# value is the limit of what was not detected, as in WISE, say so:"
        yield f"# upper_limit = {_quoted(column)}, of a magnitude lower_limit = {_quoted(column)}"


def _about(known: np.ndarray, n: int, unit: str) -> str:
    """Range, unit and how many are missing, as a comment."""
    if not len(known):
        return "   # no values"
    missing = f", {n - len(known)} missing" if len(known) < n else ""
    return f"   # {known.min():.4g} to {known.max():.4g} {shown(unit)}".rstrip() + missing


def _rest(roles: Roles) -> list[str]:
    if not roles.others:
        return []
    lines = ["# Columns that are not used; name one as a feature to use it:"]
    return lines + [f"#   {shown(column)}: {reason}" for column, reason in roles.others.items()]


def _feature_name(column: str, taken: Sequence[str]) -> str:
    """The column's name where a feature can be called so."""
    try:
        check_names("feature", [*taken, column])
        return column
    except InputError:
        number = len(taken) + 1
        return f"{re.sub(r'[^A-Za-z0-9_]', '_', column)[: LONGEST - 10]}_{number}"


def _colours(table: Table, roles: Roles) -> Iterator[str]:
    """Differences of neighbouring magnitudes, for whoever wants them."""
    magnitudes = [column for column in roles.features if is_magnitude(table, column)]
    if len(magnitudes) > 1:
        yield "# Colours are differences of columns, with their errors; to have one, uncomment it:"
    for one, other in pairwise(magnitudes):
        found = [s for column in (one, other) for s in suspects(numbers(table, column))]
        certain = sorted({suspect.number for suspect in found if suspect.certain})
        yield f"# [features.{_quoted(shown(f'{one} - {other}', LONGEST))}]"
        yield f"# difference = {_quoted([shown(one), shown(other)])}"
        if certain:
            yield f"# sentinels = [{_listed(certain)}]"
        errors = [e for c in (one, other) if isinstance(e := roles.features[c], str)]
        if any((numbers(table, each) < 0).any() for each in errors):
            yield '# negative_error = "missing"'
    if len(magnitudes) > 1:
        yield ""


def _listed(values: Sequence[float]) -> str:
    return ", ".join(f"{value:.10g}" for value in values)


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{shown(word)} {count}" for word, count in counts.items())


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _quoted(name)


def _quoted(value: str | Sequence[str]) -> str:
    """A string or a list of strings of TOML; the escapes are those of JSON."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
