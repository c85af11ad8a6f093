"""`gpal predict`: a table by a model of before."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gpal.cli.catalogs import show_first
from gpal.cli.class_fractions import of_classes, parse_prior
from gpal.cli.cluster import Engine, EngineName, Scheduler, cluster, refuse_cluster
from gpal.cli.options import Cuts, ErrorScale, Source
from gpal.errors import InputError
from gpal.files.output import check_apart
from gpal.tensorflow_start import start_tensorflow


def run(
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL", show_default=False, help="The model.npz that `gpal classify` wrote."
        ),
    ],
    source: Source,
    out: Annotated[
        Path,
        typer.Option("--out", "-o", metavar="FILE", help="Ends in .fits, .csv, .parquet or .vot."),
    ] = Path("predictions.fits"),
    schema: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|FILE.toml",
            help="How to read SOURCE, where its columns are not those that the model knows.",
        ),
    ] = None,
    cuts: Cuts = None,
    error_scale: ErrorScale = None,
    confidence: Annotated[
        float,
        typer.Option(help="A source whose largest probability is below this is called MIXED."),
    ] = 0.6,
    prior: Annotated[
        str | None,
        typer.Option(
            metavar="train|CLASS=FRACTION,...",
            help="Class fractions that the probabilities refer to; those of the labelled sources"
            " (train) unless the model was made with others.",
        ),
    ] = None,
    engine: Engine = EngineName.here,
    scheduler: Scheduler = None,
) -> None:
    """Give every source of a table its probabilities by a model that was fitted before.

    The table needs no classes, and no schema where its columns are called as those of the table
    that the model was fitted to; it may be larger than memory. FILE has the columns of
    `probabilities.fits` that need no labelled source. Examples:

    ```
    gpal predict results/model.npz tonight.csv --out tonight.fits
    gpal predict results/model.npz survey.parquet --out probabilities.parquet
    gpal predict results/model.npz 4fgl-dr3 --prior bll=0.5,fsrq=0.2,psr=0.25,other=0.05
    gpal predict results/model.npz survey_hats --out probabilities_hats --engine dask
    ```

    A folder in HATS layout (LSDB reads it) gives a folder in that layout, with the same partitions
    and their margins. An interrupted run goes on where it was.
    """
    start_tensorflow()
    from gpal.classifier import GPClassifier
    from gpal.jobs.hats import HatsRows, is_hats
    from gpal.jobs.prediction import NO_CLASS, predict_file

    given = None if prior is None else parse_prior(prior)
    if isinstance(given, str) and given != "train":
        raise InputError(
            f"--prior is train, or fractions such as bll=0.5,fsrq=0.2,psr=0.3; got '{given}'"
        )
    check_apart([out], [model, source, schema, error_scale])
    if isinstance(given, dict):
        given = of_classes(given, GPClassifier.load(model).classes_)
    errors = True if error_scale == "stored" else error_scale
    if is_hats(source):
        from gpal.catalog.registry import find_schema
        from gpal.jobs.hats_prediction import predict_hats

        how = None if schema is None else find_schema(schema, NO_CLASS)
        rows = HatsRows(how, cuts=cuts, error_scale=errors)
        with cluster(engine, scheduler) as client:
            counts = predict_hats(
                model, source, out, rows=rows, confidence=confidence, prior=given, client=client
            )
        typer.echo(_said(out, counts))
        return
    refuse_cluster(source, engine, scheduler)
    counts = predict_file(
        model,
        source,
        out,
        schema=schema,
        cuts=cuts,
        error_scale=errors,
        confidence=confidence,
        prior=given,
        look=show_first,
    )
    typer.echo(_said(out, counts))


def _said(out: Path, counts: dict[str, int]) -> str:
    predicted = ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))
    return f"{out}: {sum(counts.values())} sources ({predicted})"
