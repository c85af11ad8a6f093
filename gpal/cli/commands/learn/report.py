"""`gpal learn report`: a campaign's report."""

from __future__ import annotations

from pathlib import Path

import typer

from gpal.cli.campaign_options import Session
from gpal.cli.observing_options import ObservingOptions


def run(
    session: Session = Path("campaign"),
    *,
    observing: ObservingOptions,
) -> None:
    """Write report.html into the campaign's folder."""
    from gpal.active.campaign import Campaign
    from gpal.report.campaign import render_campaign

    with Campaign(session) as campaign:
        conditions = observing.conditions(campaign.table)
        typer.echo(render_campaign(campaign, conditions))
