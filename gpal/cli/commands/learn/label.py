"""`gpal learn label`: what a source turned out to be."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gpal.cli.campaign_options import Session, Who, user
from gpal.errors import InputError


def run(
    source: Annotated[
        str | None, typer.Argument(metavar="[SOURCE]", help="Name, or use --at or --csv.")
    ] = None,
    class_name: Annotated[
        str | None,
        typer.Argument(
            metavar="[CLASS]",
            help="Its class; `other` for none of the classes; a coarser one such as `agn`; weights"
            " such as `bll:0.8/fsrq:0.2`, how likely is what was seen.",
        ),
    ] = None,
    session: Session = Path("campaign"),
    at: Annotated[
        tuple[float, float] | None,
        typer.Option(metavar="RA DEC", help="Position in degrees, instead of a name."),
    ] = None,
    csv: Annotated[
        Path | None,
        typer.Option(metavar="FILE.csv", help="Columns name,label or ra,dec,label; all or none."),
    ] = None,
    radius: Annotated[
        float | None, typer.Option(min=0, show_default="0.1", help="Degrees, for positions.")
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Change a label that is there already.")
    ] = False,
    note: Annotated[str, typer.Option(help="Kept in the history.")] = "",
    who: Who = None,
) -> None:
    """Record what a source is. Safe once this returns.

    ```
    gpal learn label "4FGL J0612.9+1150" bll
    gpal learn label "4FGL J0612.9+1150" bll:0.8/fsrq:0.2
    gpal learn label --at 209.5088 -77.8233 fsrq
    gpal learn label --csv night-3.csv
    ```
    """
    from gpal.active.campaign import Campaign, Given
    from gpal.active.campaign.answers import canonical
    from gpal.active.campaign.source_files import RADIUS, read_labels

    if at is not None and class_name is None:
        source, class_name = None, source
    one = class_name is not None and (source is None) != (at is None)
    if not (one if csv is None else source is None and class_name is None and at is None):
        raise InputError("give SOURCE CLASS, or --at RA DEC CLASS, or --csv FILE")
    if radius is not None and source is not None:
        raise InputError("--radius is for positions, and the source has a name; leave it out")
    with Campaign(session) as campaign:
        table = campaign.table
        if csv is not None:
            given = read_labels(csv, table, user(who), radius, note)
        else:
            if source is not None:
                row = table.row(source)
            else:
                assert at is not None
                row = table.row_at(*at, RADIUS if radius is None else radius)
            given = [Given(int(table.ids[row]), str(class_name), user(who), note)]
        new = campaign.label(given, replace=replace)
        label = "" if csv is not None else canonical(str(class_name), table)
        names = dict(zip(table.ids.tolist(), table.names.tolist(), strict=True))
    if csv is None:
        word = "is" if new[0] else "was already, nothing to do:"
        typer.echo(f"{names[given[0].source]} {word} {label}")
    else:
        typer.echo(f"{sum(new)} labels recorded, {len(new) - sum(new)} were there already")
