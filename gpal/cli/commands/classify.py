"""`gpal classify`: class probabilities for every source of a catalog."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from gpal.cli.catalogs import labels_named, show, with_classes
from gpal.cli.class_fractions import of_classes, parse_prior
from gpal.cli.cluster import Engine, EngineName, Scheduler, cluster, refuse_cluster
from gpal.cli.options import (
    MANY,
    Beside,
    CatalogOptions,
    Faint,
    ModelOptions,
    Out,
    Schema,
    Seed,
    Source,
)
from gpal.errors import InputError
from gpal.files.output import check_apart
from gpal.parallel import cores, kept_processes, threads_each
from gpal.tensorflow_start import start_tensorflow

# Sources up to which most of the time goes to fits, of which several run at a time, and not to
# predictions, which have all cores.
FITS_PREVAIL_BELOW = 100_000


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
            " sources' (beside a class `other` those that the schema knows for a class such as"
            " bcu), estimated on the candidates, or given.",
        ),
    ] = "train",
    faint: Faint = None,
    beside: Beside = None,
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
    engine: Engine = EngineName.here,
    scheduler: Scheduler = None,
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
    gpal classify 4fgl-dr4 --class bll,fsrq,psr
    gpal classify 4fgl-dr4 --open
    gpal classify mine.csv --schema mine.toml --class star,galaxy,quasar
    gpal classify survey_hats --schema mine.toml --engine dask
    ```

    Of a Fermi-LAT release `other` stands beside bll, fsrq and psr unless you name classes: every
    other class that a source may be of. Candidates are then given probabilities by a model that has
    also learned how labelled sources would look if they were as faint (--no-faint: it has not).

    Of a catalog in HATS layout the sources of known class are read into memory, and FOLDER holds
    `probabilities`, a catalog in that layout, besides. An interrupted run goes on where it was.
    """
    if verbose:
        logging.basicConfig(format="%(message)s", level=logging.WARNING)
        logging.getLogger("gpal").setLevel(logging.INFO)

    model.check()
    from gpal.jobs.hats import is_hats

    options: dict[str, Any] = {
        "n_splits": folds,
        "n_repeats": repeats,
        "confidence": confidence,
        "prior": parse_prior(prior),
        "random_state": seed,
        "jobs": jobs or cores(),
    }
    if beside:
        options["beside"] = beside
    if is_hats(source):
        if faint:
            raise InputError(
                "--faint is not for a catalog in HATS layout, whose candidates are not in memory:"
                " leave it out"
            )
        rows = reading.rows(schema)
        start_tensorflow(verbose)
        from gpal.jobs.hats_classification import HATS_OUTPUTS, classify_hats, labelled_sources

        check_apart([out / name for name in HATS_OUTPUTS], [source, schema, reading.error_scale])
        with cluster(engine, scheduler) as client:
            known = labelled_sources(source, rows, client, labels_named(reading.classes or []))
            known = with_classes(known, reading.classes) if reading.classes else known
            options["prior"] = of_classes(options["prior"], known.classes)
            show(known)
            classifier = model.classifier(random_state=seed, verbose=verbose)
            counts = classify_hats(
                known, source, out, rows, classifier=classifier, client=client, **options
            )
        typer.echo(_summary(json.loads((out / "metrics.json").read_text()), out))
        typer.echo(f"{out / 'probabilities'}: {sum(counts.values())} sources ({_counts(counts)})")
        return
    refuse_cluster(source, engine, scheduler)
    catalog = reading.open_for_all(source, schema, least=folds)
    options["prior"] = of_classes(options["prior"], catalog.classes)
    fits_prevail = len(catalog) < FITS_PREVAIL_BELOW
    with kept_processes(options["jobs"], with_tensorflow=True):
        start_tensorflow(verbose, threads_each(options["jobs"]) if fits_prevail else None)
        from gpal.jobs.classification import classify
        from gpal.jobs.result_folder import RESULT_FILES

        check_apart([out / name for name in RESULT_FILES], [source, schema, reading.error_scale])
        show(catalog)
        classifier = model.classifier(random_state=seed, verbose=verbose)
        result = classify(catalog, out, classifier=classifier, faint=faint, **options)
    typer.echo(_summary(result.metrics, result.folder))


def _summary(metrics: Mapping[str, Any], folder: Path) -> str:
    """What a person wants to know first; the report has the rest."""
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
    if metrics["n_targets"]:
        lines += [
            "",
            f"most probable new members: {_counts(members)};"
            f" {metrics['n_targets'] - sum(members.values())} stay MIXED,"
            f" below {metrics['settings']['confidence']:g} for every class",
            *_numbers(metrics["counts"]),
        ]
    return "\n".join([*lines, f"report: {folder / 'report.html'}"])


def _numbers(counts: Mapping[str, Any]) -> list[str]:
    """How many candidates are of each class, of all and by latitude."""
    level, holds = 100 * counts["confidence_level"], " and ".join(counts["holds"])
    lines = ["", f"expected numbers, {level:g} % interval of {holds}"]
    for title, part in counts["sets"].items():
        if title == "all candidates" or title.startswith("|b|"):
            found = (
                f"{of['mean']:.0f} ({of['lower']} to {of['upper']}) {name}"
                for name, of in part["classes"].items()
            )
            lines.append(f"{title:16s} {', '.join(found)}")
    return lines


def _counts(per_class: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in per_class.items())
