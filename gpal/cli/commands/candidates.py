"""`gpal candidates`: the candidates of a class, as a list of a stated purity."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def run(
    name: Annotated[str, typer.Argument(metavar="CLASS", show_default=False, help="The class.")],
    folder: Annotated[Path, typer.Argument(help="A folder that `gpal classify` made.")] = Path(
        "results"
    ),
    purity: Annotated[
        float,
        typer.Option(
            help="Fraction of the listed labelled sources, predicted out of fold, that is of the"
            " class; where their model has also learned from fainter copies, as with a class"
            " `other`, what the candidates' probabilities promise."
        ),
    ] = 0.9,
    out: Annotated[
        Path,
        typer.Option("--out", "-o", metavar="FILE", help="Ends in .csv, .fits, .parquet or .vot."),
    ] = Path("candidates.csv"),
) -> None:
    """List the candidates of a class above the threshold that a stated purity takes.

    Nothing is fitted: the threshold comes from the labelled sources in the folder, each predicted
    by a model that did not see its class. Where the candidates' model has also learned from fainter
    copies, as by default with a class `other`, it is that at which the listed candidates' mean
    probability is the purity. Examples:

    ```
    gpal candidates psr
    gpal candidates psr results --purity 0.95 --out pulsars.fits
    ```
    """
    from gpal.jobs.candidate_list import candidates

    found = candidates(folder, name, purity, out).meta["list"]
    promised = found["candidates_promised"]
    typer.echo(
        f"{found['n_candidates']} candidates with {found['threshold_on']}"
        f" ≥ {found['threshold']:.3f}"
        + (f"; their probabilities promise a purity of {promised:.2f}" if promised else "")
    )
    if "purity" in found:
        typer.echo(
            f"labelled sources above it: {found['listed']}, purity {found['purity']:.3f}"
            f" ({found['lower']:.3f} to {found['upper']:.3f}), completeness"
            f" {found['completeness']:.3f}"
        )
    else:
        typer.echo(
            "their model has also learned from fainter copies: no threshold of labelled sources"
        )
    typer.echo(out)
