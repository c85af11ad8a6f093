"""The catalogs gpal knows: their schemas, and where a release's file is to be had."""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from gpal.catalog.readers import fits_table_header, table_format
from gpal.catalog.schema import Schema, close_matches, merge, read_toml
from gpal.errors import InputError

__all__ = [
    "CatalogInfo",
    "embedded_extract",
    "find_file",
    "find_schema",
    "known_catalogs",
    "recognise",
    "sha256",
]


@dataclass(frozen=True)
class CatalogInfo:
    """One line of `gpal catalogs`."""

    name: str
    title: str
    n_sources: int
    embedded: bool
    cached: bool
    reference: str


@cache
def catalogs_folder() -> Path:
    """The schemas and extracts: inside the installed package, or beside it in a checkout."""
    package = Path(__file__).resolve().parents[1]
    for folder in (package / "_catalogs", package.parent / "catalogs"):
        if folder.is_dir():
            return folder
    raise InputError("gpal's catalogs folder is missing; reinstall gpal")


@cache
def known_names() -> tuple[str, ...]:
    """Names of the known releases, the oldest first."""
    schemas = {path.stem: read_toml(path) for path in catalogs_folder().glob("*.toml")}
    names = [name for name, content in schemas.items() if not content.get("abstract")]
    return tuple(sorted(names, key=lambda name: (schemas[name].get("release", ""), name)))


def known_catalogs() -> list[CatalogInfo]:
    """Every known release: whether its extract is embedded, whether the full file is at hand."""
    infos = []
    for name in known_names():
        schema = find_schema(name)
        infos.append(
            CatalogInfo(
                name=name,
                title=schema.title,
                n_sources=schema.rows,
                embedded=embedded_extract(name) is not None,
                cached=_local_file(schema) is not None,
                reference=schema.reference.get("paper", ""),
            )
        )
    return infos


def find_schema(name_or_path: str | Path, over: dict[str, Any] | None = None) -> Schema:
    """The schema of a known release (any case), or that in a TOML file; `over` overrides keys."""
    path = Path(name_or_path)
    if path.suffix.lower() != ".toml":
        if str(name_or_path).lower() not in known_names():
            raise InputError(
                f"no catalog or schema named '{name_or_path}';"
                f" {close_matches(str(name_or_path), known_names())}"
            )
        path = catalogs_folder() / f"{str(name_or_path).lower()}.toml"
    try:
        return Schema.from_dict(merge(_content(path), over or {}), path.stem)
    except InputError as error:
        raise InputError(f"{path.name}: {error}") from None


def _content(path: Path) -> dict[str, Any]:
    """A TOML schema with what it extends underneath, looked for beside it, then among the known."""
    content = read_toml(path)
    base = content.pop("extends", None)
    if base is None:
        return content
    for folder in (path.parent, catalogs_folder()):
        candidate = folder / f"{str(base).lower()}.toml"
        if candidate.is_file() and candidate.resolve() != path.resolve():
            inherited = _content(candidate)
            inherited.pop("abstract", None)
            return merge(inherited, content)
    raise InputError(f"extends = '{base}': no such schema; {close_matches(base, known_names())}")


def embedded_extract(name: str) -> Path | None:
    """The extract of a release that is shipped with gpal, if there is one."""
    path = catalogs_folder() / f"{name}.fits.gz"
    return path if path.is_file() else None


def sha256(path: Path) -> str:
    """Checksum of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def recognise(path: Path) -> str | None:
    """The known release that a file holds, by checksum, by FITS header or by name; or None."""
    schemas = {name: find_schema(name) for name in known_names()}
    checksum = sha256(path)
    for name, schema in schemas.items():
        if schema.sha256 == checksum:
            return name
    files = [path.name.removesuffix(".gz")]
    if table_format(path.name) == "fits":
        header = fits_table_header(path)
        if header.get("GPALCAT") in schemas:
            return header["GPALCAT"]
        files.append(f"gll_psc_{header.get('VERSION')}.fit")  # how Fermi-LAT names its releases
    for name, schema in schemas.items():
        if schema.file in files:
            return name
    return None


def find_file(schema: Schema) -> Path:
    """The file of a known release: extract, installed fermipy, download cache, download."""
    path = embedded_extract(schema.name) or _local_file(schema)
    return path if path is not None else _download(schema)


def _local_file(schema: Schema) -> Path | None:
    """The full file where it lies already on this machine, its checksum verified."""
    from astropy.utils.data import download_file, is_url_in_cache

    found = []
    fermipy = importlib.util.find_spec("fermipy")
    for folder in (fermipy.submodule_search_locations or ()) if fermipy else ():
        found.append(Path(folder) / "data" / "catalogs" / schema.file)
    if is_url_in_cache(schema.url):
        found.append(Path(download_file(schema.url, cache=True, show_progress=False)))
    for path in found:
        if path.is_file() and sha256(path) == schema.sha256:
            return path
    return None


def _download(schema: Schema) -> Path:
    """Fetch the full file into astropy's cache and verify it."""
    from astropy.utils.data import clear_download_cache, download_file

    remedy = (
        f"download {schema.file} from {schema.url} yourself and give its path, or install fermipy,"
        " which ships it (pip install --no-deps fermipy)"
    )
    try:
        path = Path(
            download_file(schema.url, cache=True, show_progress=sys.stderr.isatty(), timeout=30)
        )
    except Exception as error:
        # the network fails in many ways, all of which come to the same for the user
        reason = " ".join(str(error).split())
        raise InputError(f"cannot fetch {schema.title} ({reason}); {remedy}") from None
    if sha256(path) != schema.sha256:
        clear_download_cache(schema.url)
        raise InputError(
            f"the file at {schema.url} is not the {schema.title} that gpal knows (SHA-256 differs);"
            f" if it is a new version give its path and schema='{schema.name}'"
        )
    return path
