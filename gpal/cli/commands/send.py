"""`gpal send`: a table of results to TOPCAT, DS9 or Aladin."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def run(
    table: Annotated[
        Path, typer.Argument(help="A folder of results, a FITS table, or a VOTable.")
    ] = Path("results"),
    to: Annotated[
        str | None,
        typer.Option("--to", metavar="NAME", help="The program.", show_default="all that take it"),
    ] = None,
    source: Annotated[
        str | None,
        typer.Option("--source", metavar="NAME", help="Point at this source instead."),
    ] = None,
) -> None:
    """Have TOPCAT, DS9 or Aladin load a table of results, or point at a source of it.

    They talk through a SAMP hub on this machine: start TOPCAT or Aladin first, which bring one.

    ```
    gpal send results
    gpal send results --source "4FGL J0534.5+2200" --to Aladin
    gpal learn export targets.vot && gpal send targets.vot
    ```
    """
    from gpal.jobs.sending import send_source, send_table

    told = send_table(table, to) if source is None else send_source(table, source, to)
    typer.echo(f"{'loaded by' if source is None else 'pointed at by'} {', '.join(told)}")
