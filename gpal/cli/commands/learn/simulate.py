"""`gpal learn simulate`: would active learning have paid?"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from gpal.active.strategies import STRATEGIES
from gpal.cli.campaign_options import STRATEGY, RelearnEvery
from gpal.cli.options import MANY, CatalogOptions, ModelOptions, Out, Schema, Seed
from gpal.errors import InputError
from gpal.parallel import threads_each
from gpal.tensorflow_start import start_tensorflow

SPARSE = ModelOptions(n_inducing=50)


def run(
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", help="`waveform`, a known catalog, or a file.")
    ],
    out: Out = Path("study"),
    strategy: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", show_default="entropy", help=STRATEGY + " Repeatable."),
    ] = None,
    repeats: Annotated[
        int, typer.Option(min=1, max=MANY, help="New divisions of the sources.")
    ] = 20,
    queries: Annotated[int, typer.Option(min=1, max=MANY, help="Labels to ask for.")] = 100,
    queries_random: Annotated[
        int | None,
        typer.Option(min=1, max=MANY, show_default="as --queries", help="The same for random."),
    ] = None,
    initial: Annotated[
        int | None,
        typer.Option(min=2, max=MANY, show_default="100; 60 for a catalog", help="First labels."),
    ] = None,
    noise: Annotated[float, typer.Option(min=0, help="Noise variance of the waveform.")] = 0.0,
    batch: Annotated[int, typer.Option(min=1, max=MANY, help="Labels per question.")] = 1,
    test_every: Annotated[int, typer.Option(min=1, max=MANY, help="Labels between two tests.")] = 5,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, max=MANY, help="Runs at a time.")] = 1,
    seed: Seed = 0,
    model: ModelOptions = SPARSE,
    relearn_every: RelearnEvery = 20,
    schema: Schema = None,
    *,
    reading: CatalogOptions,
) -> None:
    """How fast would a strategy have learned, against random?

    All labels are known; a strategy sees one only after asking. A study that was stopped goes on
    where it was. Examples:

    ```
    gpal learn simulate waveform --strategy entropy --strategy bald --noise 0.25 -j 2
    gpal learn simulate 4fgl-dr4 --strategy margin --queries 200 --queries-random 540 --repeats 10
    ```

    The model is that of `gpal learn start`, with 50 inducing points unless told otherwise.
    """
    strategies = tuple(dict.fromkeys([*(strategy or ["entropy"]), "random"]))
    for name in strategies:
        STRATEGIES.find(name)
    settings: dict[str, Any] = {"source": source}
    catalog = None
    if source.lower() == "waveform":
        if schema or reading.given:
            raise InputError(
                "--schema, --features, --class, --cut and --error-scale are for catalogs"
            )
        settings |= {"noise": noise, "initial": initial or 100, "pool": 400, "test": 500}
    else:
        if noise:
            raise InputError("--noise is for waveform; the sources of a catalog have error bars")
        model.check()
        catalog = reading.open(source, schema)
        settings |= {"initial": initial or 60, "catalog_provenance": catalog.provenance}
    start_tensorflow(threads=threads_each(jobs))
    from gpal.active.simulate import catalog_problem, simulate, waveform_problem

    if catalog is None:
        problem: Any = partial(
            waveform_problem, noise=noise, initial=settings["initial"], random_state=seed
        )
    else:
        problem = partial(catalog_problem, catalog, initial=settings["initial"], random_state=seed)
    study = simulate(
        problem,
        model.classifier(random_state=seed),
        out,
        strategies=strategies,
        repeats=repeats,
        queries={
            s: queries_random if s == "random" and queries_random else queries for s in strategies
        },
        batch=batch,
        test_every=test_every,
        relearn_every=relearn_every,
        jobs=jobs,
        settings=settings,
        random_state=seed,
    )
    for name, result in study.summary().items():
        line = f"{name:16s} {result['n_labels']} labels: error {_pm(result['error'])}"
        if "against_random" in result:
            against = result["against_random"]
            line += (
                f"; against random at {against['compared_at']} labels {_pm(against['error'])},"
                f" area {_pm(against['error_area'])}"
            )
            if against["factor"]:
                line += f"; {against['factor']:.2f} times fewer labels"
        typer.echo(line)
    typer.echo(out / "learning_curve.png")


def _pm(value: dict[str, float | None]) -> str:
    spread = "" if value["se"] is None else f" ± {value['se']:.4f}"
    return f"{value['mean']:.4f}{spread}"
