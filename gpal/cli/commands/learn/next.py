"""`gpal learn next`: the sources to look at next."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gpal.cli.campaign_options import Session, Who, user
from gpal.cli.observing_options import ObservingOptions
from gpal.cli.options import MANY
from gpal.tensorflow_start import start_tensorflow

if TYPE_CHECKING:
    from gpal.active.campaign.ranking import Target


def run(
    session: Session = Path("campaign"),
    number: Annotated[int, typer.Option("--number", "-n", min=1, max=MANY, help="How many.")] = 10,
    top: Annotated[
        bool, typer.Option("--top", help="The highest scores, even if they are alike.")
    ] = False,
    gain: Annotated[
        bool,
        typer.Option(
            "--gain",
            help="Also what error bars half as long would tell of the class, in nats (`halved`);"
            " a label tells the entropy.",
        ),
    ] = False,
    *,
    observing: ObservingOptions,
    who: Who = None,
) -> None:
    """The sources to look at next, and why.

    *score* is the strategy's and ranks them. *entropy* is averaged over the error bars and the sum
    of *measure* (the error bars), *model* (too few labels of such sources) and *overlap* (the
    classes themselves). A model is fitted if labels have come in.
    """
    from rich.console import Console
    from rich.table import Table

    from gpal.active.campaign import Campaign

    with Campaign(session) as campaign:
        conditions = observing.conditions(campaign.table)
        if gain or not campaign.model_is_current():  # what is kept with a model needs none
            start_tensorflow()
        targets = campaign.ask(number, observing=conditions, diverse=not top, who=user(who))
        gains = campaign.gains(targets) if gain else []
        strategy = campaign.store.setting("strategy")
    view = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for header in ("", "source", "ra", "dec"):
        view.add_column(header, justify="left" if header == "source" else "right", no_wrap=True)
    numbers = ("score", "entropy", "measure", "model", "overlap")
    for header in (*numbers, *(("halved",) if gain else ())):
        view.add_column(header, justify="right")
    for name in targets[0].probabilities:
        view.add_column(f"p({name})", justify="right")
    for rank, target in enumerate(targets, 1):
        view.add_row(str(rank), *_cells(target, *gains[rank - 1 : rank]))
    # Wider than the terminal rather than cut off; a name in brackets is no markup.
    width = max(Console().width, 60 + 10 * len(view.columns))
    Console(width=width, markup=False, emoji=False).print(view)
    typer.echo(f"score: {strategy}{', per unit of time' if observing.times else ''}")


def _cells(target: Target, *gain: float) -> list[str]:
    parts = (target.entropy, target.measurement, target.model, target.overlap, *gain)
    return [
        target.name,
        f"{target.ra:.4f}",
        f"{target.dec:+.4f}",
        f"{target.score:.3f}",
        *(f"{part:.3f}" if part == part else "" for part in parts),
        *(f"{p:.3f}" for p in target.probabilities.values()),
    ]
