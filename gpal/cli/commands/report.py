"""`gpal report`: the report of a result folder, made again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def run(
    folder: Annotated[
        Path, typer.Argument(help="A folder that `gpal classify` or `gpal validate` made.")
    ] = Path("results"),
) -> None:
    """Build report.html of a result folder again, from the files in it."""
    from gpal.report import render_report

    render_report(folder)
    typer.echo(folder / "report.html")
