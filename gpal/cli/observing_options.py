"""What can be observed: the options of `gpal learn` that narrow down or weigh its targets."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

from gpal.errors import InputError

if TYPE_CHECKING:
    from gpal.active.campaign.table import SourceTable
    from gpal.active.observing import Observing

__all__ = ["ObservingOptions"]


@dataclass(frozen=True)
class ObservingOptions:
    """Where, when and what can be observed."""

    limit: Annotated[
        list[str] | None,
        typer.Option(
            "--limit",
            metavar="NAME:LOW:HIGH",
            help="Only sources within limits of a feature, `ra`, `dec` or a column of numbers; a"
            " side may be empty: `dec::30`; `ra:350:10` goes through 0h. Repeatable.",
        ),
    ] = None
    latitude: Annotated[
        float | None,
        typer.Option(
            metavar="DEG", help="Only what culminates at --airmass or less, at this latitude."
        ),
    ] = None
    airmass: Annotated[
        float | None, typer.Option(min=1, show_default="2", help="With --latitude.")
    ] = None
    times: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.csv",
            help="Observing time per source (columns name,time): scores count per unit of time, and"
            " only sources of the file are proposed.",
        ),
    ] = None

    @property
    def given(self) -> bool:
        """Whether any of them narrows down or weighs the targets."""
        return bool(self.limit or self.times or (self.latitude, self.airmass) != (None, None))

    def conditions(self, table: SourceTable) -> Observing:
        """What the options say, for the sources of `table`."""
        from gpal.active.campaign.source_files import read_times
        from gpal.active.observing import Observing, declination_range

        bounds: dict[str, tuple[float | None, float | None]] = {}
        for text in self.limit or []:
            try:
                name, low, high = text.rsplit(":", 2)
                bound = (float(low) if low else None, float(high) if high else None)
            except ValueError:
                raise InputError(
                    f"--limit {text} is not NAME:LOW:HIGH with numbers; give e.g. dec:-30:60"
                ) from None
            if name in bounds:
                raise InputError(f"two limits on '{name}'; give one, {name}:LOW:HIGH")
            bounds[name] = bound
        visible = None
        if self.latitude is not None:
            south, north = declination_range(
                self.latitude, 2.0 if self.airmass is None else self.airmass
            )
            visible = (table.dec >= south) & (table.dec <= north)
        elif self.airmass is not None:
            raise InputError("--airmass needs the site's --latitude")
        time = None
        if self.times is not None:
            time = np.full(len(table), np.nan)
            for row, value in read_times(self.times, table).items():
                time[row] = value
        return Observing(time, visible, bounds)
