"""A result in a few lines: facts and one table, as text, and as HTML in a notebook."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

from gpal.errors import shown

__all__ = ["Summary", "counted", "estimated"]

LONGEST = 200  # characters of a fact


@dataclass(frozen=True, repr=False)
class Summary:
    """What a result is, in words that people and notebooks show.

    Parameters
    ----------
    title : str
    facts : mapping of str to str
        Name of a fact -> what it is.
    columns : sequence of str
        Headings of the table; the first column names its rows.
    rows : sequence of sequences of str

    Examples
    --------
    >>> from gpal.summary import Summary
    >>> Summary("Stars", {"sources": "3"}, ["model", "NLL"], [["GPClassifier", "0.31"]])
    Stars
      sources  3
    <BLANKLINE>
      model         NLL
      GPClassifier  0.31
    """

    title: str
    facts: Mapping[str, str] = field(default_factory=dict)
    columns: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()

    def __repr__(self) -> str:
        lines = [shown(self.title, LONGEST), *_aligned(self._facts())]
        if self.rows:
            lines += ["", *_aligned(self._table())]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        facts = "".join(
            f'<tr><th style="text-align:left">{escape(name)}</th>'
            f'<td style="text-align:left">{escape(text)}</td></tr>'
            for name, text in self._facts()
        )
        html = f"<p><b>{escape(shown(self.title, LONGEST))}</b></p><table>{facts}</table>"
        if not self.rows:
            return html
        heading, *rows = self._table()
        cells = [("th", heading), *(("td", row) for row in rows)]
        table = "".join(
            f"<tr>{''.join(f'<{kind}>{escape(text)}</{kind}>' for text in row)}</tr>"
            for kind, row in cells
        )
        return f"{html}<table>{table}</table>"

    def _facts(self) -> list[list[str]]:
        return [[name, shown(text, LONGEST)] for name, text in self.facts.items()]

    def _table(self) -> list[list[str]]:
        return [[shown(text) for text in row] for row in (self.columns, *self.rows)]


def counted(counts: Mapping[str, int]) -> str:
    """Names with how many there are of each: `bll 1,490, psr 320`."""
    return ", ".join(f"{name} {int(n):,}" for name, n in counts.items()) or "none"


def estimated(mean: Any, error: Any, decimals: int = 3) -> str:
    """`0.250 ± 0.011`, without the error where there is none."""
    text = f"{round(mean, decimals) + 0.0:.{decimals}f}"
    return text if error is None else f"{text} ± {error:.{decimals}f}"


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows)]
    return ["  " + "  ".join(t.ljust(w) for t, w in zip(row, widths)).rstrip() for row in rows]
