"""The schema of a catalog release: which column is what, which holds its error, and what to do.

One TOML file (or a dictionary of the same form) says where a catalog's columns are. README.md in
the catalogs folder documents every key. `extends = "other"` starts from another schema and
overrides it key by key.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from gpal.errors import InputError
from gpal.measurements import TRANSFORMS

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["Band", "Classes", "Ellipse", "Feature", "Schema", "close_matches", "read_toml"]

MISSING_ERROR = ("not measured", "nearest", "exact", "forbid")


def close_matches(word: str, known: Iterable[str]) -> str:
    """'did you mean ...' or the list of what there is."""
    known = [str(name) for name in known]
    lower = {name.lower(): name for name in known}
    close = [lower[match] for match in difflib.get_close_matches(word.lower(), lower, 3, 0.6)]
    if close:
        return f"did you mean {' or '.join(repr(name) for name in close)}?"
    return f"there are: {', '.join(known)}" if known else "there are none"


@dataclass(frozen=True)
class Feature:
    """One feature: a column (or a hardness ratio of two bands), its error, and its treatment.

    column         column expression, `nuFnu_Band[3]` for one element of an array column
    hardness       instead of a column: two bands A, B, giving (E_B − E_A)/(E_B + E_A)
    error          error column, or [lower, upper]; None looks for the usual names; "none": exact
    unit           unit the value is converted to before the transform
    transform      one of gpal.measurements.TRANSFORMS
    floor          smaller values are raised to it
    above          values at or below it are not measured
    requires       not measured where this column is not finite
    missing        a value that is not finite is "not measured", or is forbidden: "forbid"
    missing_error  a value without an error is "not measured", takes the error typical of the
                   sources "nearest" in value, is "exact", or is forbidden: "forbid"
    zero_error     an error of 0 is "exact" or "missing"
    label          for the axis of a figure
    """

    name: str
    column: str = ""
    hardness: tuple[str, ...] = ()
    error: str | tuple[str, ...] | None = None
    unit: str = ""
    transform: str = "none"
    floor: float | None = None
    above: float | None = None
    requires: str = ""
    missing: str = "not measured"
    missing_error: str = "not measured"
    zero_error: str = "exact"
    label: str = ""

    def __post_init__(self) -> None:
        for key, allowed in (
            ("transform", tuple(TRANSFORMS)),
            ("missing", ("not measured", "forbid")),
            ("missing_error", MISSING_ERROR),
            ("zero_error", ("exact", "missing")),
        ):
            if getattr(self, key) not in allowed:
                raise InputError(
                    f"feature '{self.name}': {key} = {getattr(self, key)!r} is not one of"
                    f" {', '.join(map(repr, allowed))}"
                )
        if bool(self.column) == bool(self.hardness):
            raise InputError(
                f"feature '{self.name}' needs either a 'column' or two bands in 'hardness'"
            )
        if self.hardness and len(self.hardness) != 2:
            raise InputError(f"feature '{self.name}': hardness needs two bands, low then high")
        if self.transform in ("log10", "ln") and self.floor is not None and self.floor <= 0:
            raise InputError(f"feature '{self.name}': the floor of a logarithm must be above 0")


@dataclass(frozen=True)
class Band:
    """An energy band: its energy flux, its photon flux and the photon flux's (signed) errors."""

    name: str
    nuFnu: str = ""
    flux: str = ""
    error: str | tuple[str, ...] = ""
    energy: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        for key in ("nuFnu", "flux", "error"):
            if not getattr(self, key):
                raise InputError(f"band '{self.name}' needs '{key}'")


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
    absent                classes that this release does not have, and why
    names                 the classes spelled out
    uppercase_identified  a class in capitals is an identification, not an association
    """

    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    default: tuple[str, ...] = ()
    candidates: tuple[str, ...] = ("",)
    absent: Mapping[str, str] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    uppercase_identified: bool = False


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
    keep: tuple[str, ...] = ()
    classes: Classes = Classes()
    bands: Mapping[str, Band] = field(default_factory=dict)
    feature_sets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    cuts: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_dict(cls, content: Mapping[str, Any], name: str = "mapping") -> Schema:
        """The schema that `content` describes; raises InputError naming the key at fault."""
        content = {key: value for key, value in content.items() if key != "abstract"}
        if "class" in content:
            content["class_column"] = content.pop("class")
        _check_keys(content, _keys(cls) - {"name"}, "")
        simple = {
            key: content.get(key, "")
            for key in (
                *("title", "release", "file", "url", "sha256", "hdu"),
                *("id", "ra", "dec", "class_column", "association"),
            )
        }
        for key, value in simple.items():
            if not isinstance(value, str):
                raise InputError(f"'{key.removesuffix('_column')}' must be text, got {value!r}")
        features = {
            key: _part(
                Feature, key, {"column": value} if isinstance(value, str) else value, "feature"
            )
            for key, value in _table(content, "features").items()
        }
        if not features:
            raise InputError("no features; give at least one, e.g. features = {flux = 'F'}")
        bands = {
            key: _part(Band, key, value, "band") for key, value in _table(content, "bands").items()
        }
        ellipse = content.get("ellipse")
        classes = dict(_table(content, "classes"))
        _check_keys(classes, _keys(Classes), "classes.")
        for key in ("default", "candidates"):
            if key in classes:
                classes[key] = _strings(classes[key], f"classes.{key}", str.lower)
        classes["groups"] = {
            group.lower(): _strings(members, f"classes.groups.{group}", str.lower)
            for group, members in classes.get("groups", {}).items()
        }
        feature_sets = {
            key: _strings(value, f"feature_sets.{key}")
            for key, value in _table(content, "feature_sets").items()
        }
        feature_sets.setdefault("default", tuple(features))
        for key, names in feature_sets.items():
            for feature in names:
                if feature not in features:
                    raise InputError(
                        f"feature set '{key}' names '{feature}';"
                        f" {close_matches(feature, features)}"
                    )
        for feature in features.values():
            for band in feature.hardness:
                if band not in bands:
                    raise InputError(
                        f"feature '{feature.name}' names the band '{band}';"
                        f" {close_matches(band, bands)}"
                    )
        return cls(
            name=name,
            features=features,
            rows=int(content.get("rows", 0)),
            reference=dict(_table(content, "reference")),
            ellipse=None if ellipse is None else _part(Ellipse, None, ellipse, "ellipse"),
            keep=_strings(content.get("keep", ()), "keep"),
            classes=Classes(**classes),
            bands=bands,
            feature_sets=feature_sets,
            cuts=dict(_table(content, "cuts")),
            **simple,
        )

    def columns(self) -> tuple[str, ...]:
        """Every column the schema refers to, as written, in order and without repetition."""
        named = [self.id, self.ra, self.dec, self.class_column, self.association, *self.keep]
        if self.ellipse:
            named += [self.ellipse.semimajor, self.ellipse.semiminor, self.ellipse.angle]
        for feature in self.features.values():
            named += [feature.column, feature.requires, *_as_tuple(feature.error)]
        for band in self.bands.values():
            named += [band.nuFnu, band.flux, *_as_tuple(band.error)]
        return tuple(dict.fromkeys(column for column in named if column and column != "none"))


def read_toml(path: Path) -> dict[str, Any]:
    """The content of one TOML file."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"no schema file '{path}'; check the path") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"schema '{path}' is not valid TOML: {error}") from None


def merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """`base` with `over` on top; tables merge key by key, anything else is replaced."""
    merged = dict(base)
    for key, value in over.items():
        if isinstance(value, Mapping) and isinstance(merged.get(key), Mapping):
            merged[key] = merge(merged[key], value)
        else:
            merged[key] = value
    return merged


def _keys(cls: type) -> set[str]:
    return {f.name for f in fields(cls)}


def _as_tuple(value: str | tuple[str, ...] | None) -> tuple[str, ...]:
    return () if value is None else (value,) if isinstance(value, str) else tuple(value)


def _check_keys(content: Mapping[str, Any], known: set[str], where: str) -> None:
    for key in content:
        if key not in known:
            names = sorted("class" if name == "class_column" else name for name in known)
            hint = close_matches(key, names)
            raise InputError(f"unknown key '{where}{key}' in the schema; {hint}")


def _table(content: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = content.get(key, {})
    if not isinstance(value, Mapping):
        raise InputError(f"'{key}' must be a table of names and values, got {value!r}")
    return value


def _strings(
    value: Any, where: str, convert: Callable[[str], str] = lambda text: text
) -> tuple[str, ...]:
    if isinstance(value, str) or not all(isinstance(item, str) for item in value):
        raise InputError(f"'{where}' must be a list of names, got {value!r}")
    return tuple(convert(item) for item in value)


def _part(cls: type, name: str | None, content: Any, what: str) -> Any:
    """One nested dataclass from its table, lists made tuples."""
    title = what if name is None else f"{what} '{name}'"
    if not isinstance(content, Mapping):
        raise InputError(f"{title} must be a column name or a table, got {content!r}")
    where = f"{what}." if name is None else f"{what}s.{name}."
    _check_keys(content, _keys(cls) - {"name"}, where)
    values = {k: tuple(v) if isinstance(v, list) else v for k, v in content.items()}
    if name is not None:
        values["name"] = name
    try:
        return cls(**values)
    except TypeError as error:
        raise InputError(f"{title} is incomplete: {error}") from None
