"""Which columns of a table that nobody has described hold positions on the sky.

Positions come in pairs: ra and dec, lon and lat, within a longer name too (SC_RA and SC_DEC).
`alpha` may be a spectral index as well, `Rad` a radius and `B` a magnitude: such are positions only
as whole names beside each other, and where neither has an error.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from gpal.catalog.columns import conversion, numbers, unit_of
from gpal.catalog.frames import old_frame
from gpal.errors import InputError

if TYPE_CHECKING:
    from astropy.table import Table

__all__ = ["DEC", "OLD", "RA", "equatorial", "plain", "positions", "words_of"]

# Names of columns in lower case without anything between letters and digits, the likeliest first.
RA = (
    *("ra", "raj2000", "raicrs", "radeg", "alphaj2000", "ramean", "rightascension", "xworld"),
    *("alpha", "rad"),
)
DEC = (
    *("dec", "decj2000", "dej2000", "deicrs", "decicrs", "decdeg", "dedeg", "decd", "deltaj2000"),
    *("decmean", "declination", "decl", "yworld", "de", "delta", "ded"),
)
DOUBTFUL = ("alpha", "delta", "rad", "decd", "ded", "de")  # what else may be called so
OLD = re.compile("b?1950|fk4")  # positions up to .7 degrees from those of ICRS and J2000
# A word of a longitude -> the words that its latitude may have in the same place of a longer name
PARTNERS = {
    "ra": ("dec", "de", "decl"),
    "raj": ("dej", "decj"),
    "alphawin": ("deltawin",),
    "lon": ("lat",),
    "glon": ("glat",),
    "elon": ("elat",),
    "lii": ("bii",),
}
# Whole names that are those of a position beside each other, and where neither has an error.
ALONE = {"l": ("b",), "gall": ("galb",), "alpha": ("delta",), "rad": ("decd", "ded", "dec")}
OF_EQUATOR = ("ra", "raj", "alphawin", "alpha", "rad")
# In a name that is of a motion, an error, a distance from a position, a size
NO_POSITION = {
    *("pm", "mu", "motion", "corr", "cov", "e", "u", "s", "d", "sd", "sig", "err", "error"),
    *("sigma", "unc", "uncertainty", "stderr", "std", "rms", "offset", "off", "sep", "width"),
}


def plain(name: str) -> str:
    """`RA_ICRS` -> raicrs"""
    return re.sub(r"[^a-z0-9]", "", name.lower())


def words_of(name: str) -> list[str]:
    """`psfMagErr_u` -> psf, mag, err, u"""
    return re.findall(r"[a-z]+|\d+", re.sub(r"([a-z])([A-Z])", r"\1 \2", name).lower())


def positions(table: Table, with_errors: Collection[str]) -> dict[str, str]:
    """Column of a position -> the one beside it, '' for a name that needs none.

    with_errors  the columns that have an error
    """
    found: dict[str, str] = {}
    for lon, lat in _pairs(table, with_errors):
        found |= {lon: lat, lat: lon}
    for name in table.colnames:
        stated = unit_of(table, name) in ("deg", "rad") and name not in with_errors
        known = plain(name) in (*RA, *DEC) and (stated or plain(name) not in DOUBTFUL)
        if known and _may_be_angle(table, name):
            found.setdefault(name, "")
    return found


def equatorial(table: Table, ucds: Mapping[str, str], beside: Mapping[str, str]) -> tuple[str, str]:
    """Right ascension and declination among `positions`, of degrees within limits; '' where there
    is none. Those of B1950 and sexagesimal ones are none."""
    found = []
    for ucd, names, limit in (("pos.eq.ra", RA, 360), ("pos.eq.dec", DEC, 90)):
        main = [name for name in table.colnames if ucds[name].startswith(ucd)]
        main.sort(key=lambda name: "meta.main" not in ucds[name])
        called = sorted(
            (name for name in beside if plain(name) in names),
            key=lambda name: names.index(plain(name)),
        )
        good = (c for c in (*main, *called) if _is_angle(table, c, limit) and not _old(table, c))
        found.append(next(good, ""))
    if not any(found):
        for ra, dec in beside.items():
            of_equator = {*OF_EQUATOR} & {*words_of(ra)} and _is_angle(table, ra, 360)
            if dec and of_equator and not _old(table, ra) and not _old(table, dec):
                return ra, dec
    return found[0], found[1]


def _pairs(table: Table, with_errors: Collection[str]) -> Iterator[tuple[str, str]]:
    """Longitude and latitude."""
    called = {tuple(words_of(name)): name for name in table.colnames}
    whole = {plain(name): name for name in table.colnames}
    perhaps = []
    for words, lon in called.items():
        perhaps += [
            (lon, called.get((*words[:i], other, *words[i + 1 :]), ""))
            for i, word in enumerate(words if not NO_POSITION & {*words} else ())
            for other in PARTNERS.get(word, ())
        ]
        if lon not in with_errors:
            perhaps += [(lon, whole.get(other, "")) for other in ALONE.get(plain(lon), ())]
    for lon, lat in perhaps:
        sure = plain(lon) not in ALONE or lat not in with_errors
        if lat and sure and _is_angle(table, lon, 360) and _is_angle(table, lat, 90):
            yield lon, lat


def _is_angle(table: Table, name: str, limit: float) -> bool:
    """Whether all values are degrees up to a limit."""
    try:
        values = numbers(table, name) * conversion(table, name, "deg")
    except InputError:
        return False
    known = values[np.isfinite(values)]
    return len(known) > 0 and bool((np.abs(known) <= limit).all())


def _may_be_angle(table: Table, name: str) -> bool:
    """Whether its unit, where it states one, is that of an angle."""
    try:
        return bool(conversion(table, name, "deg"))
    except InputError:
        return not unit_of(table, name)


def _old(table: Table, name: str) -> bool:
    return bool(OLD.search(plain(name)) or old_frame(table, name))
