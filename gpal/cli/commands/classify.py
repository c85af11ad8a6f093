"""`gpal classify`: class probabilities for every source of a catalog."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gpal.cli.catalogs import show
from gpal.cli.class_fractions import parse_prior
from gpal.cli.options import MANY, CatalogOptions, ModelOptions, Out, Schema, Seed, Source
from gpal.files.output import check_apart
from gpal.parallel import cores
from gpal.tensorflow_start import start_tensorflow

if TYPE_CHECKING:
    from gpal.jobs.classification import ClassificationResult


def run(
    source: Source,
    out: Out = Path("results"),
    schema: Schema = None,
    *,
    reading: CatalogOptions,
    model: ModelOptions,
    folds: Annotated[
        int,
        typer.Option(
            min=2, max=MANY, rich_help_panel="Validation", help="Folds of cross-validation."
        ),
    ] = 10,
    repeats: Annotated[
        int,
        typer.Option(
            min=1, max=MANY, rich_help_panel="Validation", help="New divisions into folds."
        ),
    ] = 1,
    confidence: Annotated[
        float,
        typer.Option(
            rich_help_panel="Validation",
            help="A source whose largest probability is below this is called MIXED.",
        ),
    ] = 0.6,
    prior: Annotated[
        str,
        typer.Option(
            metavar="train|estimated|CLASS=FRACTION,...",
            help="Class fractions that the candidates' probabilities refer to: the labelled"
            " sources', estimated on the candidates, or given.",
        ),
    ] = "train",
    seed: Seed = 0,
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs",
            "-j",
            min=1,
            max=MANY,
            show_default="one per core",
            help="Fits of the cross-validation at a time, .7 GB each; the numbers are the same.",
        ),
    ] = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Show what is read and how the fit goes.")
    ] = False,
) -> None:
    """Give every source of a catalog a probability for each class.

    Sources of known class train the model and are predicted by cross-validation, so that no
    probability in the table saw its own label. FOLDER then holds `probabilities.fits` and `.csv`,
    `metrics.json`, the figures, the model and `report.html`. Examples:

    ```
    gpal classify 4fgl-dr4
    gpal classify path/to/gll_psc_v35.fit --out dr4-full
    gpal classify 4fgl --features paper --cut "Signif_Avg > 30"
    gpal classify 4fgl-dr4 --class agn=bll+fsrq --class psr --error-scale stored
    gpal classify mine.csv --schema mine.toml --class star,galaxy,quasar
    ```
    """
    if verbose:
        logging.basicConfig(format="%(message)s", level=logging.WARNING)
        logging.getLogger("gpal").setLevel(logging.INFO)

    model.check()
    catalog = reading.open(source, schema)
    start_tensorflow(verbose)
    from gpal.jobs.classification import OUTPUTS, classify

    check_apart([out / name for name in OUTPUTS], [source, schema, reading.error_scale])
    show(catalog)
    result = classify(
        catalog,
        out,
        classifier=model.classifier(random_state=seed, verbose=verbose),
        n_splits=folds,
        n_repeats=repeats,
        confidence=confidence,
        prior=parse_prior(prior),
        random_state=seed,
        jobs=jobs or cores(),
    )
    typer.echo(_summary(result))


def _summary(result: ClassificationResult) -> str:
    """What a person wants to know first; the report has the rest."""
    metrics = result.metrics
    members = {
        name: metrics["n_targets_per_prediction"].get(name, 0)
        for name in metrics["settings"]["classes"]
    }
    lines = [
        f"{metrics['n_labelled']} labelled sources"
        f" ({_counts(metrics['n_labelled_per_class'])}), {metrics['n_targets']} to classify",
        "",
        f"{'cross-validation':30s} {'NLL':^15s} {'error':^15s}",
    ]
    for model in metrics["models"]:
        nll, error = metrics[model]["nll"], metrics[model]["error"]
        lines.append(
            f"{model:30s} {nll['mean']:.3f} ± {nll['se']:.3f}   "
            f"{error['mean']:.3f} ± {error['se']:.3f}"
        )
    return "\n".join(
        [
            *lines,
            "",
            f"most probable new members: {_counts(members)};"
            f" {metrics['n_targets'] - sum(members.values())} stay MIXED,"
            f" below {metrics['settings']['confidence']:g} for every class",
            f"report: {result.folder / 'report.html'}",
        ]
    )


def _counts(per_class: dict[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in per_class.items())
