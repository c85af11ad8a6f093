"""Where errors end: bad input leaves one line on stderr and exit code 2, Ctrl-C exit code 130."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup

from gpal.errors import InputError

__all__ = ["OneLineErrors"]


class OneLineErrors(TyperGroup):
    """Every command's InputError becomes one line on stderr and exit code 2."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except InputError as error:
            typer.echo(f"gpal: {error}", err=True)
            raise typer.Exit(2) from error
