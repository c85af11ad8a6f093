"""`gpal schema init`: a schema for a table, drafted for a person to edit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gpal.errors import InputError, shown
from gpal.files.output import atomic_path

FILE = "A table: FITS, VOTable, ECSV, CSV or Parquet."


def run(
    file: Annotated[Path, typer.Argument(metavar="FILE", show_default=False, help=FILE)],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE.toml",
            show_default="printed",
            help="Where to write it; never in place of a file that is there.",
        ),
    ] = None,
) -> None:
    """Draft the schema of a table: which column is what, as far as it can be guessed.

    Identifier, position, class, and values with their errors are found by their names, UCDs and
    cells; what was guessed, and what was not taken, is said in comments. Read it and edit it:

    ```
    gpal schema init survey.csv --out survey.toml
    gpal schema check survey.csv --schema survey.toml
    gpal classify survey.csv --schema survey.toml
    ```
    """
    from gpal.catalog.draft import draft_schema

    if out is not None and out.suffix.lower() != ".toml":
        raise InputError(f"--out {shown(out, 300)}: the name of a schema ends in .toml")
    if out is not None and (out.exists() or out.is_symlink()):
        raise InputError(
            f"'{shown(out, 300)}' is there already, and may have been edited; choose another name,"
            " or remove it"
        )
    drafted = draft_schema(file, schema_name=str(out or ""))
    if out is None:
        typer.echo(drafted, nl=False)
        return
    with atomic_path(out) as temporary:
        temporary.write_text(drafted, encoding="utf-8")
    typer.echo(f"{out}: read it, edit it, then `gpal schema check {file} --schema {out}`")
