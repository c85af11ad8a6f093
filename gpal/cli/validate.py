"""`gpal validate` and `gpal catalogs calibrate-errors`: two releases of the same sky."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from gpal.cli.common import (
    CATALOG,
    Classes,
    Cuts,
    ErrorScale,
    Features,
    InputNoise,
    Likelihood,
    NumInducing,
    Out,
    Seed,
    chosen,
    comma_separated,
    feature_names,
    open_catalog,
    start_tensorflow,
)
from gpal.errors import InputError

__all__ = ["calibrate_errors", "parse_prior", "validate"]

Old = Annotated[str, typer.Argument(metavar="OLD", show_default=False, help=CATALOG)]
New = Annotated[str, typer.Argument(metavar="NEW", show_default=False, help=CATALOG)]
OldSchema = Annotated[
    str | None, typer.Option(metavar="NAME|FILE.toml", help="How to read OLD, as in classify.")
]
NewSchema = Annotated[
    str | None, typer.Option(metavar="NAME|FILE.toml", help="How to read NEW, as in classify.")
]


def parse_prior(text: str) -> str | dict[str, float]:
    """`train`, `estimated`, or `bll=0.5,fsrq=0.2,psr=0.3`."""
    if "=" not in text:
        return text
    try:
        pairs = [part.split("=", 1) for part in text.split(",") if part.strip()]
        fractions = {name.strip(): float(fraction) for name, fraction in pairs}
    except ValueError:
        raise InputError(
            f"cannot read the prior '{text}'; write it as bll=0.5,fsrq=0.2,psr=0.3"
        ) from None
    if len(fractions) < len(pairs):
        raise InputError(f"the prior '{text}' names a class twice; give each one fraction")
    return fractions


def validate(
    old: Old,
    new: New,
    out: Out = Path("validation"),
    old_schema: OldSchema = None,
    new_schema: NewSchema = None,
    features: Features = "default",
    classes: Classes = None,
    without: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FEATURE",
            show_default="those named after variability",
            help="A feature to leave out in the second run of every model; repeatable.",
        ),
    ] = None,
    cuts: Cuts = None,
    likelihood: Likelihood = None,
    input_noise: InputNoise = None,
    n_inducing: NumInducing = None,
    error_scale: ErrorScale = None,
    fallback_radius: Annotated[
        float,
        typer.Option(metavar="DEG", help="95 % radius of a source without a position error."),
    ] = 0.1,
    seeds: Annotated[
        int,
        typer.Option(
            min=1, help="Fits of every model; scores are averages over them. The docs have 5."
        ),
    ] = 3,
    seed: Seed = 0,
) -> None:
    """Train on an old release, test on what a newer one identified.

    The models learn from OLD's labelled sources with OLD's measurements. They are examined on the
    sources that OLD leaves without a class, or with an undecided one, and NEW classifies; cuts are
    on OLD, and so is --error-scale. FOLDER then holds `report.html`, `metrics.json`, figures, and
    the probabilities of all of OLD's open sources, as they stand and with class fractions estimated
    on those sources.
    Examples:

    ```
    gpal validate 4fgl 4fgl-dr4
    gpal validate 4fgl-dr4 fl16y --class bll,fsrq
    gpal validate 4fgl fl16y --class agn=bll+fsrq+bcu+rdg --class psr
    ```
    """
    before = open_catalog(old, old_schema, features, cuts, classes, error_scale)
    after = open_catalog(new, new_schema, "default", None, classes)
    start_tensorflow()
    from gpal.classifier import GPClassifier
    from gpal.jobs.validate import validate as validate_catalogs
    from gpal.recommended import RECOMMENDED_MODEL

    model = chosen(likelihood=likelihood, input_noise=input_noise, n_inducing=n_inducing)
    result = validate_catalogs(
        before,
        after,
        out,
        classifier=GPClassifier(**{**RECOMMENDED_MODEL, **model}),
        without=None if without is None else comma_separated(without),
        fallback_radius=fallback_radius,
        n_seeds=seeds,
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
    for variant, scores in metrics["variants"].items():
        lines += ["", f"{'NLL, ' + variant:34s} {'no correction':^15s} {'mix ' + recommended:^15s}"]
        for model in metrics["models"]:
            values = [scores[c][model]["nll"] for c in ("train", recommended)]
            lines.append(
                f"{model:34s} " + "   ".join(f"{v['mean']:.3f} ± {v['se']:.3f}" for v in values)
            )
    return "\n".join([*lines, ""])


def calibrate_errors(
    old: Old,
    new: New,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE.toml", show_default="OLD-errors.toml"),
    ] = None,
    old_schema: OldSchema = None,
    new_schema: NewSchema = None,
    features: Features = "default",
    cuts: Cuts = None,
    independent: Annotated[
        bool,
        typer.Option("--independent", help="NEW was measured without the data of OLD."),
    ] = False,
    seed: Seed = 0,
) -> None:
    """Measure by how much OLD's errors are too small, from the same sources in NEW.

    NEW is taken to hold OLD's data and more, as the Fermi-LAT releases do. Cuts are on OLD, say
    "Variability_Index < 18". FILE.toml is used when asked for:
    `gpal validate OLD NEW --error-scale FILE.toml`, or
    `load_catalog(OLD, error_scale="FILE.toml")`.

    ```
    gpal catalogs calibrate-errors 4fgl 4fgl-dr4
    ```
    """
    from gpal.catalog import load_catalog
    from gpal.catalog.error_scale import calibrate, write_calibration

    names = feature_names(features)
    before = load_catalog(old, schema=old_schema, features=names, cuts=cuts)
    after = load_catalog(new, schema=new_schema, features=names)
    found = calibrate(before, after, nested=not independent, random_state=seed)
    path = out or Path(f"{before.schema.name}-errors.toml")
    write_calibration(path, found, before, after)
    typer.echo(f"{'feature':20s} {'pairs':>6s}  {'scale (95 %)':22s} small, middling, large errors")
    for name, scale in found.scale.items():
        interval = f"{scale.value:.2f} ({scale.lower:.2f} to {scale.upper:.2f})"
        by_size = ", ".join(f"{value:.2f}" for value in scale.by_size)
        typer.echo(f"{name:20s} {scale.n:6d}  {interval:22s} {by_size}")
    for (first, second), ρ in found.correlation.items():
        typer.echo(f"correlation of {first} and {second}: {ρ:+.2f}")
    typer.echo(path)
