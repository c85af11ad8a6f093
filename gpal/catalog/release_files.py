"""The file of a known release: the extract beside its schema, or the full one, here or fetched."""

from __future__ import annotations

import hashlib
import importlib.util
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path

from gpal.catalog.readers import FORMATS, fits_table_header, table_format
from gpal.catalog.registry import find_schema, known_names, schema_path
from gpal.catalog.schema import Schema
from gpal.errors import InputError

__all__ = [
    "CatalogInfo",
    "embedded_extract",
    "find_file",
    "is_release",
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


def embedded_extract(name: str) -> Path | None:
    """The table of the same name beside the schema of a known release, if there is one."""
    schema = schema_path(name)
    for ending in (ending for endings in FORMATS.values() for ending in endings):
        path = schema.with_name(f"{schema.stem}{ending}")
        if path.is_file():
            return path
    return None


def sha256(path: Path) -> str:
    """Checksum of a file."""
    found = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            found.update(block)
    return found.hexdigest()


def is_release(path: Path) -> bool:
    """Whether a file is, bit for bit, the full file of a known release."""
    checksum = sha256(path)
    return any(find_schema(name).sha256 == checksum for name in known_names())


def recognise(path: Path) -> str | None:
    """The known release that a file holds, by checksum, by FITS header or by name; or None."""
    schemas = {name: find_schema(name) for name in known_names()}
    checksum = sha256(path)
    for name, schema in schemas.items():
        if schema.sha256 == checksum:
            return name
    files = [path.name.removesuffix(".gz")]
    if table_format(path.name) == "fits":
        header = fits_table_header(path, "GPALCAT", "VERSION")
        if header["GPALCAT"] in schemas:
            return header["GPALCAT"]
        files.append(f"gll_psc_{header['VERSION']}.fit")  # how Fermi-LAT names its releases
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
    if not schema.file or not schema.url:
        return None
    from astropy.utils.data import CacheMissingWarning, download_file, is_url_in_cache

    found = []
    fermipy = importlib.util.find_spec("fermipy")
    for folder in (fermipy.submodule_search_locations or ()) if fermipy else ():
        found.append(Path(folder) / "data" / "catalogs" / schema.file)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CacheMissingWarning)
        cached = is_url_in_cache(schema.url)
    if cached:
        found.append(Path(download_file(schema.url, cache=True, show_progress=False)))
    for path in found:
        if path.is_file() and sha256(path) == schema.sha256:
            return path
    return None


def _download(schema: Schema) -> Path:
    """Fetch the full file into astropy's cache and verify it."""
    title = schema.title or schema.name
    if not schema.file or not schema.url or not schema.sha256:
        raise InputError(
            f"no table of {title}: put one named {schema.name}.fits, .csv, ... beside its schema,"
            " or 'file', 'url' and 'sha256' into it"
        )
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
        raise InputError(f"cannot fetch {title} ({reason}); {remedy}") from None
    if sha256(path) != schema.sha256:
        clear_download_cache(schema.url)
        raise InputError(
            f"the file at {schema.url} is not the {title} that gpal knows (SHA-256 differs);"
            f" if it is a new version give its path and schema='{schema.name}'"
        )
    return path
