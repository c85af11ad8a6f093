"""A list of class probabilities that somebody published, as it was printed.

    names   n sources, each once; white space within a name is one blank
    P       (n, C) as printed: between 0 and 1; a row without any number is no statement
    Σ_c P   one, as far as rounding allows: to C half units of the last digit, at least 0.001

Probabilities of coarser classes are sums, p(agn) = p(bll) + p(fsrq). Every row is then divided by
its sum, which undoes the rounding; with `conditional` so is one of any other sum, which makes
probabilities *given* that the source is of one of the classes.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gpal.catalog.columns import numbers, split, text
from gpal.catalog.readers import read_table
from gpal.catalog.release_files import sha256
from gpal.catalog.schema import read_toml
from gpal.errors import InputError, shown
from gpal.files.json import read_json
from gpal.metrics import Level
from gpal.names import KINDS, probability_column
from gpal.plain_values import identifiers, plain, refuse_other_columns

if TYPE_CHECKING:
    from astropy.table import Table

__all__ = ["ProbabilityList", "files_of_list", "one_blank"]

TABLE = "probabilities.csv"  # in a folder of results
SAME = 12  # digits after the point that two equal probabilities have in common
DIGITS = (2, 3, 4, 5, 6)  # after the point; a list of fewer is taken for one of two
ROUNDING = 1e-3  # of a row's sum, whatever the digits
KEYS = {"file": str, "name": str, "probabilities": dict}  # of a TOML file
REMEDY = "say which columns are meant: name=COLUMN, and CLASS=COLUMN for every class"


def one_blank(name: str) -> str:
    """A name with single blanks for its white space."""
    return " ".join(str(name).split())


@dataclass(frozen=True, eq=False)
class ProbabilityList:
    """Class probabilities of n sources.

    Parameters
    ----------
    names : sequence of n str
        Source names.
    classes : sequence of C str
        In the order of the columns of `probabilities`.
    probabilities : array (n, C)
        As printed; NaN all along a row of which the list says nothing.
    origin : mapping, optional
        Where they are from: file, checksum, columns.

    Raises
    ------
    InputError
        On a name that is there twice, a class that is, a row of which only a part is known, and a
        number that is no probability.

    Examples
    --------
    >>> from gpal.evaluation import ProbabilityList
    >>> published = ProbabilityList(["A 1", "A 2"], ["bll", "fsrq", "psr"], [[0.6, 0.3, 0.1]] * 2)
    >>> published.at({"agn": ["bll", "fsrq"], "psr": ["psr", "msp"]}).round(3).tolist()
    [[0.9, 0.1], [0.9, 0.1]]
    """

    names: np.ndarray
    classes: tuple[str, ...]
    probabilities: np.ndarray
    origin: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        names = np.array([one_blank(name) for name in identifiers(self.names, "name")], dtype=str)
        classes = tuple(map(str, self.classes))
        ours = [probability_column(name) for name in classes]
        named = ours if set(ours) <= set(getattr(self.probabilities, "columns", ())) else classes
        refuse_other_columns("probabilities", self.probabilities, named, "classes")
        P = np.asarray(plain("probabilities", self.probabilities), dtype=float)
        for key, value in (("names", names), ("probabilities", P), ("classes", classes)):
            object.__setattr__(self, key, value)
        if P.shape != (len(names), len(classes)) or not P.size:
            raise InputError(
                f"{len(names)} names, {len(classes)} classes and probabilities of shape {P.shape}:"
                " give one row per source and one column per class"
            )
        if len({name.casefold() for name in classes}) < len(classes):
            raise InputError(f"a class is there twice in {shown(', '.join(classes), 200)}")
        _check_names(names)
        self._refuse(np.isnan(P) & ~self.silent[:, None], "is missing beside others; give it")
        self._refuse((P < 0) | (P > 1), "is no probability; these are from 0 to 1")
        if self.silent.all():
            raise InputError("no row holds a probability; name the columns that do")

    def __repr__(self) -> str:
        return f"<ProbabilityList: {len(self.names)} sources; {', '.join(self.classes)}>"

    @classmethod
    def read(
        cls,
        path: str | os.PathLike,
        name: str | None = None,
        probabilities: Mapping[str, str] | None = None,
    ) -> ProbabilityList:
        """The list in a table of any format that gpal reads, or in a folder of gpal's results.

        A TOML file may say which columns are what, `file` being looked for beside it:

            file = "published.csv"
            name = "Source_Name"
            [probabilities]
            bll = "P_BLL"
            psr = "P_PSR"

        Parameters
        ----------
        path : str or path
            A table, such a TOML file, or a folder that `gpal classify` or `gpal validate` made.
        name : str, optional
            Column with the names of sources; `name`, as in gpal's own tables.
        probabilities : mapping of str to str, optional
            Class -> column, or element of one such as `P[0]`; else what `p_CLASS` is the column
            of, as in gpal's own tables.

        Returns
        -------
        ProbabilityList

        Raises
        ------
        InputError
            On what cannot be read, and what is no list of probabilities.
        """
        path = _place(path)
        if path.suffix.lower() == ".toml" and not path.is_dir():
            if name is not None or probabilities is not None:
                raise InputError(f"'{shown(path, 300)}' names the columns itself; give no others")
            path, name, probabilities = _described(path)
        made: dict[str, Any] = {}
        if path.is_dir():
            made = _metrics(path / "metrics.json")
            if made.get("kind") == "comparison":
                raise InputError(
                    f"the folder '{shown(path, 300)}' holds a comparison of lists; give the list"
                )
            path = path / TABLE
        name = "name" if name is None else name
        try:
            table = read_table(path, words=(name,))
            for column in (name, *(probabilities or {}).values()):
                _check_column(table, column)
            if probabilities is None:
                probabilities = _own_columns(table.colnames)
            _refuse_twice([name, *probabilities.values()])
            columns = [numbers(table, column) for column in probabilities.values()]
            origin = {
                "file": path.name,
                "folder": path.parent.name if made else "",
                "sha256": sha256(path),
                "columns": {"name": name, **probabilities},
                "catalog": made.get("provenance", {}).get("catalog", {}),
            }
            P = np.column_stack(columns)
            return cls(text(table, name), tuple(probabilities), P, origin)
        except InputError as error:
            raise InputError(f"{shown(path.name, 200)}: {error}") from None

    @property
    def silent(self) -> np.ndarray:
        """(n,) bool: rows without any probability."""
        return np.isnan(self.probabilities).all(axis=1)

    @property
    def decimals(self) -> int | None:
        """Digits after the point that all probabilities are rounded to, at least 2; None where
        there are more than 6."""
        P = self.probabilities[~self.silent]
        single = P.astype(np.float32)
        for digits in DIGITS:
            rounded = P.round(digits)
            if np.abs(P - rounded).max() < 1e-3 * 10.0**-digits:
                return digits
            # A column in single precision holds what is nearest to the decimal there.
            if np.array_equal(single, P) and np.array_equal(single, rounded.astype(np.float32)):
                return digits
        return None

    def members(
        self, groups: Mapping[str, Sequence[str]], conditional: bool = False
    ) -> dict[str, list[str]]:
        """Which classes of the list each group is the sum of.

        Parameters
        ----------
        groups : mapping of str to sequences of str
            Group -> catalog classes. A class of the list is of the group that is called so, else
            of the one that it is in.
        conditional : bool
            Leave out classes of the list that are in no group.

        Returns
        -------
        dict of str to list of str

        Raises
        ------
        InputError
            For a group that the list has nothing of, a class that is in none, and a group that the
            list has as a whole and in parts.
        """
        found: dict[str, list[str]] = {group: [] for group in groups}
        of = {label.casefold(): group for group, labels in groups.items() for label in labels}
        of |= {group.casefold(): group for group in groups}
        told = f"it tells apart {shown(', '.join(self.classes), 200)}"
        compared = shown(", ".join(groups), 200)
        for name in self.classes:
            if name.casefold() in of:
                found[of[name.casefold()]].append(name)
            elif not conditional:
                raise InputError(
                    f"{told}, and '{shown(name)}' is in none of {compared}; compare classes that"
                    " every list has, such as --class agn=bll+fsrq, or give --conditional, which"
                    " takes probabilities given that the source is of one of those"
                )
        for group, inside in found.items():
            whole = [name for name in inside if name.casefold() == group.casefold()]
            parts = [name for name in inside if name not in whole]
            own = group.casefold() in {label.casefold() for label in groups[group]}
            if whole and parts and not own:
                raise InputError(
                    f"{told}, '{shown(whole[0])}' and classes that are in it,"
                    f" {shown(', '.join(parts), 100)}, which would count twice; give the columns of"
                    " one of the two"
                )
            if not inside:
                raise InputError(
                    f"{told}, nothing of '{shown(group)}'; compare classes that every list has,"
                    " such as --class agn=bll+fsrq"
                )
        return found

    def at(self, groups: Mapping[str, Sequence[str]], conditional: bool = False) -> np.ndarray:
        """Probabilities of groups of classes, every row divided by its sum.

        Parameters
        ----------
        groups : mapping of str to sequences of str
            K groups, see `members`.
        conditional : bool
            Probabilities given that the source is in one of the groups, whatever the sums.

        Returns
        -------
        array (n, K)
            NaN in rows without any probability.

        Raises
        ------
        InputError
            As of `members`, and for a row whose sum is not one, or is zero.
        """
        members = self.members(groups, conditional)
        kept = [name for inside in members.values() for name in inside]
        columns = self.probabilities[:, [self.classes.index(name) for name in kept]]
        P = Level.of(kept, members).sums(columns)
        total = P.sum(axis=1)
        wrong = ~self.silent & (total <= 0 if conditional else np.abs(total - 1) > self.tolerance)
        if wrong.any():
            row = int(wrong.argmax())
            remedy = (
                "leave the row out"
                if conditional
                else "give the columns of all its classes, or --conditional to divide by the sum"
            )
            raise InputError(
                f"row {row} ('{shown(self.names[row])}'): the probabilities of"
                f" {shown(', '.join(kept), 200)} sum to {total[row]:g}, not to one; {remedy}"
            )
        P = P / np.where(self.silent, 1.0, total)[:, None]
        # What is printed alike is alike: sums of decimals differ by rounding.
        return P if self.decimals is None else np.round(P, SAME)

    @property
    def tolerance(self) -> float:
        """How far from one a sum of rounded probabilities can be."""
        half = 0.5 * 10.0 ** -(self.decimals or DIGITS[-1])
        return max(ROUNDING, len(self.classes) * half) * (1 + 1e-9)

    def _refuse(self, wrong: np.ndarray, why: str) -> None:
        if wrong.any():
            row, c = (int(k[0]) for k in np.nonzero(wrong))
            name, value = shown(self.names[row]), self.probabilities[row, c]
            where = self.origin.get("columns", {}).get(self.classes[c], self.classes[c])
            stated = "" if np.isnan(value) else f" {value:g}"
            raise InputError(
                f"row {row} ('{name}'), column '{shown(where)}': the probability{stated} {why}"
            )


def _check_names(names: np.ndarray) -> None:
    first: dict[str, int] = {}
    for row, name in enumerate(names.tolist()):
        if not name:
            raise InputError(f"row {row} has no name; give it, or leave the row out")
        if (before := first.setdefault(name, row)) != row:
            raise InputError(
                f"'{shown(name)}' is there twice, in rows {before} and {row}; keep one of them"
            )


def _check_column(table: Table, column: str) -> None:
    try:
        split(table, column)
    except InputError:
        raise InputError(
            f"no column '{shown(column)}'; {REMEDY}. There are:"
            f" {shown(', '.join(table.colnames), 400)}"
        ) from None


def _own_columns(names: Sequence[str]) -> dict[str, str]:
    """Class -> its column p_CLASS, without those that belong to another such column."""
    prefix = probability_column("")
    found = {name.removeprefix(prefix): name for name in names if name.startswith(prefix)}
    kinds = {f"{name}{kind}" for name in found for kind in KINDS if kind}
    found = {name: column for name, column in found.items() if name not in kinds}
    if not found:
        raise InputError(
            f"no column {prefix}CLASS, as gpal calls them; {REMEDY}. There are:"
            f" {shown(', '.join(names), 400)}"
        )
    return found


def _described(path: Path) -> tuple[Path, str | None, dict[str, str] | None]:
    """What a TOML file says: the table, its column of names, class -> column."""
    said = read_toml(path)
    for key, value in said.items():
        if key not in KEYS or not isinstance(value, KEYS[key]):
            raise InputError(
                f"'{shown(path, 300)}': '{shown(key)}' is not one of file, name (texts) and"
                " probabilities (a table of texts)"
            )
    columns = said.get("probabilities")
    if "file" not in said or not all(isinstance(c, str) for c in (columns or {}).values()):
        raise InputError(
            f"'{shown(path, 300)}' needs file = \"TABLE\", and in [probabilities] lines such as"
            ' psr = "COLUMN"'
        )
    return path.parent / _place(said["file"]), said.get("name"), columns


def _refuse_twice(columns: list[str]) -> None:
    """InputError for a column that is named for two things."""
    for column in columns:
        if columns.count(column) > 1:
            raise InputError(
                f"column '{shown(column)}' is named twice, and its numbers would count twice; give"
                " each class, and the names, a column of its own"
            )


def _place(path: str | os.PathLike) -> Path:
    try:
        return Path(path).expanduser()
    except RuntimeError as error:  # no such user
        raise InputError(f"no file '{shown(path, 300)}'; check the path") from error


def files_of_list(given: Any) -> list[Path]:
    """The files that a list is read from, given as a path; none of one that is in memory."""
    if not isinstance(given, str | os.PathLike):
        return []
    path = _place(given)
    if path.suffix.lower() == ".toml" and path.is_file():
        return [path, *files_of_list(_described(path)[0])]
    return [path, path / "metrics.json", path / TABLE] if path.is_dir() else [path]


def _metrics(path: Path) -> dict[str, Any]:
    """What a folder of results says of itself."""
    try:
        return read_json(path)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"cannot read '{shown(path, 300)}': {shown(error, 200)}") from error
