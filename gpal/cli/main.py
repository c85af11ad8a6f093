"""The command line: `gpal catalogs`, `gpal classify`, `gpal report`. Thin: it calls the library.

Whatever is heavy is imported inside the command that needs it, so `gpal --help` answers at once.
Bad input leaves one line on stderr and exit code 2, Ctrl-C exit code 130.
"""

from __future__ import annotations

import logging
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from gpal._version import __version__
from gpal.cli import learn as cli_learn
from gpal.cli.common import (
    Classes,
    Cuts,
    ErrorScale,
    Features,
    InputNoise,
    Likelihood,
    NumInducing,
    Out,
    Schema,
    Seed,
    Source,
    chosen,
    open_catalog,
    start_tensorflow,
)
from gpal.cli.validate import calibrate_errors, parse_prior, validate
from gpal.errors import InputError

if TYPE_CHECKING:
    from gpal.jobs.classify import ClassificationResult

__all__ = ["app", "main"]


class _OneLineErrors(TyperGroup):
    """Every command's InputError becomes one line on stderr and exit code 2."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except InputError as error:
            typer.echo(f"gpal: {error}", err=True)
            raise typer.Exit(2) from error


app = typer.Typer(
    name="gpal",
    cls=_OneLineErrors,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"gpal {__version__}")
        raise typer.Exit


@app.callback()
def gpal(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Classify catalog sources with their error bars.

    Start here:

    ```
    gpal catalogs             which releases gpal knows
    gpal classify 4fgl-dr4    class probabilities for every source, in results/
    gpal validate 4fgl fl16y  train on the old release, test on what the new one identified
    gpal report results       build the HTML report of that folder again
    gpal learn start 4fgl-dr4 a labelling campaign: next, label, undo, status, export
    ```

    `gpal COMMAND --help` explains a command.
    """


catalogs_app = typer.Typer(context_settings={"help_option_names": ["-h", "--help"]})
app.add_typer(catalogs_app, name="catalogs")
catalogs_app.command("calibrate-errors")(calibrate_errors)


@catalogs_app.callback(invoke_without_command=True)
def catalogs(context: typer.Context) -> None:
    """List the releases that gpal knows.

    *Embedded*: an extract with all that `gpal classify` needs comes with gpal. *Local*: the full
    release is on this machine. Any other is fetched on first use.
    """
    if context.invoked_subcommand is not None:
        return
    from rich.console import Console
    from rich.table import Table

    from gpal.catalog import known_catalogs

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for header in ("name", "sources", "embedded", "local", "reference"):
        table.add_column(header, justify="right" if header == "sources" else "left")
    for info in known_catalogs():
        table.add_row(
            info.name,
            str(info.n_sources),
            "yes" if info.embedded else "",
            "yes" if info.cached else "",
            info.reference,
        )
    Console().print(table)


@app.command()
def classify(
    source: Source,
    out: Out = Path("results"),
    schema: Schema = None,
    features: Features = "default",
    classes: Classes = None,
    cuts: Cuts = None,
    error_scale: ErrorScale = None,
    likelihood: Likelihood = None,
    input_noise: InputNoise = None,
    inference: Annotated[
        str | None,
        typer.Option(metavar="NAME", rich_help_panel="Model", help="How the posterior is found."),
    ] = None,
    n_inducing: NumInducing = None,
    folds: Annotated[
        int, typer.Option(min=2, rich_help_panel="Validation", help="Folds of cross-validation.")
    ] = 10,
    repeats: Annotated[
        int, typer.Option(min=1, rich_help_panel="Validation", help="New divisions into folds.")
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

    catalog = open_catalog(source, schema, features, cuts, classes, error_scale)
    start_tensorflow(verbose)
    from gpal.classifier import GPClassifier
    from gpal.jobs.classify import classify as classify_catalog
    from gpal.recommended import RECOMMENDED_MODEL

    model = chosen(
        likelihood=likelihood,
        input_noise=input_noise,
        inference=inference,
        n_inducing=n_inducing,
    )
    result = classify_catalog(
        catalog,
        out,
        classifier=GPClassifier(
            **{**RECOMMENDED_MODEL, **model}, random_state=seed, verbose=verbose
        ),
        n_splits=folds,
        n_repeats=repeats,
        confidence=confidence,
        prior=parse_prior(prior),
        random_state=seed,
    )
    typer.echo(_summary(result))


app.command()(validate)
app.add_typer(cli_learn.app, name="learn")


@app.command()
def report(
    folder: Annotated[
        Path, typer.Argument(help="A folder that `gpal classify` or `gpal validate` made.")
    ] = Path("results"),
) -> None:
    """Build report.html of a result folder again, from the files in it."""
    from gpal.report import render_report

    render_report(folder)
    typer.echo(folder / "report.html")


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


def main() -> None:
    # A batch queue ends a job by SIGTERM: leave through the clean-up of half-written results.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    app()
