"""The full FITS files of the releases, where a machine has them."""

import importlib.util
import os
from pathlib import Path

import pytest

RELEASES = {
    "3fgl": "gll_psc_v16.fit",
    "4fgl": "gll_psc_v20.fit",
    "4fgl-dr2": "gll_psc_v27.fit",
    "4fgl-dr3": "gll_psc_v29.fit",
    "4fgl-dr4": "gll_psc_v35.fit",
    "fl16y": "gll_psc_v41.fit",
}


def full_file(name: str) -> Path:
    """The full FITS file of a release, from GPAL_FERMI_CATALOGS or an installed fermipy."""
    folders = [Path(os.environ.get("GPAL_FERMI_CATALOGS", "."))]
    fermipy = importlib.util.find_spec("fermipy")
    if fermipy and fermipy.submodule_search_locations:
        folders.append(Path(fermipy.submodule_search_locations[0]) / "data" / "catalogs")
    for folder in folders:
        if (folder / RELEASES[name]).is_file():
            return folder / RELEASES[name]
    pytest.skip(f"no {RELEASES[name]}: install fermipy, or set GPAL_FERMI_CATALOGS to its folder")
