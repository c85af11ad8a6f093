"""The equator and equinox that a file says its positions refer to.

gpal takes right ascensions and declinations as of ICRS or J2000. Those of FK4 and B1950 are up to
0.7 degrees from these. FITS says it in RADESYS and EQUINOX, a VOTable in the COOSYS of a column.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpal.catalog.columns import split

if TYPE_CHECKING:
    from astropy.table import Table

__all__ = ["COOSYS", "old_frame"]

COOSYS = "coosys"  # under which `read_votable` keeps it in a column's meta


def old_frame(table: Table, expression: str) -> str:
    """What a column of positions refers to, where it is FK4 or B1950; else ''."""
    column = table[split(table, expression)[0]]
    system = (getattr(column.info, "meta", None) or {}).get(COOSYS)
    system = str(system or table.meta.get("RADESYS") or table.meta.get("RADECSYS") or "").strip()
    equinox = str(table.meta.get("EQUINOX", "")).strip()
    if "FK4" in system.upper() or system.upper().endswith("1950"):
        return system
    if "ICRS" in system.upper():  # which has no equinox
        return ""
    return equinox if equinox.lstrip("B").startswith("1950") else ""
