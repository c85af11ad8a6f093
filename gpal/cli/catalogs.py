"""The catalog that a command's options name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from gpal.errors import InputError

if TYPE_CHECKING:
    from gpal.catalog import Catalog

__all__ = [
    "comma_separated",
    "feature_names",
    "labels_named",
    "open_catalog",
    "show",
    "show_first",
    "with_classes",
]


def comma_separated(values: list[str]) -> list[str]:
    """`--class bll,fsrq --class psr` as three names."""
    return [name.strip() for value in values for name in value.split(",") if name.strip()]


def feature_names(text: str) -> str | list[str]:
    """A feature set's name, or a comma list of features."""
    return comma_separated([text]) if "," in text else text


def open_catalog(
    source: str,
    schema: str | None,
    features: str | Sequence[str],
    cuts: str | list[str] | None = None,
    classes: list[str] | None = None,
    error_scale: str | None = None,
    exhaustive: bool = False,
) -> Catalog:
    """The catalog that a command's options name."""
    from gpal.catalog import load_catalog

    if exhaustive and classes:
        raise InputError("--open and --class both say which classes to tell apart; give one")
    catalog = load_catalog(
        source,
        schema=schema,
        features=feature_names(features) if isinstance(features, str) else features,
        cuts=cuts,
        error_scale=True if error_scale == "stored" else error_scale,
    )
    if exhaustive:
        return catalog.with_exhaustive_classes()
    return with_classes(catalog, classes) if classes else catalog


def labels_named(options: list[str]) -> set[str]:
    """The classes, or groups of a schema, that `--class` names."""
    return {
        label.strip()
        for name in comma_separated(options)
        for label in name.rpartition("=")[2].split("+")
    }


def show(catalog: Catalog, classes_only: bool = False) -> None:
    """What was read, in a few lines, before anything is fitted to it."""
    from gpal.catalog.looking import inspect_catalog

    found = inspect_catalog(catalog)
    typer.echo((found.headline() if classes_only else found.short()) + "\n")


def show_first(catalog: Catalog, rows: int | None) -> None:
    """As `show`, of the sources of a table's first block; `rows` are all of the table, if known."""
    from gpal.catalog.streaming import READ

    if rows is None and (len(catalog) >= READ or catalog.provenance.get("cuts")):
        typer.echo(f"The first {len(catalog)} sources that are read:")
    elif rows is not None and rows > READ:
        typer.echo(f"The first {len(catalog)} sources that are read, of {rows} rows in all:")
    show(catalog)


def with_classes(catalog: Catalog, options: list[str]) -> Catalog:
    """`psr` as the schema of `catalog` groups it; `agn=bll+fsrq+bcu` as a group of its own."""
    names = comma_separated(options)
    own: dict[str, tuple[str, ...]] = {}
    asked = [name.partition("=")[0].strip() for name in names]
    for name, group in zip(names, asked, strict=True):
        _, of, members = name.partition("=")
        labels = tuple(member.strip() for member in members.split("+") if member.strip())
        if of and (not group or not labels or asked.count(group) > 1):
            raise InputError(
                f"--class {name}: write a new group with its classes, e.g. agn=bll+fsrq"
            )
        if of:
            own[group] = labels
    # The new ones first: what `other` has left over depends on them.
    return (catalog.with_classes(own) if own else catalog).with_classes(asked)
