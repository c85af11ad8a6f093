"""`gpal schema check`: what a table holds, as its schema reads it."""

from __future__ import annotations

import typer

from gpal.cli.catalogs import feature_names
from gpal.cli.options import Features, Schema, Source
from gpal.errors import InputError


def run(source: Source, schema: Schema = None, features: Features = "default") -> None:
    """Look at a table before anything is fitted to it.

    For each feature: its columns, its error column or that there is none, unit, range, a histogram,
    and what was not measured and why. For the class column: how many sources of each class, and
    which words are taken for no class. Lines with an exclamation mark want a decision.

    ```
    gpal schema check survey.csv --schema survey.toml
    gpal schema check 4fgl-dr4 --features default+hardness
    ```
    """
    from gpal.catalog.looking import inspect_catalog

    found = inspect_catalog(source, schema=schema, features=feature_names(features))
    typer.echo(str(found))
    if found.problems:
        raise InputError(
            f"{len(found.problems)} of {len(found.features)} features cannot be used:"
            f" {found.problems[0]}"
        )
