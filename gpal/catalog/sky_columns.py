"""Which columns of a table that nobody has described hold positions on the sky.

Positions come in pairs: ra and dec, lon and lat, l and b, alpha and delta, within a longer name too
(SC_RA and SC_DEC). By its name alone `alpha` may be a spectral index, `Rad` a radius and `B` a
magnitude: of such names both must be there, and neither with an error.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

import numpy as np

from gpal.catalog.columns import conversion, numbers, unit_of
from gpal.catalog.frames import old_frame
from gpal.errors import InputError

if TYPE_CHECKING:
    from astropy.table import Table

__all__ = ["DEC", "OLD", "RA", "equatorial", "is_position", "plain", "words_of"]

# Names of columns in lower case without anything between letters and digits, the likeliest first.
RA = (
    *("ra", "raj2000", "raicrs", "radeg", "alphaj2000", "ramean", "rightascension", "xworld"),
    *("alpha", "rad"),
)
DEC = (
    *("dec", "decj2000", "dej2000", "deicrs", "decicrs", "decdeg", "dedeg", "decd", "deltaj2000"),
    *("decmean", "declination", "decl", "yworld", "de", "delta", "ded"),
)
OLD = re.compile("b?1950|fk4")  # positions up to .7 degrees from those of ICRS and J2000
# A word of a longitude -> the words that its latitude may have in the same place
PARTNERS = {
    "ra": ("dec", "de", "decl"),
    "raj": ("dej", "decj"),
    "lon": ("lat",),
    "glon": ("glat",),
    "elon": ("elat",),
    "l": ("b",),
    "lii": ("bii",),
    "alpha": ("delta",),
    "rad": ("decd", "ded", "dedeg", "decdeg", "dec"),
}
OF_EQUATOR = ("ra", "raj", "alpha", "rad")
DOUBTFUL = ("l", "b", "alpha", "delta", "rad", "decd", "ded", "de")  # what else may be called so
NO_POSITION = {"pm", "mu", "motion", "err", "error", "sigma", "corr", "cov"}


def plain(name: str) -> str:
    """`RA_ICRS` -> raicrs"""
    return re.sub(r"[^a-z0-9]", "", name.lower())


def words_of(name: str) -> list[str]:
    """`psfMagErr_u` -> psf, mag, err, u"""
    return re.findall(r"[a-z]+|\d+", re.sub(r"([a-z])([A-Z])", r"\1 \2", name).lower())


def equatorial(table: Table, ucds: dict[str, str], with_errors: Collection[str]) -> tuple[str, str]:
    """Right ascension and declination, of degrees within limits; '' where there is none. Those of
    B1950 and sexagesimal ones are none.

    with_errors  the columns that have an error
    """
    found = []
    for ucd, names, limit in (("pos.eq.ra", RA, 360), ("pos.eq.dec", DEC, 90)):
        main = [name for name in table.colnames if ucds[name].startswith(ucd)]
        main.sort(key=lambda name: "meta.main" not in ucds[name])
        called = sorted(
            (c for c in table.colnames if is_position(table, c, with_errors) and plain(c) in names),
            key=lambda name: names.index(plain(name)),
        )
        good = (c for c in (*main, *called) if _is_angle(table, c, limit) and not _old(table, c))
        found.append(next(good, ""))
    if not any(found):
        for ra, dec, word in _pairs(table, with_errors):
            if word in OF_EQUATOR and not _old(table, ra) and not _old(table, dec):
                return ra, dec
    return found[0], found[1]


def is_position(table: Table, name: str, with_errors: Collection[str]) -> bool:
    """Whether a column is one of a position by its name, and, where that may mean something else,
    by the column beside it."""
    stated = unit_of(table, name) in ("deg", "rad") and name not in with_errors
    if plain(name) in (*RA, *DEC) and (stated or plain(name) not in DOUBTFUL):
        return _may_be_angle(table, name)
    return any(name in (lon, lat) for lon, lat, _ in _pairs(table, with_errors))


def _pairs(table: Table, with_errors: Collection[str]) -> Iterator[tuple[str, str, str]]:
    """Longitude, latitude, and the word that told them."""
    called = {tuple(words_of(name)): name for name in table.colnames}
    for words, lon in called.items():
        for i, word in enumerate(words if not NO_POSITION & {*words} else ()):
            key = "alpha" if word.startswith("alpha") else word
            for other in PARTNERS.get(key, ()):
                lat = called.get((*words[:i], other + word[len(key) :], *words[i + 1 :]), "")
                sure = key not in DOUBTFUL or not {lon, lat} & {*with_errors}
                if lat and sure and _is_angle(table, lon, 360) and _is_angle(table, lat, 90):
                    yield lon, lat, key


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
