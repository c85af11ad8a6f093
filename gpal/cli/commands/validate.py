"""`gpal validate`: train on an old release, test on what a newer one identified."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from gpal.cli.catalogs import comma_separated, show
from gpal.cli.options import (
    MANY,
    Beside,
    CatalogOptions,
    Faint,
    ModelOptions,
    New,
    NewSchema,
    Old,
    OldSchema,
    Out,
    Seed,
)
from gpal.files.output import check_apart
from gpal.tensorflow_start import start_tensorflow


def run(
    old: Old,
    new: New,
    out: Out = Path("validation"),
    old_schema: OldSchema = None,
    new_schema: NewSchema = None,
    *,
    reading: CatalogOptions,
    model: ModelOptions,
    without: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FEATURE",
            show_default="those named after variability",
            help="A feature to leave out in the second run of every model; repeatable.",
        ),
    ] = None,
    fallback_radius: Annotated[
        float,
        typer.Option(metavar="DEG", help="95 % radius of a source without a position error."),
    ] = 0.1,
    seeds: Annotated[
        int,
        typer.Option(
            min=1,
            max=MANY,
            help="Fits of every model; scores are averages over them. The docs have 5.",
        ),
    ] = 3,
    faint: Faint = None,
    beside: Beside = None,
    seed: Seed = 0,
) -> None:
    """Train on an old release, test on what a newer one identified.

    The models learn from OLD's labelled sources with OLD's measurements. They are examined on the
    sources that OLD leaves without a class, or with an undecided one, and NEW classifies; cuts are
    on OLD, and so is --error-scale. FOLDER then holds `report.html`, `metrics.json`, figures, and
    the probabilities of all of OLD's open sources, as they stand and with class fractions estimated
    on those sources; with a class `other`, left open by a factor of e.
    Examples:

    ```
    gpal validate 4fgl 4fgl-dr4
    gpal validate 4fgl-dr4 fl16y --class bll,fsrq
    gpal validate 4fgl fl16y --class agn=bll+fsrq+bcu+rdg --class psr
    gpal validate 4fgl fl16y --open
    ```
    """
    model.check()
    before = reading.open_for_all(old, old_schema)
    names = CatalogOptions(classes=reading.classes, exhaustive=reading.exhaustive)
    after = names.open(new, new_schema)
    start_tensorflow()
    from gpal import jobs
    from gpal.jobs.result_folder import RESULT_FILES

    read = [old, new, old_schema, new_schema, reading.error_scale]
    check_apart([out / name for name in RESULT_FILES], read)
    show(before)
    show(after, classes_only=True)
    result = jobs.validate(
        before,
        after,
        out,
        classifier=model.classifier(),
        without=None if without is None else comma_separated(without),
        fallback_radius=fallback_radius,
        n_seeds=seeds,
        faint=faint,
        beside=beside or (),
        random_state=seed,
    )
    typer.echo(_summary(result.metrics))
    typer.echo(f"report: {result.folder / 'report.html'}")


def _summary(metrics: dict[str, Any]) -> str:
    """What a person wants to know first; the report has the rest."""
    recommended = metrics["settings"]["correction"]
    lines = [
        f"{metrics['n_labelled']} labelled sources, {metrics['n_targets']} targets,"
        f" {metrics['n_examined']} of them classified since"
        f" ({', '.join(f'{n} {name}' for name, n in metrics['n_examined_per_class'].items())})"
    ]
    of = metrics["outcomes"]
    lines += ["", f"{'what became of them':20s} " + "  ".join(of["all targets"])]
    for name, counts in {**of["by origin"], "all targets": of["all targets"]}.items():
        cells = (f"{n:{len(outcome)}d}" for outcome, n in counts.items())
        lines.append(f"{name:20s} " + "  ".join(cells))
    for variant, scores in metrics["variants"].items():
        lines += ["", f"{'NLL, ' + variant:34s} {'no correction':^15s} {'mix ' + recommended:^15s}"]
        for model in metrics["models"]:
            values = [scores[c][model]["nll"] for c in ("train", recommended)]
            lines.append(
                f"{model:34s} " + "   ".join(f"{v['mean']:.3f} ± {v['se']:.3f}" for v in values)
            )
    return "\n".join([*lines, ""])
