"""`gpal learn refit`: the model fitted to all labels so far."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gpal.cli.campaign_options import Session
from gpal.tensorflow_start import start_tensorflow


def run(
    session: Session = Path("campaign"),
    full: Annotated[
        bool, typer.Option("--full", help="Learn the hyper-parameters again, too.")
    ] = False,
) -> None:
    """Fit the model to all labels so far."""
    from gpal.active.campaign import Campaign

    with Campaign(session) as campaign:
        if full or not campaign.model_is_current():
            start_tensorflow()
        scored = campaign.refit(full)
    typer.echo(f"model {scored.number}: {scored.n_labels} labels")
