"""`gpal learn merge`: a campaign goes on with a new release."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gpal.cli.campaign_options import Session, Who, user
from gpal.cli.catalogs import open_catalog, show
from gpal.cli.options import ErrorScale, Schema, Source

SHOWN = 3  # sources of another name


def run(
    source: Source,
    session: Session = Path("campaign"),
    schema: Schema = None,
    cuts: Annotated[
        list[str] | None,
        typer.Option(
            "--cut",
            metavar="CONDITION",
            show_default="the campaign's",
            help="Other cuts than so far, from now on; repeatable.",
        ),
    ] = None,
    error_scale: ErrorScale = None,
    fallback_radius: Annotated[
        float,
        typer.Option(metavar="DEG", help="95 % radius of a source without a position error."),
    ] = 0.1,
    who: Who = None,
) -> None:
    """Go on with a new release of the catalog; labels follow their sources."""
    from gpal.active.campaign import Campaign

    with Campaign(session) as campaign:
        features = campaign.table.measurements.names
        catalog = open_catalog(source, schema, features, error_scale=error_scale)
        show(catalog)
        result = campaign.merge(catalog, cuts, user(who), fallback_radius)
    typer.echo(
        f"{result['matched']} sources found again, {result['new']} new, {result['gone']} gone"
    )
    renamed = [f"{before} is {now}" for before, now in result["renamed"]]
    if renamed:
        first, more = ", ".join(renamed[:SHOWN]), len(renamed) - SHOWN
        typer.echo(
            f"{len(renamed)} of them by position: {first}{f' and {more} more' if more > 0 else ''}",
            err=True,
        )
    for name, ours in result["gone_labelled"]:
        typer.echo(f"{name}: '{ours}' here, not in the new release; the label is kept", err=True)
    for name, theirs, ours in result["conflicts"]:
        typer.echo(f"{name}: '{ours}' here, '{theirs}' in the new release; yours stays", err=True)
