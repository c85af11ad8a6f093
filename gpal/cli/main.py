"""The program `gpal`: its version, its help, and the commands found in gpal/cli/commands.

Whatever is heavy is imported inside the command that needs it, so `gpal --help` answers at once.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from gpal._version import __version__
from gpal.cli import commands
from gpal.cli.error_boundary import OneLineErrors
from gpal.cli.groups import CONTEXT, add_commands
from gpal.cli.process import prepare_process

__all__ = ["app", "main"]

app = typer.Typer(
    name="gpal",
    cls=OneLineErrors,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings=CONTEXT,
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
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of an error, for a report of it.")
    ] = False,
) -> None:
    """Classify catalog sources with their error bars.

    Start here:

    ```
    gpal catalogs             which releases gpal knows
    gpal classify 4fgl-dr4    class probabilities for every source, in results/
    gpal schema init my.csv   a schema for a table of your own, then `gpal schema check`
    gpal predict results/model.npz tonight.csv   the same for another table, nothing fitted
    gpal validate 4fgl fl16y  train on the old release, test on what the new one identified
    gpal compare 4fgl-dr4 fl16y --list results --list smith.toml --conditional
    gpal candidates psr       those of results/, as a list of a stated purity
    gpal report results       build the HTML report of that folder again
    gpal learn start 4fgl-dr4 a labelling campaign: next, label, undo, status, export
    ```

    `gpal COMMAND --help` explains a command.
    """


add_commands(app, commands)


def main() -> None:
    """The program: parse the arguments and run."""
    prepare_process()
    app(args=[with_home(argument) for argument in sys.argv[1:]])


def with_home(argument: str) -> str:
    """`--out=~/results` and a quoted "~/results", which shells leave as they are."""
    option, equals, value = argument.partition("=")
    if equals and option.startswith("--"):
        return f"{option}={with_home(value)}"
    return os.path.expanduser(argument) if argument.startswith("~") else argument
