"""`gpal compare OLD NEW`: published class probabilities, on what a newer release identified.

1. the targets of the old release that the new one classifies, as `gpal validate` has them;
2. the lists are read, matched by name, and brought to the classes that all of them have;
3. every list is scored on the sources that all hold, and in pairs with every other one;
4. with a folder, table, metrics and figures are written, all or nothing.
"""

from __future__ import annotations

import os
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from astropy.table import Table

from gpal import plot
from gpal.catalog import Catalog
from gpal.evaluation.list_comparison import ListComparison, Lists, compare_lists
from gpal.evaluation.probability_list import files_of_list
from gpal.evaluation.prospective import Classes
from gpal.files.output import check_apart, staged_folder
from gpal.jobs.comparison_metrics import comparison_metrics, summaries
from gpal.jobs.probability_catalogue import add_column, write_table
from gpal.jobs.result_folder import RESULT_FILES, refuse_survey
from gpal.names import (
    LONGEST,
    check_classes,
    check_file_name,
    check_seed,
    check_words,
    probability_column,
)
from gpal.plot.style import drawn, new_figure, styled
from gpal.provenance import provenance, to_json
from gpal.summary import Summary

__all__ = ["ComparisonResult", "compare"]

TABLE = "comparison.csv"


@dataclass(frozen=True, repr=False)
class ComparisonResult:
    """What `compare` found.

    Attributes
    ----------
    folder : Path, optional
        Where it was written.
    table : Table
        One row per compared source.
    metrics : dict
        The content of metrics.json.
    comparison : ListComparison
        The lists, and their probabilities of the targets that all of them hold.
    """

    folder: Path | None
    table: Table
    metrics: dict[str, Any]
    comparison: ListComparison

    def summary(self) -> Summary:
        """What was compared, and the scores of every list, mean ± standard error.

        Returns
        -------
        Summary
        """
        return summaries(self.metrics)[0]

    def __repr__(self) -> str:
        return "\n\n".join(map(repr, summaries(self.metrics)))

    def _repr_html_(self) -> str:
        return "".join(each._repr_html_() for each in summaries(self.metrics))


def compare(
    old: Catalog,
    new: Catalog,
    lists: Lists,
    out: str | os.PathLike | None = None,
    *,
    classes: Classes | None = None,
    conditional: bool = False,
    floor: float | None = None,
    fallback_radius: float = 0.1,
    random_state: int = 0,
) -> ComparisonResult:
    """Score lists of class probabilities on what a newer release identified, and write a folder.

    The sources are those of `old` without a class, or with an undecided one, that `new` classifies
    and that every list holds. Names are compared, white space aside. Files: comparison.csv,
    metrics.json and figures.

    Parameters
    ----------
    old, new : Catalog
        The release that the lists were made for, and a newer one.
    lists : mapping of str to path or ProbabilityList
        Title -> a table, a folder of gpal's results, a TOML file that names columns, or what
        `gpal.evaluation.ProbabilityList` made of one.
    out : str or path, optional
        The folder; None: nothing is written.
    classes : iterable of str, or mapping of str to iterables of str, optional
        As in Catalog.with_classes, for both releases; None: their current groups. Probabilities
        of a group are sums over the classes in it that a list has.
    conditional : bool
        Divide every row by its sum, whatever it is, and leave out classes of a list that are not
        compared: probabilities given that the source is of one of the classes.
    floor : float, optional
        A probability of the true class below it counts as so much; None: half a unit of the last
        digit of the list that is rounded most, the smallest number if none is rounded.
    fallback_radius : float
        Degrees, the 95 % radius of a source without a position error.
    random_state : int
        Seed of the bootstrap.

    Returns
    -------
    ComparisonResult

    Raises
    ------
    InputError
        On a folder that cannot be written to, a list that cannot be read, that has a source twice,
        numbers that are no probabilities, rows that do not sum to one as far as rounding allows,
        or other classes, and where no source is in all lists.

    Warns
    -----
    UserWarning
        Of sources of a list that the old release has not, and of a folder of results that was made
        from another release.

    Examples
    --------
    >>> import gpal
    >>> from gpal.evaluation import ProbabilityList
    >>> old, new = (gpal.load_catalog(name, features=["index"]) for name in ("4fgl-dr4", "fl16y"))
    >>> names = old.unlabelled().names
    >>> guess = ProbabilityList(names, ["bll", "fsrq", "psr"], [[0.8, 0.1, 0.1]] * len(names))
    >>> result = gpal.compare(old, new, {"always the same": guess})
    >>> round(result.metrics["scores"]["always the same"]["error"]["mean"], 3)
    0.133
    """
    check_seed(random_state)
    if out is not None:
        check_file_name(out)
        refuse_survey(out)
        outputs = [Path(out) / name for name in RESULT_FILES]
        check_apart(outputs, [path for one in lists.values() for path in files_of_list(one)])
    with nullcontext() if out is None else staged_folder(out, RESULT_FILES) as folder:
        comparison = compare_lists(
            old,
            new,
            lists,
            classes=classes,
            conditional=conditional,
            floor=floor,
            fallback_radius=fallback_radius,
            random_state=random_state,
        )
        split = comparison.validation.split
        check_classes(split.classes.tolist())
        check_words("source name", old.names)
        check_words("source name in the new release", new.names)
        check_words("class in the old release", split.origin)
        settings = {
            "classes": split.classes.tolist(),
            "groups": {name: split.targets.groups[name] for name in split.classes.tolist()},
            "conditional": conditional,
            "floor": comparison.validation.floor,
            "fallback_radius": fallback_radius,
        }
        origin = provenance(old.provenance, settings, random_state)
        origin["new_catalog"] = new.provenance
        origin["lists"] = {title: dict(one.origin) for title, one in comparison.lists.items()}
        table = _table(comparison)
        metrics = comparison_metrics(comparison, settings, origin)
        if folder is not None:
            write_table(table, folder / TABLE, origin)
            (folder / "metrics.json").write_text(to_json(metrics, indent=1) + "\n")
            _write_figures(comparison, metrics, folder)
    return ComparisonResult(None if out is None else Path(out), table, metrics, comparison)


def _table(comparison: ListComparison) -> Table:
    """One row per compared source, in the order of the old release."""
    split = comparison.validation.split
    rows = split.examined
    table = Table()
    for name, values, description, unit, ucd in (
        ("name", split.targets.names, "source name in the old release", None, "meta.id;meta.main"),
        ("ra", split.targets.ra, "right ascension, J2000", "deg", "pos.eq.ra;meta.main"),
        ("dec", split.targets.dec, "declination, J2000", "deg", "pos.eq.dec;meta.main"),
        ("origin", split.origin, "what the old release called it", None, "src.class"),
        ("new_name", split.new_names, "source name in the new release", None, "meta.id"),
        ("new_class", split.truth, "class in the new release", None, "src.class"),
    ):
        kind = float if unit else str
        add_column(table, name, np.asarray(values[rows], kind), description, unit, ucd)
    for title in comparison.lists:
        P = comparison.of_compared(title)
        for c, name in enumerate(split.classes.tolist()):
            described = f"probability of {name} in the list {title}"
            heading = f"{title}:{probability_column(name)}"
            add_column(table, heading, P[:, c], described, None, "stat.probability")
    return table


def _write_figures(comparison: ListComparison, metrics: dict[str, Any], folder: Path) -> None:
    whose = {
        title: {"n_examined": metrics["n_compared"], "reliability": curves}
        for title, curves in metrics["reliability"].items()
    }
    scores = {drawn(title, LONGEST): of for title, of in metrics["scores"].items()}
    made = {
        "scores.png": plot.scores({"compared sources": {"each list": scores}}),
        "reliability.png": plot.reliability_by_origin(whose, metrics["settings"]["classes"]),
        "confusion_matrix.png": _confusions(comparison),
    }
    for name, axes in made.items():
        plot.save(axes, folder / name, metrics["provenance"])


def _confusions(comparison: ListComparison) -> Any:
    """A confusion matrix per list, side by side."""
    split, titles = comparison.validation.split, list(comparison.lists)
    classes = split.classes.tolist()
    size = len(classes)
    with styled():
        figure = new_figure(len(titles) * (3.2 + 1.1 * size), 2.8 + 0.95 * size)
        axes = figure.subplots(1, len(titles), squeeze=False).ravel()
    for ax, title in zip(axes, titles, strict=True):
        plot.confusion_matrix(split.y, comparison.of_compared(title), classes, ax=ax)
        ax.set_title(drawn(title))
    return axes
