"""`gpal learn undo`: a label taken back."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gpal.cli.campaign_options import Session, Who, user


def run(
    source: Annotated[
        str | None, typer.Argument(metavar="[SOURCE]", help="Its label; without: the last one.")
    ] = None,
    session: Session = Path("campaign"),
    who: Who = None,
) -> None:
    """Take a label back. The history keeps both."""
    from gpal.active.campaign import Campaign

    with Campaign(session) as campaign:
        number = None if source is None else campaign.source(source)
        name, value = campaign.undo(number, user(who))
        now = campaign.labels()[campaign.table.names == name]
    again = f"; it is {now[0]} again" if len(now) and now[0] else ""
    typer.echo(f"{name} is no longer {value}{again}")
