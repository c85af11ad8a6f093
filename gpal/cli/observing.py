"""What can be observed: the options of `gpal learn` that narrow down or weigh its targets."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

from gpal.errors import InputError

if TYPE_CHECKING:
    from gpal.active.campaign.table import SourceTable
    from gpal.active.observing import Observing

__all__ = ["Airmass", "Latitude", "Limits", "Times", "conditions"]

Limits = Annotated[
    list[str] | None,
    typer.Option(
        "--limit",
        metavar="NAME:LOW:HIGH",
        help="Only sources within limits of a feature, `ra`, `dec` or a column of numbers; a side"
        " may be empty: `dec::30`. Repeatable.",
    ),
]
Latitude = Annotated[
    float | None,
    typer.Option(metavar="DEG", help="Only what culminates above --airmass at this latitude."),
]
Airmass = Annotated[float | None, typer.Option(min=1, show_default="2", help="With --latitude.")]
Times = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE.csv",
        help="Observing time per source (columns name,time): scores count per unit of time, and"
        " only sources of the file are proposed.",
    ),
]


def conditions(
    table: SourceTable,
    limits: list[str] | None,
    latitude: float | None,
    airmass: float | None,
    times: Path | None,
) -> Observing:
    """What the options say, for the sources of `table`."""
    from gpal.active.campaign.label_files import read_times
    from gpal.active.observing import Observing, declination_range

    bounds: dict[str, tuple[float | None, float | None]] = {}
    for text in limits or []:
        try:
            name, low, high = text.rsplit(":", 2)
            bounds[name] = (float(low) if low else None, float(high) if high else None)
        except ValueError:
            raise InputError(
                f"--limit {text} is not NAME:LOW:HIGH with numbers; give e.g. dec:-30:60"
            ) from None
    visible = None
    if latitude is not None:
        south, north = declination_range(latitude, 2.0 if airmass is None else airmass)
        visible = (table.dec >= south) & (table.dec <= north)
    elif airmass is not None:
        raise InputError("--airmass needs the site's --latitude")
    time = None
    if times is not None:
        time = np.full(len(table), np.nan)
        for row, value in read_times(times, table).items():
            time[row] = value
    return Observing(time, visible, bounds)
