"""Class fractions as they are written on the command line."""

from __future__ import annotations

from gpal.errors import InputError

__all__ = ["parse_prior"]


def parse_prior(text: str) -> str | dict[str, float]:
    """`train`, `estimated`, or `bll=0.5,fsrq=0.2,psr=0.3`, in lower case as in a result."""
    if "=" not in text:
        return text
    try:
        pairs = [part.split("=", 1) for part in text.split(",") if part.strip()]
        fractions = {name.strip().lower(): float(fraction) for name, fraction in pairs}
    except ValueError:
        raise InputError(
            f"cannot read the prior '{text}'; write it as bll=0.5,fsrq=0.2,psr=0.3"
        ) from None
    if len(fractions) < len(pairs):
        raise InputError(f"the prior '{text}' names a class twice; give each one fraction")
    return fractions
