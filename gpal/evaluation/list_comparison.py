"""Published lists of class probabilities beside one another, on what a newer release identified.

    targets    sources that the old release left without a class, as of gpal.evaluation.prospective
    examined   those whose class the new release gives
    compared   the examined ones that every list has probabilities of

A list is a model of one seed: losses, scores, intervals and paired differences are those of
ProspectiveValidation. A probability of the true class below the floor counts as the floor, in all
lists alike. Where some are rounded it is half a unit of the last digit of the most rounded one,
0.005 for two digits: printed as 0.00, any probability below that is the same. Else it is the
smallest normal float64, as everywhere in gpal. Of classes that are equally probable the first in
the order of the alphabet counts as the most probable one; such ties are counted.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from sklearn.metrics import confusion_matrix

from gpal.catalog.catalog import Catalog
from gpal.errors import InputError, shown
from gpal.evaluation.probability_list import ProbabilityList, one_blank
from gpal.evaluation.prospective import (
    FLOOR,
    Classes,
    ProspectiveSplit,
    ProspectiveValidation,
    prospective_split,
)
from gpal.names import check_names

__all__ = ["ListComparison", "compare_lists"]

NAMED = 3  # sources that a warning names
MEANT = 1e-6  # of a row's sum: what differs from one by more was rounded
Lists = Mapping[str, ProbabilityList | str | os.PathLike]


@dataclass(frozen=True)
class ListComparison:
    """Lists of probabilities and what became of them.

    Attributes
    ----------
    validation : ProspectiveValidation
        Of the targets that every list holds; a list is a model of one seed.
    split : ProspectiveSplit
        All targets of the old release.
    lists : mapping of str to ProbabilityList
        Title -> the list as printed.
    facts : mapping of str to mapping
        Title -> how many rows it has, how many of them were matched, and so on.
    """

    validation: ProspectiveValidation
    split: ProspectiveSplit
    lists: Mapping[str, ProbabilityList]
    facts: Mapping[str, Mapping[str, Any]]

    def of_compared(self, title: str) -> np.ndarray:
        """(m, C) probabilities of the compared sources in a list."""
        return self.validation.probabilities[title][0][self.validation.split.examined]

    def confusion(self, title: str) -> np.ndarray:
        """(C, C) how many sources of each class, in rows, have which as most probable."""
        y, labels = self.validation.split.y, np.arange(len(self.validation.split.classes))
        return confusion_matrix(y, self.of_compared(title).argmax(axis=1), labels=labels)


def compare_lists(
    old: Catalog,
    new: Catalog,
    lists: Lists,
    *,
    classes: Classes | None = None,
    conditional: bool = False,
    floor: float | None = None,
    fallback_radius: float = 0.1,
    random_state: int = 0,
) -> ListComparison:
    """Put lists made for the sources of `old` to the test of what `new` identified.

    Arguments are those of gpal.jobs.comparison.compare. Raises InputError as it does, and warns of
    sources of a list that `old` has not, and of a list that was made from another release.
    """
    check_names("list", lists)
    if not lists:
        raise InputError("no list of probabilities; give one or more")
    for title in lists:
        if ":" in title:
            raise InputError(f"list '{shown(title)}': a title has no colon; call it otherwise")
    paired = [f"{one} - {other}" for one, other in combinations(lists, 2)]
    if twice := [pair for pair in paired if paired.count(pair) > 1]:
        raise InputError(
            f"two differences of lists would be called '{shown(twice[0])}'; give titles without ' -"
            " '"
        )
    if floor is not None and not 0 < floor < 0.5:
        raise InputError(f"the floor of a probability is above 0 and below 0.5, got {floor}")
    if not old.named:
        raise InputError("the old release has no names; name their column, 'id', in its schema")
    split = prospective_split(old, new, classes, fallback_radius=fallback_radius)
    groups = {name: split.targets.groups[name] for name in split.classes.tolist()}
    known = _rows_by_name(old.names)
    of_target = [one_blank(name) for name in split.targets.names]
    found, P, facts = {}, {}, {}
    for title, given in lists.items():
        with _titled(title):
            one = given if isinstance(given, ProbabilityList) else ProbabilityList.read(given)
            grouped = one.at(groups, conditional)
        row_of = {name: k for k, name in enumerate(one.names.tolist()) if not one.silent[k]}
        rows = np.array([row_of.get(name, -1) for name in of_target], dtype=int)
        absent = [name for name in one.names.tolist() if name not in known]
        _warn(title, one, old, absent)
        found[title] = one
        P[title] = np.where(rows[:, None] >= 0, grouped[rows], np.nan)
        facts[title] = {
            **_counts(one, one.members(groups, conditional)),
            "n_not_in_old": len(absent),
            "not_in_old": absent[:NAMED],
            "n_targets": int((rows >= 0).sum()),
            "n_examined": int((split.examined & (rows >= 0)).sum()),
        }
    held = np.all([~np.isnan(p).any(axis=1) for p in P.values()], axis=0)
    if not (held & split.examined).any():
        counts = ", ".join(f"'{shown(t)}' {of['n_examined']}" for t, of in facts.items())
        example = next(iter(found.values())).names[0]
        raise InputError(
            f"of the {int(split.examined.sum())} sources that the new release classified the lists"
            f" hold {counts}, and none is in all of them; names must be the same, and the first"
            f" list begins with '{shown(example)}', the old release with '{shown(old.names[0])}'"
        )
    if floor is None:
        digits = [one.decimals for one in found.values() if one.decimals is not None]
        floor = 0.5 * 10.0 ** -min(digits) if digits else float(FLOOR)
    common = replace(
        split,
        targets=split.targets[held],
        truth=split.truth[held],
        new_names=split.new_names[held],
        new_labels=split.new_labels[held],
        outcome=split.outcome[held],
    )
    probabilities = {title: p[held][None] for title, p in P.items()}
    validation = ProspectiveValidation(common, probabilities, random_state, floor)
    comparison = ListComparison(validation, split, found, facts)
    for title in found:
        compared = comparison.of_compared(title)
        of_truth = compared[np.arange(len(common.y)), common.y]
        largest = compared.max(axis=1, keepdims=True)
        facts[title]["n_below_floor"] = int((of_truth < floor).sum())
        facts[title]["n_tied"] = int(((compared == largest).sum(axis=1) > 1).sum())
    return comparison


@contextmanager
def _titled(title: str) -> Iterator[None]:
    """Errors begin with the title of the list."""
    try:
        yield
    except InputError as error:
        raise InputError(f"list '{shown(title)}', {error}") from None


def _counts(one: ProbabilityList, members: Mapping[str, list[str]]) -> dict[str, Any]:
    """Of the list alone: rows, digits, and which of its classes each group is the sum of."""
    kept = [one.classes.index(name) for inside in members.values() for name in inside]
    total = one.probabilities[:, kept].sum(axis=1)
    return {
        "n_rows": len(one.names),
        "n_without_probabilities": int(one.silent.sum()),
        "n_renormalised": int((np.abs(total - 1) > MEANT).sum()),
        "decimals": one.decimals,
        "classes": dict(members),
    }


def _rows_by_name(names: np.ndarray) -> dict[str, int]:
    """Name -> row of the old release."""
    known: dict[str, int] = {}
    for row, name in enumerate(map(one_blank, names)):
        if known.setdefault(name, row) != row:
            raise InputError(
                f"the old release has two sources called '{shown(name)}' but for white space, so"
                " that nobody knows which one a list means; call one otherwise"
            )
    return known


def _warn(title: str, one: ProbabilityList, old: Catalog, absent: list[str]) -> None:
    """Of sources that the old release has not, and of a list that is of another release."""
    release = old.schema.title or old.schema.name
    if absent:
        named = ", ".join(f"'{shown(name)}'" for name in absent[:NAMED])
        more = ", ..." if len(absent) > NAMED else ""
        warnings.warn(
            f"list '{shown(title)}': {len(absent)} of its {len(one.names)} sources are not in"
            f" {release} ({named}{more}) and are left out; names must be the same",
            stacklevel=3,
        )
    made = one.origin.get("catalog", {})
    checksum = made.get("release_sha256")
    if checksum and checksum != old.provenance.get("release_sha256"):
        called = made.get("title") or made.get("catalog") or made.get("file")
        warnings.warn(
            f"list '{shown(title)}' was made from {shown(called)}, not from {release}: a model of"
            " a later release has learned from the answers",
            stacklevel=3,
        )
