"""The tree of commands, walked: a module is a command, a package a group of them.

    commands/classify.py                    gpal classify
    commands/learn/next.py                  gpal learn next
    commands/catalogs/__init__.py           gpal catalogs, where the package has a `run` of its own
    commands/catalogs/calibrate_errors.py   gpal catalogs calibrate-errors

A parameter of `run` whose type is a dataclass of options stands for its fields, each an option, so
that several commands declare them once; its default, where it has one, gives theirs.
"""

from __future__ import annotations

import functools
import inspect
import pkgutil
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from importlib import import_module
from types import ModuleType
from typing import Any, get_type_hints

import typer

__all__ = ["add_commands", "with_option_groups"]

KEYWORD = inspect.Parameter.KEYWORD_ONLY
CONTEXT = {"help_option_names": ["-h", "--help"]}


def add_commands(app: typer.Typer, package: ModuleType) -> None:
    """Every command of `package`; those that its ORDER names come first, in that order."""
    order = getattr(package, "ORDER", ())
    modules = {info.name: info for info in pkgutil.iter_modules(package.__path__)}
    for stem in sorted(modules, key=lambda s: (order.index(s) if s in order else len(order), s)):
        module = import_module(f"{package.__name__}.{stem}")
        name = stem.replace("_", "-")
        if not modules[stem].ispkg:
            app.command(name)(with_option_groups(module.run))
            continue
        alone = hasattr(module, "run")
        group = typer.Typer(
            help=module.run.__doc__ if alone else module.__doc__,
            no_args_is_help=not alone,
            rich_markup_mode="markdown",
            context_settings=CONTEXT,
        )
        if alone:
            group.callback(invoke_without_command=True)(_unless_subcommand(module.run))
        add_commands(group, module)
        app.add_typer(group, name=name)


def _unless_subcommand(run: Callable[[], None]) -> Callable[[typer.Context], None]:
    def callback(context: typer.Context) -> None:
        if context.invoked_subcommand is None:
            run()

    callback.__doc__ = run.__doc__
    return callback


def with_option_groups(run: Callable[..., None]) -> Callable[..., None]:
    """`run` with the fields of its dataclasses as parameters."""
    hints = get_type_hints(run, include_extras=True)
    groups: dict[str, type] = {}
    parameters = []
    for parameter in inspect.signature(run).parameters.values():
        kind = hints[parameter.name]
        if not (isinstance(kind, type) and is_dataclass(kind)):
            parameters.append(parameter.replace(annotation=kind, kind=KEYWORD))
            continue
        defaults = kind() if parameter.default is parameter.empty else parameter.default
        groups[parameter.name] = kind
        of_field = get_type_hints(kind, include_extras=True)
        parameters += [
            inspect.Parameter(
                field.name,
                KEYWORD,
                default=getattr(defaults, field.name),
                annotation=of_field[field.name],
            )
            for field in fields(kind)
        ]

    @functools.wraps(run)
    def command(**options: Any) -> None:
        for name, kind in groups.items():
            options[name] = kind(**{field.name: options.pop(field.name) for field in fields(kind)})
        run(**options)

    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return command
