"""One column that goes with a source to the outputs as it stands: `[carry.NAME]` of a schema."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Carried"]


@dataclass(frozen=True)
class Carried:
    """NAME is what the outputs call it.

    column  column expression, `Flux_Band[3]` for one element of an array column; "": none, where a
            release lacks what the schema that it extends carries
    label   what it is, in words
    ucd     the same in the vocabulary of the Virtual Observatory; "": as the file says
    ends    true where the text of the column ends so, in place of the text: a mark
    """

    name: str
    column: str = ""
    label: str = ""
    ucd: str = ""
    ends: str = ""
