"""`gpal learn status`: where a campaign stands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gpal.cli.campaign_options import Session
from gpal.cli.options import MANY


def run(
    session: Session = Path("campaign"),
    last: Annotated[int, typer.Option(min=0, max=MANY, help="Events of the history to show.")] = 5,
) -> None:
    """Where the campaign stands, and whether more labels still change the answer."""
    from gpal.active.campaign import OTHER, Campaign

    with Campaign(session) as campaign:
        labels, models = campaign.store.labels(), campaign.store.models()
        present = campaign.labels()
        pool = int((campaign.table.target & (present == "")).sum())
        title = campaign.table.provenance.get("title") or campaign.table.provenance.get("file")
        typer.echo(f"{title}, strategy {campaign.store.setting('strategy')}")
        absent = len(set(labels) - set(campaign.table.ids.tolist()))
        gone = f" ({absent} of sources that this release has not)" if absent else ""
        typer.echo(f"{len(labels)} labels of this campaign{gone}, {pool} sources to choose from")
        named = (*campaign.table.classes, *campaign.table.coarser, OTHER)
        weighed = sorted({value[0] for value in labels.values()} - set(named))
        for name in (*named, *weighed):
            own = sum(value[0] == name for value in labels.values())
            rare = name in (*campaign.table.coarser, *weighed)
            if rare and not own and not (present == name).any():
                continue
            typer.echo(f"  {name:8s} {int((present == name).sum()):6d} in all {own:6d} new")
        behind = "; labels have come since" if campaign.behind else ""
        typer.echo(f"{len(models)} model versions{behind}")
        typer.echo(str(campaign.advice()))
        for event in campaign.store.history(last) if last else []:
            what = " ".join(str(part) for part in (event.name, event.label) if part)
            model = f" model {event.model}" if event.model else ""
            typer.echo(f"{event.time}  {event.who or '-':10s} {event.action:6s} {what}{model}")
