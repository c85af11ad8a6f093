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
    which words are taken for no class. Lines with an exclamation mark want a decision. A table of
    one's own is looked at by --schema, and without one as `gpal schema init` would have it.

    ```
    gpal schema check survey.csv --schema survey.toml
    gpal schema check 4fgl-dr4 --features default+hardness
    ```
    """
    from gpal.catalog.draft import schema_for
    from gpal.catalog.looking import inspect_catalog

    rules = schema if schema is not None else schema_for(source)
    found = inspect_catalog(source, schema=rules, features=feature_names(features or "default"))
    if rules is not schema:
        typer.echo("no --schema given: read as `gpal schema init` drafts it\n")
    typer.echo(str(found))
    if found.problems:
        raise InputError(
            f"{len(found.problems)} of {len(found.features)} features cannot be used:"
            f" {found.problems[0]}"
        )
