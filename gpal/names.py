"""What a user names, checked before the first fit: classes, features, sources, files, the seed.

A name ends in column headings, cells, figures, pages and region files. One that could not be
written there, or not be told from another, is refused before anything is computed:

    names of classes and features   printable, at most 64 characters, distinct without regard to
                                    case; a class is not called MIXED, and the columns made from the
                                    classes differ from one another and fit into a FITS header
    names of carried columns        as these, and none that a table of gpal has already
    names of sources                printable, at most 200 characters
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from gpal.errors import InputError, shown
from gpal.files.fits import fits_text

__all__ = [
    "KINDS",
    "LONGEST",
    "LONGEST_WORD",
    "MIXED",
    "check_classes",
    "check_file_name",
    "check_names",
    "check_output_columns",
    "check_run",
    "check_seed",
    "check_words",
    "probability_column",
]

MIXED = "MIXED"  # in place of a class: no class is probable enough
LONGEST = 64  # characters of the name of a class or a feature
LONGEST_WORD = 200  # characters of the name of a source, or of a class as the catalog prints it
LONGEST_HEADING = 68  # characters of a column's name in a FITS header
LARGEST_SEED = 2**32 - 1  # that NumPy and scikit-learn take
# The columns that tables of probabilities have of each class.
KINDS = ("", "_std", "_train", "_prior")
# The other columns of gpal's own tables of sources.
OWN = (
    *("name", "ra", "dec", "glon", "glat", "position_error", "catalog_class", "label"),
    *("prediction", "entropy", "outside_support", "candidate", "out_of_fold", "rank", "score"),
    *("entropy_measurement", "entropy_model", "entropy_overlap", "probability", "links"),
)


def probability_column(name: str, kind: str = "") -> str:
    """The column with the probability of a class, or with what belongs to it.

    kind  "_std", the standard deviation; "_train", before other class fractions were taken into
          account; "_prior", after that
    """
    assert kind in KINDS
    return f"p_{name}{kind}"


def check_run(
    classes: Sequence[str],
    features: Sequence[str],
    sources: Iterable[str],
    out: str | os.PathLike,
) -> None:
    """All of the checks of names below."""
    check_classes(classes)
    check_names("feature", features)
    check_words("source name", sources)
    check_file_name(out)


def check_classes(classes: Sequence[str]) -> None:
    """Raise InputError unless every table, figure and page can call the classes so."""
    check_names("class", classes)
    owner: dict[str, str] = {}
    for name in classes:
        if name.casefold() == MIXED.casefold():
            raise InputError(
                f"a class cannot be called '{name}': {MIXED} stands for sources that no class is"
                " probable enough for; call the class otherwise"
            )
        for kind in KINDS:
            column = probability_column(name, kind)
            other = owner.setdefault(column.casefold(), name)
            if other != name:
                raise InputError(
                    f"the classes '{shown(other)}' and '{shown(name)}' both make a column"
                    f" '{shown(column)}'; call one otherwise"
                )
            if len(fits_text(column).replace("'", "''")) > LONGEST_HEADING:
                raise InputError(
                    f"the column '{shown(column)}' is too long for a FITS header, whose names have"
                    f" {LONGEST_HEADING} characters, several for each that is not ASCII; call the"
                    f" class '{shown(name)}' otherwise"
                )


def check_names(what: str, names: Iterable[str]) -> None:
    """Raise InputError unless the names are printable, short, and differ in more than case.

    what  they are names of: "class", "feature"
    """
    seen: dict[str, str] = {}
    for name in names:
        if not isinstance(name, str):
            raise InputError(f"the name of a {what} is text, not {shown(repr(name))}")
        if not name or not name.isprintable() or name != name.strip():
            raise InputError(
                f"{what} '{shown(name)}': a name is made of printable characters, without blanks"
                f" around; call the {what} otherwise"
            )
        if len(name) > LONGEST:
            raise InputError(
                f"{what} '{shown(name)}' has {len(name)} characters, a name has at most {LONGEST};"
                f" call the {what} otherwise"
            )
        if (other := seen.get(name.casefold())) is not None:
            raise InputError(
                f"two {what} names, '{shown(other)}' and '{shown(name)}', are the same but for"
                " capitals, which tables do not tell apart; call one otherwise"
            )
        seen[name.casefold()] = name


def check_output_columns(names: Iterable[str]) -> None:
    """Raise InputError unless a table of results can have columns called so beside its own."""
    names = list(names)
    check_names("carried column", names)
    for name in names:
        if name.casefold() in OWN or name.casefold().startswith(("p_", "probability_")):
            raise InputError(
                f"the tables of results have a column '{shown(name)}' of their own, or names like"
                " it (p_..., probability_...); carry the catalog's under another name"
            )
        if len(fits_text(name).replace("'", "''")) > LONGEST_HEADING:
            raise InputError(
                f"the carried column '{shown(name)}' is too long for a FITS header; call it"
                " otherwise"
            )


def check_words(what: str, words: Iterable[str]) -> None:
    """Raise InputError for a name of a source, or the like, that not every table can hold."""
    for row, word in enumerate(words):
        if not word.isprintable() or word != word.strip() or len(word) > LONGEST_WORD:
            raise InputError(
                f"{what} '{shown(word)}' (row {row}): it has at most {LONGEST_WORD} characters, all"
                " printable, and no blanks around; correct it"
            )


def check_file_name(path: str | os.PathLike) -> None:
    """Raise InputError where a file or folder that gpal makes could not be named in a message."""
    if not (name := Path(path).name).isprintable():
        raise InputError(
            f"'{shown(name)}' has characters that cannot be printed; choose another name for the"
            " output"
        )


def check_seed(random_state: object) -> None:
    """Raise InputError unless the seed is a whole number that every generator takes."""
    whole = isinstance(random_state, int | np.integer) and not isinstance(random_state, bool)
    if not whole or not 0 <= random_state <= LARGEST_SEED:  # type: ignore[operator]
        raise InputError(
            f"the seed is a whole number from 0 to {LARGEST_SEED}, got {shown(repr(random_state))}"
        )
