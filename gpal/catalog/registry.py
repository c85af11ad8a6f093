"""The catalogs that gpal knows by name: a TOML file each, gpal's own and those of other packages.

    add_catalogs("my_folder")                      in a script or notebook

    [project.entry-points."gpal.catalogs"]         in another package: a package or module, whose
    surveys = "my_package.catalogs"                folder it is, or "module:NAME", NAME being a path

The file `gaia-dr3.toml` makes the catalog "gaia-dr3" known; a table of that name beside it
(`gaia-dr3.fits.gz`, `gaia-dr3.csv`, ...) is its extract, see `gpal.catalog.release_files`.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from gpal.catalog.schema import Schema, close_matches, merge, read_toml
from gpal.errors import InputError

__all__ = ["add_catalogs", "catalogs_folder", "find_schema", "known_names", "schema_path"]

GROUP = "gpal.catalogs"


@dataclass(frozen=True)
class Known:
    """Where a catalog's schema is; `release` is its date, for the order."""

    path: Path
    release: str


_KNOWN: dict[str, Known] = {}


def add_catalogs(folder: str | os.PathLike) -> tuple[str, ...]:
    """Make the catalogs of a folder known, for this process; their names.

    Every `name.toml` in it is one, unless it says `abstract = true` (others then extend it).
    Raises InputError on a folder without such files, on a schema that cannot be used, and on a name
    that a catalog of another folder has.
    """
    added = _catalogs_of(Path(folder).expanduser().absolute())
    _known().update(added)
    return tuple(added)


def known_names() -> tuple[str, ...]:
    """Names of the known releases, the oldest first."""
    return tuple(sorted(_known(), key=lambda name: (_known()[name].release, name)))


def schema_path(name: str) -> Path:
    """The TOML file of a known release (any case); InputError where there is none."""
    if name.lower() not in _known():
        raise InputError(
            f"no catalog or schema named '{name}'; {close_matches(name, known_names())}"
        )
    return _known()[name.lower()].path


def find_schema(name_or_path: str | Path, over: Mapping[str, Any] | None = None) -> Schema:
    """The schema of a known release (any case), or that in a TOML file; `over` overrides keys."""
    path = Path(name_or_path)
    if path.suffix.lower() != ".toml":
        path = schema_path(str(name_or_path))
    try:
        return Schema.from_dict(merge(_content(path), over or {}), path.stem)
    except InputError as error:
        raise InputError(f"{path.name}: {error}") from None


def _content(path: Path, above: tuple[Path, ...] = ()) -> dict[str, Any]:
    """A TOML schema with what it extends underneath, looked for beside it, then among the known.

    `above` are the schemas that extend this one, none of which it can extend in turn.
    """
    content = read_toml(path)
    base = content.pop("extends", None)
    if base is None:
        return content
    stem, above = str(base).lower(), (*above, path.resolve())
    candidates = [path.parent / f"{base}.toml"]
    candidates += [folder / f"{stem}.toml" for folder in (path.parent, catalogs_folder())]
    if stem in _known():
        candidates.append(_known()[stem].path)
    for candidate in candidates:
        if "\0" not in stem and candidate.is_file() and candidate.resolve() not in above:
            inherited = _content(candidate, above)
            inherited.pop("abstract", None)
            return merge(inherited, content)
    raise InputError(f"extends = '{base}': no such schema; {close_matches(base, known_names())}")


@cache
def catalogs_folder() -> Path:
    """gpal's own schemas and extracts: inside the installed package, or beside it in a checkout."""
    package = Path(__file__).resolve().parents[1]
    for folder in (package / "_catalogs", package.parent / "catalogs"):
        if folder.is_dir():
            return folder
    raise InputError("gpal's catalogs folder is missing; reinstall gpal")


def _known() -> dict[str, Known]:
    """Name -> where it is; gpal's own and those of entry points are found on first use."""
    if _KNOWN:
        return _KNOWN
    for path, content in _schemas(catalogs_folder()).items():  # others may extend these
        _KNOWN[path.stem] = Known(path, content.get("release", ""))
    for point in entry_points(group=GROUP):
        try:
            _KNOWN.update(_catalogs_of(_folder(point)))
        except Exception as error:  # another package's fault is no reason to stop
            warnings.warn(
                f"the catalogs '{point.name}' of {point.value} cannot be used: {error}",
                stacklevel=2,
            )
    return _KNOWN


def _schemas(folder: Path) -> dict[Path, dict[str, Any]]:
    """TOML file -> its content, for those that are catalogs."""
    schemas = {path: read_toml(path) for path in sorted(folder.glob("*.toml"))}
    return {path: content for path, content in schemas.items() if not content.get("abstract")}


def _catalogs_of(folder: Path) -> dict[str, Known]:
    """The catalogs of another folder, each found usable and its name free."""
    found: dict[str, Known] = {}
    for path in _schemas(folder):
        name = path.stem.lower()
        known = found.get(name) or _known().get(name)
        if known is not None and known.path != path:
            raise InputError(
                f"the catalog '{name}' of {folder} is known already, from {known.path.parent};"
                " give the file another name"
            )
        found[name] = Known(path, find_schema(path).release)
    if not found:
        raise InputError(f"no catalog in '{folder}'; put a TOML file there for each")
    return found


def _folder(point: EntryPoint) -> Path:
    """The folder that an entry point names; a package is found without being imported."""
    if point.attr:
        return Path(point.load())
    spec = find_spec(point.module)
    if spec is None:
        raise InputError(
            f"no module '{point.module}'; does the package, as it is installed, have that folder"
            " with its TOML files and tables? (with setuptools: `packages` and `package-data`)"
        )
    if spec.submodule_search_locations:
        return Path(next(iter(spec.submodule_search_locations)))
    if not spec.has_location or spec.origin is None:
        raise InputError(f"the module '{point.module}' is in no folder")
    return Path(spec.origin).parent
