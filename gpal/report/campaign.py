"""The page of a labelling campaign: what was asked, what was learned, what to look at next.

It is made from the campaign's folder alone and needs no model library: the newest model's scores
are in it. One self-contained file, as the classification report.
"""

from __future__ import annotations

import base64
import io
import math
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined

from gpal import plot
from gpal.active.campaign.ranking import NothingLeft
from gpal.active.campaign.table import OTHER
from gpal.catalog import Series
from gpal.files.output import atomic_path, check_apart
from gpal.limits import Limits
from gpal.plot.style import class_colours
from gpal.provenance import provenance
from gpal.report.cells import cell

if TYPE_CHECKING:
    from gpal.active.campaign import Campaign
    from gpal.active.campaign.model_scores import ModelScores
    from gpal.active.campaign.ranking import Target
    from gpal.active.campaign.store import Event
    from gpal.active.observing import Observing

__all__ = ["render_campaign", "spectrum_picture"]

NEXT = 10
SHOWN_LABELS = 100
PARTS = {
    "measurement": ("error bars: measure it better", "#56b4e9"),
    "model": ("few labels of such sources: label it", "#e69f00"),
    "overlap": ("classes overlap here: needs other data", "#8a8f98"),
}


def render_campaign(
    campaign: Campaign, observing: Observing | None = None, path: Path | None = None
) -> Path:
    """Write the page to `path`, by default report.html in the campaign's folder; its name.

    observing  the next targets are those that it allows
    """
    path = path or campaign.folder / "report.html"
    check_apart([path], campaign.files)
    models = campaign.store.models()
    current = models and models[-1]["release"] == campaign.release
    scored = campaign.scores() if current else None
    targets = []
    with suppress(NothingLeft):  # which the page says
        if scored is not None:
            targets = campaign.ranking(scored, NEXT, observing=observing, diverse=True)
    labels = campaign.labels()
    classes = list(campaign.table.classes)
    given = {label: 0 for label in (*classes, OTHER, *campaign.table.coarser)}
    for value in campaign.store.labels().values():
        given[value[0]] = given.get(value[0], 0) + 1
    origin = provenance(campaign.table.provenance, {"strategy": campaign.store.setting("strategy")})
    ours = list(campaign.store.labels())
    of_catalog = campaign.table.label[~np.isin(campaign.table.ids, ours)]
    environment = Environment(
        loader=PackageLoader("gpal.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    html = environment.get_template("campaign.html").render(
        provenance=origin,
        title=campaign.table.provenance.get("title") or campaign.table.provenance.get("file", ""),
        folder=campaign.folder.name,
        strategy=campaign.store.setting("strategy").replace("_", " "),
        classes=classes,
        colours=class_colours(classes),
        given=given,
        n_labels=sum(given.values()),
        n_absent=int((~np.isin(ours, campaign.table.ids)).sum()),
        n_known=int((of_catalog != "").sum()),
        pool=int((campaign.table.target & (labels == "")).sum()),
        asked=len({e.source for e in campaign.store.history() if e.action == "ask"}),
        open_questions=_open_questions(campaign),
        narrowed=observing is not None
        and (observing.limits or observing.visible is not None or observing.time is not None),
        advice=str(campaign.advice()),
        models=models,
        progress=_progress(campaign),
        labelled=_labelled(campaign),
        targets=[_row(campaign, target) for target in targets],
        largest_entropy=math.log(len(classes)),
        parts=PARTS,
        model=scored,
        behind=campaign.behind,
    )
    with atomic_path(path) as temporary:
        temporary.write_text(html, encoding="utf-8", errors="backslashreplace")
    return path


def _progress(campaign: Campaign) -> list[dict[str, Any]]:
    """Per model version: labels, mean entropy and its parts over the targets it ranks highest."""
    lines = []
    for model in campaign.store.models():
        scored = campaign.scores(model["number"])
        p = scored.probabilities[np.isfinite(scored.score)]
        entropy = -np.sum(p * np.log(np.where(p > 0, p, 1.0)), axis=1)
        lines.append(
            {
                **model,
                "entropy": float(entropy.mean()) if len(entropy) else 0.0,
                **{
                    name: float(np.nanmean(column)) if np.isfinite(column).any() else 0.0
                    for name, column in zip(PARTS, scored.parts.T, strict=True)
                },
            }
        )
    return lines


def _open_questions(campaign: Campaign) -> list[Event]:
    """The last question about each source that still has no label, the newest first."""
    questions: dict[int | None, Event] = {}
    for event in campaign.store.history():
        if event.action == "ask":
            questions.pop(event.source, None)
            questions[event.source] = event
    free = set(campaign.table.ids[campaign.labels() == ""].tolist())
    return [event for source, event in reversed(questions.items()) if source in free]


def _labelled(campaign: Campaign) -> list[dict[str, Any]]:
    """The newest labels, with the probability that the model gave them when it asked."""
    kept: dict[int, ModelScores] = {}
    undone = {event.undoes for event in campaign.store.history() if event.undoes is not None}
    events = [e for e in campaign.store.history() if e.action == "label"][-SHOWN_LABELS:]
    rows = []
    for event in reversed(events):
        expected = None
        if event.model is not None:
            scored = kept.setdefault(event.model, campaign.scores(event.model))
            row = np.flatnonzero(scored.ids == event.source)
            if event.label in scored.classes and len(row):
                column = scored.classes.index(event.label)
                expected = float(scored.probabilities[row[0], column])
        rows.append({"event": event, "expected": expected, "undone": event.number in undone})
    return rows


def _row(campaign: Campaign, target: Target) -> dict[str, Any]:
    table, row = campaign.table, target.row
    points = table.spectrum[row]
    source = table.measurements[[row]]
    limits = source.limits or Limits.none(source.X.shape)
    features = zip(
        *(source.names, source.units, source.X[0], source.X_err[0]),
        *(limits.value[0], limits.confidence[0]),
        strict=True,
    )
    return {
        "target": target,
        "features": [(name, _measured(*measured), unit) for name, unit, *measured in features],
        "spectrum": spectrum_picture(
            Series("", table.energy, points[:, 0], points[:, 1:], table.spectrum_unit)
        ),
        "catalog_class": table.catalog_class[row],
        "links": table.links.of(
            target.name, target.ra, target.dec, float(table.position_error[row, :2].max())
        ),
        "marks": [name for name, c in table.carried.items() if c.dtype.kind == "b" and c[row]],
        "carried": [
            (column.description, cell(column[row].item()), column.unit)
            for column in table.carried.values()
            if column.dtype.kind != "b"
        ],
        "parts": {name: getattr(target, name) for name in PARTS},
    }


def _measured(x: float, error: float, limit: float, confidence: float) -> str:
    """2.13 ± 0.04, with digits that the error supports; < 2.1 where only a limit is known."""
    if not np.isfinite(error):
        side = "<" if confidence < 0 else ">"
        return f"{side} {limit:.4g}" if np.isfinite(limit) else "not measured"
    if error == 0:
        return f"{x:.4g}"
    digits = max(0, 1 - math.floor(math.log10(error)))
    return f"{x:.{digits}f} ± {error:.{digits}f}"


def spectrum_picture(series: Series) -> str | None:
    """νFν against energy as a PNG in a data URI; None without two points."""
    points = np.isfinite(series.flux) & (series.is_limit | (series.flux > 0))
    if points.sum() < 2:
        return None
    figure = plot.spectrum(series, width=3.0).figure
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=200)
    return f"data:image/png;base64,{base64.b64encode(stream.getvalue()).decode('ascii')}"
