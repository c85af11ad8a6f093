"""Lists of class probabilities as they are named on the command line.

results                                              a folder of gpal's, or a table of gpal's
smith=published.csv,name=Source_Name,bll=P_BLL,psr=P_PSR     any table: its title, its columns
smith=published.toml                                 a TOML file that names table and columns
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from gpal.errors import InputError, shown

if TYPE_CHECKING:
    from gpal.evaluation import ProbabilityList

__all__ = ["parse_list", "read_lists"]

NAME = "name"  # stands for the column with the names of sources; other words for classes


def parse_list(text: str) -> tuple[str, Path, str | None, dict[str, str] | None]:
    """Title, file, column of names and class -> column; None where not said."""
    first, *pairs = [text] if _there(text) else text.split(",")
    title, path = ("", first) if _there(first) or "=" not in first else first.split("=", 1)
    path = path.strip()
    columns: dict[str, str] = {}
    for pair in pairs:
        key, _, column = (part.strip() for part in pair.partition("="))
        if not key or not column:
            raise InputError(
                f"--list {shown(text, 300)}: '{shown(pair)}' is not of the form CLASS=COLUMN or"
                " name=COLUMN; columns with a comma or '=' are named in a TOML file, see the help"
            )
        if key in columns:
            raise InputError(f"--list {shown(text, 300)}: '{shown(key)}' is there twice")
        columns[key] = column
    if not path:
        raise InputError(f"--list {shown(text, 300)}: no file; give TITLE=FILE, or a file")
    name = columns.pop(NAME, None)
    return title.strip() or Path(path).name.split(".")[0], Path(path), name, columns or None


def read_lists(texts: Iterable[str]) -> dict[str, ProbabilityList]:
    """Title -> list."""
    from gpal.evaluation import ProbabilityList

    found: dict[str, ProbabilityList] = {}
    for text in texts:
        title, path, name, columns = parse_list(text)
        if title in found:
            raise InputError(
                f"two lists are called '{shown(title)}'; give one another title, --list TITLE=FILE"
            )
        found[title] = ProbabilityList.read(path, name, columns)
    return found


def _there(path: str) -> bool:
    try:
        return Path(path).expanduser().exists()
    except (OSError, ValueError, RuntimeError):  # too long, or no path
        return False
