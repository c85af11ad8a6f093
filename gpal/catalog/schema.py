"""The schema of a catalog release: which column is what, which holds its error, and what to do.

One TOML file (or a dictionary of the same form) says where a catalog's columns are. README.md in
the catalogs folder documents every key. `extends = "other"` starts from another schema and
overrides it key by key.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import math
import sys
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from gpal.catalog.carried import Carried
from gpal.catalog.class_intervals import check_edges
from gpal.catalog.class_tree import check_fractions, check_tree
from gpal.catalog.feature import Feature
from gpal.errors import InputError, shown
from gpal.links import Links
from gpal.names import check_names, check_output_columns

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = [
    "Band",
    "Classes",
    "Ellipse",
    "ErrorCalibration",
    "Feature",
    "History",
    "Schema",
    "close_matches",
    "read_toml",
]

LARGEST = 10**7  # bytes of a TOML file
SHOWN = 20  # names listed in a message
# Words that stand for "no class", in lower case.
UNDECIDED = (
    *("", "-", "--", "---", ".", "..", "...", "?", "??", "???", "_", "*", "n/a", "n.a.", "na"),
    *("nan", "null", "nil", "none", "<na>", "#n/a", "masked", "missing", "empty", "blank"),
    *("unknown", "unk", "unkn", "unclassified", "unclass", "unclassed", "unidentified", "unid"),
    *("undefined", "undetermined", "undecided", "unassigned", "unassociated", "unlabelled"),
    *("unlabeled", "unspecified", "uncertain", "indeterminate", "ambiguous", "not classified"),
    *("not_classified", "no class", "no_class", "noclass", "nothing", "to be determined"),
    *("tbd", "tbc", "-99", "-999", "-9999", "-99.0", "-999.0", "-9999.0"),
)


def close_matches(word: str, known: Iterable[str]) -> str:
    """'did you mean ...' or the list of what there is."""
    known = [str(name) for name in known]
    lower = {name.lower(): name for name in known}
    close = [lower[match] for match in difflib.get_close_matches(word.lower(), lower, 3, 0.6)]
    if close:
        return f"did you mean {' or '.join(repr(name) for name in close)}?"
    shown = ", ".join(known[:SHOWN]) + (", ..." if len(known) > SHOWN else "")
    return f"there are: {shown}" if known else "there are none"


@dataclass(frozen=True)
class Band:
    """An energy band: its energy flux, its photon flux and the photon flux's (signed) errors."""

    name: str
    nuFnu: str
    flux: str
    error: str | tuple[str, ...]
    energy: tuple[float, ...] = ()


@dataclass(frozen=True)
class History:
    """Columns with an array of fluxes per source, one for each of successive intervals of time, and
    of their errors; `edges`: the extension whose first column bounds the intervals, in seconds."""

    flux: str
    error: str
    edges: str


@dataclass(frozen=True)
class Ellipse:
    """Columns of the 95 % position-error ellipse: half axes and position angle."""

    semimajor: str
    semiminor: str
    angle: str


@dataclass(frozen=True)
class Classes:
    """How the class column is read.

    groups                a name that stands for several classes, e.g. psr = psr + msp
    default               groups to tell apart when none is named
    candidates            classes that users want classified ('' is no class)
    undecided             words that stand for no class: candidates as well; None: UNDECIDED
    absent                classes that this release does not have, and why
    names                 the classes spelled out
    tree                  name -> the classes, or other names, that lie directly below it
    sets                  class -> classes of which a source of it is one, not known which
    exhaustive            names of the tree that, with `other` for all that is below none of them,
                          leave no class out
    fractions             class -> name of the tree -> which part of its sources, once they were
                          decided, turned out to be below that name
    uppercase_identified  a class in capitals is an identification, not an association
    edges                 the class column holds numbers, and intervals of them are the classes
    """

    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    default: tuple[str, ...] = ()
    candidates: tuple[str, ...] = ("",)
    undecided: tuple[str, ...] | None = None
    absent: Mapping[str, str] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    tree: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    sets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    exhaustive: tuple[str, ...] = ()
    fractions: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    uppercase_identified: bool = False
    edges: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if self.edges:
            check_edges(self.edges)
        lower = {
            key: tuple(label.lower() for label in getattr(self, key))
            for key in ("default", "candidates", "exhaustive")
        }
        for key, labels in lower.items():
            object.__setattr__(self, key, labels)
        for key in ("groups", "tree", "sets"):
            names = {
                name.lower(): tuple(label.lower() for label in labels)
                for name, labels in getattr(self, key).items()
            }
            object.__setattr__(self, key, names)
        for key in ("absent", "names"):
            named = {label.lower(): words for label, words in getattr(self, key).items()}
            object.__setattr__(self, key, named)
        check_names("class", self.tree)
        check_tree(self.tree, self.sets)
        for name in self.exhaustive:
            if name not in self.tree:
                raise InputError(
                    f"classes.exhaustive names '{name}', which is no name of classes.tree;"
                    f" {close_matches(name, self.tree)}"
                )
        of = {label.lower(): dict(parts) for label, parts in self.fractions.items()}
        object.__setattr__(self, "fractions", of)
        for label, parts in of.items():
            check_fractions(self.tree, label, parts)
        undecided = UNDECIDED if self.undecided is None else self.undecided
        object.__setattr__(self, "undecided", tuple(word.lower() for word in undecided))

    @property
    def open(self) -> frozenset[str]:
        """The classes, and the words for none, of sources that users want classified."""
        return frozenset((*self.candidates, *(self.undecided or ())))


@dataclass(frozen=True)
class ErrorCalibration:
    """How far the catalog's errors can be trusted, measured on another release; used when asked.

    scale        feature -> true error / catalog error
    correlation  "index,beta" -> correlation of the errors of two features
    interval     feature -> 95 % interval of its scale
    by_size      feature -> scale of sources with small, middling and large errors, "–" where it
                 cannot be told
    measured     on what: the two releases, their checksums, the number of sources
    """

    scale: Mapping[str, float] = field(default_factory=dict)
    correlation: Mapping[str, float] = field(default_factory=dict)
    interval: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    by_size: Mapping[str, tuple[float | str, ...]] = field(default_factory=dict)
    measured: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, scale in self.scale.items():
            if not 0 < scale < math.inf:
                raise InputError(f"error scales must be positive numbers, got {scale} for '{name}'")
        for pair, value in self.correlation.items():
            if len(pair.split(",")) != 2 or not -1 <= value <= 1:
                raise InputError(
                    f"error correlation '{pair}' = {value}: name two features, 'first,second', and"
                    " give a number from -1 to 1"
                )


@dataclass(frozen=True)
class Schema:
    """A whole catalog release; see catalogs/README.md for the keys."""

    name: str
    features: Mapping[str, Feature]
    title: str = ""
    release: str = ""
    file: str = ""
    url: str = ""
    sha256: str = ""
    rows: int = 0
    hdu: str = ""
    reference: Mapping[str, str] = field(default_factory=dict)
    id: str = ""
    ra: str = ""
    dec: str = ""
    ellipse: Ellipse | None = None
    class_column: str = ""
    association: str = ""
    significance: str = ""
    keep: tuple[str, ...] = ()
    carry: Mapping[str, Carried] = field(default_factory=dict)
    links: Links = field(default_factory=Links)
    sentinels: tuple[float, ...] | None = None
    classes: Classes = Classes()
    bands: Mapping[str, Band] = field(default_factory=dict)
    history: History | None = None
    feature_sets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    cuts: Mapping[str, str] = field(default_factory=dict)
    error_calibration: ErrorCalibration | None = None

    def __post_init__(self) -> None:
        if not self.features:
            raise InputError("no features; give at least one, e.g. {'features': {'flux': 'F'}}")
        check_names("feature", self.features)
        check_output_columns(self.carry)
        sets = {"default": tuple(self.features), **self.feature_sets}
        object.__setattr__(self, "feature_sets", sets)
        for key, names in sets.items():
            for name in names:
                if name not in self.features:
                    hint = close_matches(name, self.features)
                    raise InputError(f"feature set '{key}' names '{name}'; {hint}")
        for feature in self.features.values():
            for band in feature.hardness:
                if band not in self.bands:
                    hint = close_matches(band, self.bands)
                    raise InputError(f"feature '{feature.name}' names the band '{band}'; {hint}")

    @classmethod
    def from_dict(cls, content: Mapping[str, Any], name: str = "mapping") -> Schema:
        """The schema that `content` describes; raises InputError naming the key at fault."""
        content = {key: value for key, value in content.items() if key != "abstract"}
        if "class" in content:
            content["class_column"] = content.pop("class")
        for key, part in (("features", Feature), ("bands", Band), ("carry", Carried)):
            entries = content.get(key, {})
            if not isinstance(entries, Mapping):
                raise InputError(f"'{key}' must be a table of names, got {entries!r}")
            content[key] = {
                entry: _build(
                    part,
                    {"column": value} if isinstance(value, str) else value,
                    f"{key}.{entry}",
                    name=entry,
                )
                for entry, value in entries.items()
            }
        parts = {
            **{"classes": Classes, "ellipse": Ellipse, "history": History, "links": Links},
            "error_calibration": ErrorCalibration,
        }
        for key in parts.keys() & content.keys():
            content[key] = _build(parts[key], content[key], key)
        return _build(cls, content, "", name=name)

    @property
    def checksum(self) -> str:
        """SHA-256 of all that the schema says, wherever it came from."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()

    def columns(self) -> tuple[str, ...]:
        """Every column the schema refers to, as written, in order and without repetition."""
        named = [self.id, self.ra, self.dec, self.class_column, self.association]
        named += [self.significance, *self.keep]
        if self.ellipse:
            named += [self.ellipse.semimajor, self.ellipse.semiminor, self.ellipse.angle]
        named += [item.column for item in self.carry.values()]
        for feature in self.features.values():
            named += [*feature.columns, feature.requires, *_as_tuple(feature.error)]
            named += feature.limit_columns
        for band in self.bands.values():
            named += [band.nuFnu, band.flux, *_as_tuple(band.error)]
        return tuple(dict.fromkeys(column for column in named if column and column != "none"))


def read_toml(path: Path) -> dict[str, Any]:
    """The content of one TOML file."""
    if path.exists() and not path.is_file():  # a pipe would be waited for, /dev/zero has no end
        raise InputError(f"cannot read the schema '{path}' (it is no file); check the path")
    if path.is_file() and path.stat().st_size > LARGEST:
        raise InputError(f"the schema '{path}' has more than {LARGEST} bytes; check the path")
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise InputError(f"no schema file '{path}'; check the path") from None
    except OSError as error:
        raise InputError(f"cannot read the schema '{path}' ({error.strerror or error})") from None
    except (ValueError, RecursionError) as error:  # also of numbers too long, tables too deep
        raise InputError(f"schema '{path}' is not valid TOML: {error}") from None


def merge(base: Mapping[str, Any], over: Mapping[str, Any], where: str = "") -> dict[str, Any]:
    """`base` with `over` on top; tables merge key by key, anything else is replaced.

    Warns where the name of a column alone replaces a feature that says more than that.
    """
    merged = dict(base)
    for key, value in over.items():
        before = merged.get(key)
        if isinstance(value, Mapping) and isinstance(before, Mapping):
            merged[key] = merge(before, value, key if not where else "")
            continue
        lost = sorted({*before} - {"column"}) if isinstance(before, Mapping) else ()
        if where in ("features", "carry") and isinstance(value, str) and lost:
            warnings.warn(
                f"{where}.{shown(key)} = '{shown(value)}' leaves out what the schema says of it"
                f" ({shown(', '.join(lost))}): give a table, {{column = '{shown(value)}', ...}},"
                " with what is to stay or to change",
                stacklevel=2,
            )
        merged[key] = value
    return merged


def _as_tuple(value: str | tuple[str, ...] | None) -> tuple[str, ...]:
    return () if value is None else (value,) if isinstance(value, str) else tuple(value)


def _build(cls: type, content: Any, where: str, **given: Any) -> Any:
    """A dataclass from a table whose keys and types must be its own; lists become tuples."""
    if not isinstance(content, Mapping):
        raise InputError(f"'{where}' must be a table of keys, got {content!r}")
    hints = {key: hint for key, hint in get_type_hints(cls).items() if key not in given}
    values = {}
    for key, value in content.items():
        shown = f"{where}.{key}".strip(".").replace("class_column", "class")
        if key not in hints:
            known = sorted(hint.replace("class_column", "class") for hint in hints)
            raise InputError(f"unknown key '{shown}' in the schema; {close_matches(key, known)}")
        values[key] = _tuples(value)
        if not _is_of(values[key], hints[key]):
            wanted = _in_words(hints[key])
            raise InputError(f"'{shown}' in the schema must be {wanted}, got {value!r}")
    for item in fields(cls):
        required = item.default is MISSING and item.default_factory is MISSING
        if required and item.name not in values and item.name not in given:
            raise InputError(f"'{where}' in the schema needs '{item.name}'".replace("'' in ", ""))
    return cls(**values, **given)


def _tuples(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _tuples(item) for key, item in value.items()}
    return tuple(value) if isinstance(value, list) else value


WORDS = {str: "text", float: "a number", int: "a whole number", bool: "true or false"}


def _in_words(hint: Any) -> str:
    """A type as a user of a schema says it."""
    base, parts = get_origin(hint) or hint, get_args(hint)
    if base in (Union, UnionType):
        return " or ".join(_in_words(part) for part in parts if part is not type(None))
    if base is tuple:
        return f"a list, each {_in_words(parts[0])}"
    if isinstance(base, type) and issubclass(base, Mapping):
        return f"a table, each {_in_words(parts[1])}"
    return WORDS.get(base, "a table of keys")


def _is_of(value: Any, hint: Any) -> bool:
    """Whether a value is of the type that a field is annotated with."""
    if get_origin(hint) in (Union, UnionType):
        return any(_is_of(value, option) for option in get_args(hint))
    base, parts = get_origin(hint) or hint, get_args(hint)
    if base is float:  # a finite one: an int may be larger than any
        known = isinstance(value, int | float) and not isinstance(value, bool)
        return known and abs(value) <= sys.float_info.max
    if base is int and isinstance(value, bool):
        return False
    if not isinstance(value, base):
        return False
    if base is tuple:
        return all(_is_of(item, parts[0]) for item in value)
    if isinstance(value, Mapping):
        return all(_is_of(item, parts[1]) for item in value.values())
    return True
