"""Class fractions as they are written on the command line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gpal.errors import InputError

__all__ = ["of_classes", "parse_prior"]


def parse_prior(text: str) -> str | dict[str, float]:
    """`train`, `estimated`, or `bll=0.5,fsrq=0.2,psr=0.3`."""
    if "=" not in text:
        return text
    try:
        pairs = [part.split("=", 1) for part in text.split(",") if part.strip()]
        fractions = {name.strip(): float(fraction) for name, fraction in pairs}
    except ValueError:
        raise InputError(
            f"cannot read the prior '{text}'; write it as bll=0.5,fsrq=0.2,psr=0.3"
        ) from None
    if len({name.lower() for name in fractions}) < len(pairs):
        raise InputError(f"the prior '{text}' names a class twice; give each one fraction")
    return fractions


def of_classes(prior: str | Mapping[str, float], classes: Iterable[str]) -> Any:
    """The same with the names of the classes, which are typed in either case."""
    if isinstance(prior, str):
        return prior
    named = {str(name).lower(): str(name) for name in classes}
    return {named.get(name.lower(), name): fraction for name, fraction in prior.items()}
