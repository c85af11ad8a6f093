"""`gpal learn export`: targets, labels or history for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gpal.cli.campaign_options import Session
from gpal.cli.observing_options import ObservingOptions
from gpal.cli.options import MANY
from gpal.errors import InputError


def run(
    path: Annotated[
        Path, typer.Argument(metavar="FILE", help="Ends in .csv, .fits, .vot, .xml or .reg.")
    ],
    session: Session = Path("campaign"),
    labels: Annotated[
        bool, typer.Option("--labels", help="The labels given, instead of the targets.")
    ] = False,
    history: Annotated[
        bool, typer.Option("--history", help="Every question, label and model, instead.")
    ] = False,
    number: Annotated[
        int | None,
        typer.Option("--number", "-n", min=1, max=MANY, show_default="all", help="Targets."),
    ] = None,
    top: Annotated[
        bool, typer.Option("--top", help="With -n: the highest scores, even if they are alike.")
    ] = False,
    *,
    observing: ObservingOptions,
) -> None:
    """Write the ranked targets, the labels or the history, for other programs.

    `-n 10` gives the targets that `gpal learn next -n 10` does; without `-n` the whole ranking.
    """
    from gpal.active.campaign import Campaign
    from gpal.active.campaign.export import export_history, export_labels, export_targets

    of_targets = bool(number or top or observing.given)
    if labels + history + of_targets > 1:
        raise InputError(
            "--labels and --history exclude each other and the options of targets (-n, --top,"
            " --limit, --latitude, --times); export them one by one"
        )
    with Campaign(session) as campaign:
        if labels or history:
            count = (export_labels if labels else export_history)(campaign, path)
        else:
            conditions = observing.conditions(campaign.table)
            diverse = number is not None and not top
            count = export_targets(campaign, path, number, observing=conditions, diverse=diverse)
            if campaign.behind:
                typer.echo("labels have come since the model; see: gpal learn refit", err=True)
    typer.echo(f"{path}: {count} {'labels' if labels else 'events' if history else 'targets'}")
