"""`gpal learn start`: a campaign in a new folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gpal.active.strategies import STRATEGIES
from gpal.cli.campaign_options import STRATEGY, RelearnEvery, Session, Who, user
from gpal.cli.catalogs import show
from gpal.cli.options import CatalogOptions, ModelOptions, Schema, Seed, Source
from gpal.errors import InputError
from gpal.tensorflow_start import start_tensorflow


def run(
    source: Source,
    session: Session = Path("campaign"),
    strategy: Annotated[str, typer.Option(metavar="NAME", help=STRATEGY)] = "entropy",
    schema: Schema = None,
    *,
    reading: CatalogOptions,
    model: ModelOptions,
    relearn_every: RelearnEvery = 20,
    seed: Seed = 0,
    who: Who = None,
) -> None:
    """Start a campaign in a new folder.

    ```
    gpal learn start 4fgl-dr4 --session blazars --strategy margin
    gpal learn next --session blazars
    gpal learn label "4FGL J0612.9+1150" bll --session blazars
    ```
    """
    from gpal.active.campaign import Campaign

    STRATEGIES.find(strategy)
    model.check()
    if reading.exhaustive:
        raise InputError(
            "--open has a class 'other', which in a campaign is an answer of its own: name the"
            " classes (--class)"
        )
    catalog = reading.open(source, schema)
    start_tensorflow()
    show(catalog)
    with Campaign.start(
        catalog,
        session,
        parameters=model.chosen() | {"random_state": seed},
        strategy=strategy,
        relearn_every=relearn_every,
        who=user(who),
    ) as campaign:
        known = int((campaign.table.label != "").sum())
        targets = int(campaign.table.target.sum())
    typer.echo(f"{session}: {known} labelled sources, {targets} to choose from")
