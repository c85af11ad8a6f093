"""Options that the commands of a campaign share."""

from __future__ import annotations

import getpass
from pathlib import Path
from typing import Annotated

import typer

from gpal.active.strategies import STRATEGIES
from gpal.cli.options import MANY

__all__ = ["STRATEGY", "RelearnEvery", "Session", "Who", "user"]

STRATEGY = f"One of {', '.join(STRATEGIES)}."
RelearnEvery = Annotated[
    int,
    typer.Option(
        min=1,
        max=MANY,
        rich_help_panel="Model",
        help="Labels until hyper-parameters are learned again.",
    ),
]
Session = Annotated[
    Path,
    typer.Option(
        "--session", "-s", metavar="FOLDER", envvar="GPAL_SESSION", help="The campaign's folder."
    ),
]
Who = Annotated[
    str | None,
    typer.Option(metavar="NAME", show_default="your user name", help="Who, for the history."),
]


def user(who: str | None) -> str:
    """The name for the history: as given, or the user's own."""
    if who is not None:
        return who
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user id without a name, as in a container
        return ""
