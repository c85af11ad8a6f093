"""`gpal compare`: published lists of class probabilities, on what a newer release identified."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gpal.cli.catalogs import open_catalog, show
from gpal.cli.options import Classes, New, NewSchema, Old, OldSchema, Seed
from gpal.cli.probability_lists import parse_list, read_lists
from gpal.errors import InputError
from gpal.files.output import check_apart


def run(
    old: Old,
    new: New,
    lists: Annotated[
        list[str] | None,
        typer.Option(
            "--list",
            "-l",
            metavar="[TITLE=]FILE[,name=COLUMN,CLASS=COLUMN,...]",
            show_default=False,
            help="A list of probabilities, made for the sources of OLD: a table, a folder of"
            " results, or a TOML file that names table and columns; repeat it.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FOLDER", help="Where to write table and figures."),
    ] = None,
    old_schema: OldSchema = None,
    new_schema: NewSchema = None,
    classes: Classes = None,
    conditional: Annotated[
        bool,
        typer.Option(
            "--conditional",
            help="Divide every row by its sum, whatever it is: probabilities given that the source"
            " is of one of the classes.",
        ),
    ] = False,
    floor: Annotated[
        float | None,
        typer.Option(
            metavar="P",
            show_default="half a unit of the last digit of the most rounded list",
            help="A probability of the true class below it counts as so much, in all lists.",
        ),
    ] = None,
    fallback_radius: Annotated[
        float,
        typer.Option(metavar="DEG", help="95 % radius of a source without a position error."),
    ] = 0.1,
    seed: Seed = 0,
) -> None:
    """Score published lists of class probabilities on what a newer release identified.

    The sources are those that OLD leaves without a class, or with an undecided one, that NEW
    classifies, and that all lists hold; nothing is fitted. Sources are found by their names in OLD.
    A table of gpal's needs no columns to be named; one that has the class `other` is compared with
    --conditional. Examples:

    ```
    gpal compare 4fgl-dr4 fl16y --list results --list smith=smith.toml --conditional
    gpal compare 4fgl-dr4 fl16y -l results -l smith.csv,name=Source_Name,agn=P_AGN,psr=P_PSR \\
        --class agn=bll+fsrq --class psr
    ```

    The same columns in a TOML file, `smith.toml`:

    ```
    file = "smith.csv"
    name = "Source_Name"
    [probabilities]
    agn = "P_AGN"
    psr = "P_PSR"
    ```
    """
    if not lists:
        raise InputError("no list of probabilities; give one or more, --list FILE")
    named = [parse_list(text)[1] for text in lists]
    before = open_catalog(old, old_schema, "default", classes=classes)
    after = open_catalog(new, new_schema, "default", classes=classes)
    from gpal import jobs
    from gpal.evaluation.probability_list import files_of_list
    from gpal.jobs.result_folder import RESULT_FILES

    if out is not None:
        read = [path for one in named for path in files_of_list(one)]
        check_apart(
            [out / name for name in RESULT_FILES], [old, new, old_schema, new_schema, *read]
        )
    show(before, classes_only=True)
    show(after, classes_only=True)
    result = jobs.compare(
        before,
        after,
        read_lists(lists),
        out,
        conditional=conditional,
        floor=floor,
        fallback_radius=fallback_radius,
        random_state=seed,
    )
    typer.echo(repr(result))
    if out is not None:
        typer.echo(f"\ncomparison: {out}")
