"""`gpal learn report`: a campaign's report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gpal.cli.campaign_options import Session
from gpal.cli.observing_options import ObservingOptions
from gpal.errors import InputError


def run(
    session: Session = Path("campaign"),
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", show_default="report.html in the campaign's folder"),
    ] = None,
    *,
    observing: ObservingOptions,
) -> None:
    """Write a page on the campaign: what was asked, what was learned, what to look at next."""
    from gpal.active.campaign import Campaign
    from gpal.report.campaign import render_campaign

    if out is not None and out.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"'{out.name}' should end in .html: it is a page")
    with Campaign(session) as campaign:
        conditions = observing.conditions(campaign.table)
        typer.echo(render_campaign(campaign, conditions, out))
