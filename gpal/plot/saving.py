"""A figure as a file that says what it was made of."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from gpal.errors import InputError, shown
from gpal.files.output import atomic_path
from gpal.plot.results import provenance_of
from gpal.provenance import provenance, to_json

__all__ = ["save"]

FORMATS = (".png", ".pdf")


def save(drawn: Any, path: str | os.PathLike, made_of: Any = None) -> None:
    """Write a figure as PNG or PDF, with its provenance inside.

    Parameters
    ----------
    drawn : Axes, array of Axes, or Figure
        What a function of `gpal.plot` returned; the whole figure is written.
    path : str or path
        Ends in `.png` or `.pdf`. The file appears when it is whole.
    made_of : result, result folder, Table or mapping, optional
        Whose provenance the file carries: code, data, settings and seed. Without it, versions and
        date alone.

    Notes
    -----
    In a PNG the provenance is the text chunk `Description`, in a PDF the `Subject`, as JSON. A PDF
    has its fonts embedded as TrueType, as journals ask.

    Examples
    --------
    >>> import gpal, tempfile
    >>> ax = gpal.plot.sky_map([10.0, 120.0], [5.0, -30.0], ["psr", "bll"], width="column")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     gpal.plot.save(ax, f"{folder}/sky.pdf")
    """
    ending = Path(path).suffix.lower()
    if ending not in FORMATS:
        raise InputError(
            f"'{shown(Path(path).name)}' should end in {' or '.join(FORMATS)}: that is the format"
        )
    origin = provenance() if made_of is None else provenance_of(made_of)
    figure = drawn if isinstance(drawn, Figure) else np.ravel(np.asarray(drawn, object))[0].figure
    with (
        atomic_path(path) as temporary,
        warnings.catch_warnings(),
        mpl.rc_context({"pdf.fonttype": 42}),
    ):
        # A letter that the font lacks is drawn as a box.
        warnings.filterwarnings("ignore", "Glyph .* missing from")
        if ending == ".png":
            figure.savefig(temporary, format="png", metadata=_of_png(origin))
        else:
            figure.savefig(temporary, format="pdf", metadata=_of_pdf(origin))


def _of_png(origin: Mapping[str, Any]) -> dict[str, str]:
    return {"Software": f"gpal {origin.get('gpal')}", "Description": to_json(origin)}


def _of_pdf(origin: Mapping[str, Any]) -> dict[str, Any]:
    date = origin.get("date")
    return {
        "Creator": f"gpal {origin.get('gpal')}",
        "Subject": to_json(origin),
        "CreationDate": None if date is None else datetime.fromisoformat(str(date)),
    }
