"""Which column of a table holds the error of another, by the names that surveys give it.

An error is called as its value is, with a word for error before, behind or between the parts:

    psfMag_u   psfMag_u_err, e_psfMag_u, sigma_psfMag_u, psfMagErr_u    MAG_AUTO   MAGERR_AUTO

or by two such words, one for each side: F_err_lo and F_err_hi, e_F and E_F, F_err2 and F_err1.
Parts are told apart by `_`, `.`, `-`, blanks, capitals and digits; their case does not matter.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import product

__all__ = ["bound_names", "error_names", "is_called_an_error", "similar_names"]

BLANKS = " \t\u00a0"
SEPARATORS = re.compile(r"[\s._-]+")
PARTS = re.compile(
    r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=\d)(?=[^\W\d])|(?<=[^\W\d])(?=\d)"
)

BOTH, LOWER, UPPER = "both", "lower", "upper"
WORDS = ("err", "error", "errors", "unc", "uncert", "uncertainty", "stderr", "sigma")
JOINED = ("err", "error", "sigma")  # also without a new part: fluxerr, magerr_g
SIDES = {
    LOWER: ("lo", "low", "lower", "minus", "neg", "dn", "down"),
    UPPER: ("hi", "high", "upper", "plus", "pos", "up"),
}
LETTERS = {LOWER: "lmn", UPPER: "up"}  # perr and nerr; m_u_err is the error of m_u
MARKS = dict.fromkeys(WORDS, BOTH) | {"err1": UPPER, "err2": LOWER}
for _of, _names in SIDES.items():
    for _word, _name in product(("err", "error", "unc", "uncertainty", "sigma"), _names):
        MARKS |= {_word + _name: _of, _name + _word: _of}
    for _letter in LETTERS[_of]:
        MARKS |= {f"err{_letter}": _of, f"{_letter}err": _of}
# What may be an error, and may be something else: a scatter, a bound, a reddening, a significance.
PERHAPS = (
    *("e", "d", "s", "sd", "sig", "std", "stdev", "stddev", "rms", "var", "variance", "ivar"),
    *("invvar", "lower", "upper", "lo", "hi", "low", "high"),
)
BOUNDS = {"lower": "upper", "low": "high", "lo": "hi", "lolim": "hilim"}  # X_lo and X_hi
BOUND_MARKS = {*BOUNDS, *BOUNDS.values()}
COLOURS = (  # E_BV beside BV is a reddening
    *("ub", "bv", "vr", "vi", "ri", "jh", "hk", "jk", "ug", "gr", "iz", "bprp", "bpg", "grp"),
)
# survey's own: the value's name, and those of its error, the best first
SURVEYS = (
    (r"([jhk])_m", (r"\1_msigcom", r"\1_cmsig")),  # 2MASS, point sources
    (r"([jhk])_m_(\w+)", (r"\1_msig_\2",)),  # 2MASS, extended sources
    (r"(w[1-4])(m|flux)(\w*)", (r"\1sig\2\3",)),  # WISE
)


def error_names(value: str, columns: Sequence[str]) -> list[str | tuple[str, str]]:
    """The columns that by their names hold the error of the column `value`: one, or a pair.

    A pair is lower and upper. More than one entry is for the caller to refuse.
    """
    others = [column for column in columns if column != value]
    twins = [column for column in others if _letters(column) == _letters(value)]
    if twins:  # F_err is the error of F, not of f
        others = [column for column in others if value.strip(BLANKS) in column]
    sides: dict[str, list[str]] = {BOTH: [], LOWER: [], UPPER: []}
    for column in others:
        side = _side(value, column)
        if side != BOTH and any(_side(other, column) == BOTH for other in others if side):
            side = ""  # F_lo_err is the error of F_lo, where there is one
        if side:
            sides[side].append(column)
    sides[BOTH] += _of_survey(value, others)
    pairs = _pairs(sides, value, others)
    paired = {column for pair in pairs for column in pair}
    return [*(column for column in sides[BOTH] if column not in paired), *pairs]


def similar_names(value: str, columns: Iterable[str]) -> list[str]:
    """Columns that may have to do with the error of `value`, which nobody but the user can tell."""
    found = []
    for column in columns:
        mark = _mark(value, column, PERHAPS) or _mark(value, column, MARKS)
        if mark and column != value:
            found.append(column)
    return found[:3]


def is_called_an_error(column: str) -> bool:
    """Whether the name of a column has a word for error, whosever it is."""
    name = column.strip(BLANKS).casefold()
    return name[:2] == "e_" or any(word in name for word in WORDS)


def bound_names(value: str, columns: Iterable[str]) -> list[tuple[str, str]]:
    """Pairs of columns that by their names may be the lower and the upper bound of `value`."""
    marked: dict[str, list[str]] = {}
    for column in columns:
        marked.setdefault(_mark(value, column, BOUND_MARKS), []).append(column)
    return [
        pair
        for lower, upper in BOUNDS.items()
        for pair in product(marked.get(lower, ()), marked.get(upper, ()))
    ]


def _pairs(
    sides: dict[str, list[str]], value: str, columns: Sequence[str]
) -> list[tuple[str, str]]:
    """Lower and upper errors that are called alike but for the side."""
    plain = {column.strip(BLANKS): column for column in columns}
    name = value.strip(BLANKS)
    lower, upper = plain.get(f"e_{name}"), plain.get(f"E_{name}")
    found = []
    if lower and upper and _letters(name) not in COLOURS:
        found.append((lower, upper))
    if len(sides[LOWER]) == len(sides[UPPER]) == 1:
        found.append((sides[LOWER][0], sides[UPPER][0]))
    elif sides[LOWER] and sides[UPPER]:
        found += [
            (lower, upper)
            for lower, upper in product(sides[LOWER], sides[UPPER])
            if _neutral(lower) == _neutral(upper)
        ]
    return found


def _neutral(column: str) -> str:
    """A name without its side."""
    sides = sorted((name for names in SIDES.values() for name in names), key=len, reverse=True)
    return re.sub("|".join(sides), "", _letters(column))


def _of_survey(value: str, columns: Sequence[str]) -> list[str]:
    """The error's name by a survey's own rule, the best that is there."""
    plain = {column.strip(BLANKS).casefold(): column for column in columns}
    for pattern, names in SURVEYS:
        match = re.fullmatch(pattern, value.strip(BLANKS).casefold())
        for name in names if match else ():
            if match and match.expand(name) in plain:
                return [plain[match.expand(name)]]
    return []


def _side(value: str, column: str) -> str:
    """Of which side `column` is the error of `value`, '' if by its name it is not."""
    name, other = value.strip(BLANKS), column.strip(BLANKS)
    if other in (f"e_{name}", f"{name}_e") or (name[:1].isupper() and other == f"e{name}"):
        return BOTH  # in another case it may be a reddening, a peak energy, ...
    if re.fullmatch(rf"sig_?{re.escape(name)}", other, re.IGNORECASE):
        return BOTH if "_" in other[:4] or len(name) > 2 else ""  # sigpmra; sigma is not that of ma
    return MARKS.get(_mark(name, other, MARKS), "")


def _mark(value: str, column: str, marks: Iterable[str]) -> str:
    """The mark that `column` has beyond `value`, '' unless it is one of `marks` and a part."""
    v, of_value = _parts(value)
    c, of_column = _parts(column)
    size = len(c) - len(v)
    for start in range(len(v) + 1) if size > 0 else ():
        mark, end = c[start : start + size], start + size
        if mark not in marks or c[:start] + c[end:] != v:
            continue
        before = start == 0 or start in of_column
        behind = end == len(c) or end in of_column
        inside = 0 < start < len(v)
        if inside and start not in of_value:
            continue
        if (before and behind) or (_joins(mark) and (before or behind)):
            return mark
    return ""


def _joins(mark: str) -> bool:
    return MARKS.get(mark) in (LOWER, UPPER) or mark in JOINED


def _letters(name: str) -> str:
    return _parts(name)[0]


@lru_cache(maxsize=4096)  # every name of a table is compared with every other
def _parts(name: str) -> tuple[str, frozenset[int]]:
    """`psfMag_u` -> 'psfmagu', {3, 6}: the letters, and where new parts begin."""
    letters, starts = "", set()
    for word in SEPARATORS.split(name.strip(BLANKS)):
        for part in PARTS.split(word):
            starts.add(len(letters))
            letters += part.casefold()
    return letters, frozenset(starts - {0})
