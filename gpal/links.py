"""Where else a source is found: addresses of its pages, by its position and by its name.

    Links(page="https://example.org/{name}").of("Vela", 128.8, -45.2)

They have the forms that the services publish for their own pages. Nothing is fetched here.
"""

from __future__ import annotations

import math
import string
from dataclasses import dataclass
from urllib.parse import quote

from gpal.errors import InputError, shown

__all__ = ["Links"]

RADIUS = 2 / 60  # degrees, around a source without a position error
SMALLEST = 0.1 / 60  # degrees: a star is not looked for by its own error
BY_POSITION = {
    "SIMBAD": "https://simbad.cds.unistra.fr/simbad/sim-coo?Coord={ra}%20{dec}&CooFrame=ICRS"
    "&Radius={arcmin}&Radius.unit=arcmin",
    "NED": "https://ned.ipac.caltech.edu/conesearch?search_type=Near%20Position%20Search"
    "&in_csys=Equatorial&in_equinox=J2000&coordinates={ra}d%20{dec}d&radius={arcmin}",
    "Aladin": "https://aladin.cds.unistra.fr/AladinLite/?target={ra}%20{dec}&fov={view}"
    "&survey=P%2FDSS2%2Fcolor",
    "ESASky": "https://sky.esa.int/esasky/?target={ra}%20{dec}&fov={view}&cooframe=J2000",
}
BY_NAME = {
    "SIMBAD by name": "https://simbad.cds.unistra.fr/simbad/sim-id?Ident={name}",
    "NED by name": "https://ned.ipac.caltech.edu/byname?objname={name}",
}


class _Quoted(str):
    """A text as part of an address; `{name:_}` has _ where it has blanks."""

    def __format__(self, blank: str) -> str:
        return quote(self.replace(" ", blank) if blank else self, safe="")


@dataclass(frozen=True)
class Links:
    """What a survey's sources have pages of, beside those for any position.

    names  whether SIMBAD and NED know them by their names
    page   address of the survey's own page of a source, with {name} ({name:_}: _ for blanks),
           {ra} and {dec} in degrees
    title  of that page
    """

    names: bool = False
    page: str = ""
    title: str = "survey"

    def __post_init__(self) -> None:
        if not self.page:
            return
        try:
            parts = list(string.Formatter().parse(self.page))
            known = all(
                field is None or (field in ("name", "ra", "dec") and not conversion)
                for _, field, _, conversion in parts
            )
            blanks = all(spec in (None, "", "_", "+", "-") for _, _, spec, _ in parts)
        except ValueError:
            known = blanks = False
        fields = {field for _, field, _, _ in parts} if known else set()
        if not (known and blanks and fields & {"name", "ra"}):
            raise InputError(
                f"the page '{shown(self.page)}' is to hold {{name}}, or {{ra}} and {{dec}}, and no"
                " other braces; {name:_} has _ for blanks"
            )
        if not self.page.startswith(("https://", "http://")) or not self.page.isprintable():
            raise InputError(
                f"the page '{shown(self.page)}' is no address; give one that begins with https://"
            )

    def of(self, name: str, ra: float, dec: float, radius: float = math.nan) -> dict[str, str]:
        """Title -> address; those by position only where it is known.

        ra, dec  degrees
        radius   around them, degrees
        """
        templates: dict[str, str] = {}
        if math.isfinite(ra) and math.isfinite(dec):
            templates |= BY_POSITION
        if self.names:
            templates |= BY_NAME
        if self.page and (templates.keys() & BY_POSITION.keys() or "{ra" not in self.page):
            templates[self.title] = self.page
        around = max(radius, SMALLEST) if math.isfinite(radius) and radius > 0 else RADIUS
        values = {
            "name": _Quoted(name),
            "ra": _Quoted(f"{ra:.6f}"),
            "dec": _Quoted(f"{dec:+.6f}"),
            "arcmin": f"{60 * around:.3g}",
            "view": f"{min(4 * around, 60):.3g}",
        }
        return {title: template.format(**values) for title, template in templates.items()}
