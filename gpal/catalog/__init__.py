"""Catalogs as data: a release, or a user's own table, read into measurements with error bars.

    load_catalog("4fgl-dr4")                  a known release, from the extract shipped with gpal
    load_catalog("gll_psc_v35.fit")           a file of a known release, recognised by its content
    load_catalog("my.csv", mapping={...})     any table, its columns named in a mapping or a schema

This package knows nothing of models.
"""

from gpal.catalog.catalog import Catalog, Decision
from gpal.catalog.draft import draft_schema
from gpal.catalog.fainter import Fainter
from gpal.catalog.loader import load_catalog
from gpal.catalog.looking import inspect_catalog
from gpal.catalog.registry import add_catalogs
from gpal.catalog.release_files import CatalogInfo, known_catalogs
from gpal.catalog.schema import Schema
from gpal.catalog.series import Series, light_curve, spectrum

__all__ = [
    "Catalog",
    "CatalogInfo",
    "Decision",
    "Fainter",
    "Schema",
    "Series",
    "add_catalogs",
    "draft_schema",
    "inspect_catalog",
    "known_catalogs",
    "light_curve",
    "load_catalog",
    "spectrum",
]
