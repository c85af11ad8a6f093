"""The sources of a campaign: what it needs of a catalog release, frozen in one file.

Arrays and JSON in an .npz, no pickle. Once written it never changes: a campaign that gets a new
release writes another file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gpal.active.campaign.carried import ARRAYS as CARRIED
from gpal.active.campaign.carried import check_carried, packed, unpacked
from gpal.active.observing import Limit
from gpal.errors import InputError
from gpal.files.npz import json_text, read_npz, write_npz
from gpal.files.saved_data import check_arrays, check_fields
from gpal.limits import Limits
from gpal.links import Links
from gpal.measurements import Measurements
from gpal.provenance import to_json

if TYPE_CHECKING:
    from astropy.table import Column

    from gpal.catalog import Catalog
    from gpal.catalog.crossmatch import Positions

__all__ = ["OTHER", "SourceTable", "read_arrays"]

OTHER = "other"  # label of a source that is of none of the classes: out of the pool, not trained on


@dataclass(frozen=True)
class SourceTable:
    """n sources.

    measurements    features with errors or covariances, (n, d); its ids are the sources' names
    named           whether these are the catalog's; else they only count its rows
    ids             (n,) numbers that stay with a source from release to release
    label           (n,) class known from the catalog, '' for none
    catalog_class   (n,) class as printed in the catalog
    target          (n,) bool: no class, or an undecided one
    ra, dec         (n,) degrees
    position_error  (n, 3) 95 % half axes and angle, degrees
    classes         the classes to tell apart
    coarser         name -> several of the classes: an answer that says that it is one of them
    spectrum        (n, b, 3) νFν per energy band, its lower error, NaN at an upper limit, and its
                    upper error, as in gpal.catalog.series; b = 0 without
    spectrum_unit   of νFν
    energy          (b, 2) limits of the bands, MeV; NaN where the schema gives none
    columns         name -> (n,): the catalog's columns of numbers as read, for limits
    absent          name -> numbers that stand for no value in such a column
    carried         name -> column that goes to the outputs as it stands
    links           where else a source is found
    provenance      of the catalog
    cut_away        names and positions of the sources that cuts took away, None without
    """

    measurements: Measurements
    named: bool
    ids: np.ndarray
    label: np.ndarray
    catalog_class: np.ndarray
    target: np.ndarray
    ra: np.ndarray
    dec: np.ndarray
    position_error: np.ndarray
    classes: tuple[str, ...]
    spectrum: np.ndarray
    energy: np.ndarray
    columns: Mapping[str, np.ndarray] = field(default_factory=dict)
    absent: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    spectrum_unit: str = ""
    carried: Mapping[str, Column] = field(default_factory=dict)
    links: Links = field(default_factory=Links)
    coarser: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    provenance: Mapping[str, Any] = field(default_factory=dict)
    cut_away: Positions | None = None

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def names(self) -> np.ndarray:
        assert self.measurements.ids is not None
        return self.measurements.ids

    def quantities(self, limits: Mapping[str, Limit] | None = None) -> dict[str, np.ndarray]:
        """What limits can be set on: position, features, and the catalog's columns of numbers. A
        feature that is not what the column of its name holds has a name that says so. A number
        that stands for no value is NaN, but where it is a limit itself, as in a cut."""
        features = {}
        for name, values in zip(self.measurements.names, self.measurements.X.T, strict=True):
            same = name not in self.columns or np.array_equal(
                self._column(name), values, equal_nan=True
            )
            features[name if same else f"{name} (feature)"] = values
        clash = {name for name in self.measurements.names if name not in features}
        keys = {f"{name} (column)" if name in clash else name: name for name in self.columns}
        columns = {
            key: self._column(name, *(limits or {}).get(key, ())) for key, name in keys.items()
        }
        position = {"ra": self.ra, "dec": self.dec}
        if np.isnan(self.ra).all():  # the catalog may have columns of these names
            return {**position, **features, **columns}
        return {**features, **columns, **position}

    def _column(self, name: str, *kept: float | None) -> np.ndarray:
        """A column with NaN for what is no value, but for the numbers that are kept."""
        from gpal.catalog.sentinels import is_sentinel

        values, absent = self.columns[name], {*self.absent.get(name, ())} - {*kept}
        return np.where(is_sentinel(values, absent), np.nan, values) if absent else values

    @classmethod
    def from_catalog(cls, catalog: Catalog, *, first: bool = True) -> SourceTable:
        """Numbered from 1 in the catalog's order.

        first   whether it is the campaign's first release, which needs classes to learn from
        """
        n = len(catalog)
        y = catalog.y
        if len(catalog.classes) < 2 or (first and not (y != "").any()):
            raise InputError(
                "a campaign needs sources of two known classes or more; name them with --class"
            )
        if OTHER in map(str.casefold, catalog.classes):
            raise InputError(f"'{OTHER}' stands for none of the classes; call the class otherwise")
        spectrum, energy, unit = _spectrum(catalog)
        columns, absent = _columns(catalog)
        return cls(
            measurements=catalog.measurements,
            named=catalog.named,
            ids=np.arange(1, n + 1),
            label=y,
            catalog_class=np.asarray(catalog.original_labels, dtype=str),
            target=catalog.is_target,
            ra=np.asarray(catalog.ra, float),
            dec=np.asarray(catalog.dec, float),
            position_error=np.full((n, 3), np.nan)
            if catalog.position_error is None
            else np.asarray(catalog.position_error, float),
            classes=tuple(catalog.classes),
            spectrum=spectrum,
            energy=energy,
            spectrum_unit=unit,
            columns=columns,
            absent=absent,
            carried=catalog.carried,
            links=catalog.schema.links,
            coarser={k: v for k, v in catalog.coarser.items() if k != OTHER},
            provenance=dict(catalog.provenance),
            cut_away=catalog.cut_away,
        )

    def row(self, name: str) -> int:
        """Row of the source `name`: as printed, or without its blanks and capitals, or without the
        words in front, where no other source ends so: `J0612.9+1150` is `4FGL J0612.9+1150`."""
        exact = np.flatnonzero(self.names == name)
        if len(exact):
            return int(exact[0])
        asked = "".join(name.split()).lower()
        words = [known.lower().split() for known in self.names.tolist()]
        same = [row for row, known in enumerate(words) if "".join(known) == asked]
        if not same and asked:
            same = [
                row
                for row, known in enumerate(words)
                if any("".join(known[first:]) == asked for first in range(1, len(known)))
            ]
        if len(same) == 1:
            return same[0]
        if same:
            found = ", ".join(self.names[same].tolist()[:5])
            raise InputError(f"'{name}' may be {len(same)} sources ({found}); give the whole name")
        from gpal.catalog.schema import close_matches

        close = close_matches(name, self.names.tolist())
        hint = close if close.startswith("did you mean") else "see `gpal learn next`"
        raise InputError(f"no source '{name}' in the campaign; {hint}")

    def distances(self, ra: float, dec: float) -> np.ndarray:
        """(n,) degrees between each source and a position; NaN where the source has none."""
        if not (0 <= ra <= 360 and -90 <= dec <= 90):
            raise InputError(f"position {ra:g} {dec:g} is not on the sky; give degrees")
        return _separation(ra, dec, self.ra, self.dec)

    def row_at(self, ra: float, dec: float, radius: float = 0.1) -> int:
        """Row of the only source within `radius` degrees of a position."""
        distance = self.distances(ra, dec)
        near = np.flatnonzero(distance <= radius)
        if len(near) == 1:
            return int(near[0])
        known = np.where(np.isfinite(distance), distance, np.inf)
        if not len(near):
            k = int(np.argmin(known))
            raise InputError(
                f"no source within {radius:g} deg of {ra:g} {dec:g}; the nearest is"
                f" {self.names[k]} at {known[k]:.3f} deg: give its name or a larger --radius"
            )
        found = ", ".join(self.names[near[np.argsort(known[near])]].tolist()[:5])
        raise InputError(
            f"{len(near)} sources within {radius:g} deg of {ra:g} {dec:g} ({found}); give a name"
        )

    def save(self, path: Path) -> None:
        carried, about_carried = packed(self.carried, len(self))
        about = {
            "feature_names": self.measurements.names,
            "units": self.measurements.units,
            "classes": self.classes,
            "named": self.named,
            "columns": list(self.columns),
            "absent": self.absent,
            "spectrum_unit": self.spectrum_unit,
            "carried": about_carried,
            "links": asdict(self.links),
            "coarser": self.coarser,
            "provenance": self.provenance,
        }
        covariance, limits = self.measurements.covariance, self.measurements.limits
        cut = self.cut_away
        arrays = {
            "about": np.array(to_json(about)),
            "X": self.measurements.X,
            "X_err": self.measurements.X_err,
            **({} if covariance is None else {"covariance": covariance}),
            **({_LIMITS[part]: of for part, of in vars(limits).items()} if limits else {}),
            "names": self.names,
            "columns": np.array(list(self.columns.values()), dtype=float),
            **{name: getattr(self, name) for name in _ARRAYS},
            **({} if cut is None else {f"cut_{name}": getattr(cut, name) for name in _CUT_AWAY}),
            **carried,
        }
        write_npz(path, arrays)

    @classmethod
    def load(cls, path: Path) -> SourceTable:
        """InputError where the file is missing, damaged, or not what `save` makes."""
        arrays = read_arrays(path)
        try:
            about = _checked(arrays)
        except ValueError as error:
            raise InputError(
                f"'{path}' is damaged: {error}; take the folder from a copy"
            ) from error
        measurements = Measurements(
            arrays["X"],
            arrays["X_err"],
            tuple(about["feature_names"]),
            tuple(about["units"]),
            arrays["names"],
            arrays.get("covariance"),
            Limits(**{part: arrays[name] for part, name in _LIMITS.items()})
            if "limit" in arrays
            else None,
        )
        return cls(
            measurements=measurements,
            named=about["named"],
            columns=dict(zip(about["columns"], arrays["columns"], strict=True)),
            absent={name: tuple(numbers) for name, numbers in about["absent"].items()},
            spectrum_unit=about["spectrum_unit"],
            carried=unpacked(arrays, about["carried"]),
            links=Links(**about["links"]),
            classes=tuple(about["classes"]),
            coarser={name: tuple(classes) for name, classes in about["coarser"].items()},
            provenance=about["provenance"],
            cut_away=_cut_away(arrays, about["named"]),
            **{name: arrays[name] for name in _ARRAYS},
        )


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """All arrays of one of the campaign's files; InputError where it is missing or damaged."""
    return read_npz(path, "a file of a gpal campaign", "copy a campaign's folder as a whole")


# Kind and axes: n sources, d features, b energy bands, k columns of numbers.
_ARRAYS = {
    "ids": "int n",
    "label": "text n",
    "catalog_class": "text n",
    "target": "bool n",
    "ra": "float n",
    "dec": "float n",
    "position_error": "float n 3",
    "spectrum": "float n b 3",
    "energy": "float b 2",
}
_MEASUREMENTS = {"X": "float n d", "X_err": "float n d", "covariance": "float n d d"}
# The parts of `gpal.limits.Limits`; older files have none, whatever the catalog had.
_LIMITS = {"value": "limit", "confidence": "limit_confidence", "error": "limit_error"}
# Of c sources that cuts took away; older files do not say which these were.
_CUT_AWAY = {"names": "text c", "ra": "float c", "dec": "float c", "position_error": "float c 3"}
_ABOUT = {
    "feature_names": [str],
    "units": [str],
    "classes": [str],
    "named": bool,
    "columns": [str],
    "absent": dict,
    "spectrum_unit": str,
    "carried": [dict],
    "links": dict,
    "coarser": dict,
    "provenance": dict,
}
_LINKS = {"names": bool, "page": str, "title": str}


def _checked(arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """What the file says beside its arrays; ValueError where they are not what `save` makes."""
    declared = {**_ARRAYS, **_MEASUREMENTS, "names": "text n", "about": "text"}
    declared["columns"] = "float k n" if arrays.get("columns", np.zeros(0)).size else "float 0"
    if "covariance" not in arrays:
        del declared["covariance"]
    if "limit" in arrays:
        declared |= dict.fromkeys(_LIMITS.values(), "float n d")
    if "cut_names" in arrays:
        declared |= {f"cut_{name}": kind for name, kind in _CUT_AWAY.items()}
    before = not any(name in arrays for name in CARRIED)  # the first versions carried nothing
    declared |= {"spectrum": "float n b 2"} if before else CARRIED
    sizes = check_arrays(arrays, declared, {}, may_be_nan=declared)
    about = json_text(arrays["about"])
    if before and isinstance(about, dict):  # and kept photon fluxes, which are no spectrum
        about = {"carried": [], "links": asdict(Links()), "spectrum_unit": "", **about}
        arrays["spectrum"] = np.zeros((sizes["n"], 0, 3))
        arrays["energy"] = np.zeros((0, 2))
    if isinstance(about, dict):
        about = {"coarser": {}, "absent": {}, **about}  # the first campaigns know of none
    check_fields(about, _ABOUT, "the file")
    check_fields(about["absent"], {key: [float] for key in about["absent"]}, "absent")
    check_fields(about["coarser"], {key: [str] for key in about["coarser"]}, "coarser")
    check_fields(about["links"], _LINKS, "links")
    Links(**about["links"])
    check_carried(about["carried"], arrays)
    for key, axis in (("feature_names", "d"), ("units", "d"), ("columns", "k")):
        if len(about[key]) != sizes.get(axis, 0):
            raise InputError(f"'{key}' has {len(about[key])} names")
    classes, ids = about["classes"], arrays["ids"]
    for name, members in about["coarser"].items():
        if name in classes or len(members) < 2 or not set(members) <= set(classes):
            raise InputError(f"'{name}' of coarser is no name for several of the classes")
    if (
        len(set(classes)) != len(classes)
        or len(classes) < 2
        or not set(arrays["label"]) <= {*classes, ""}
    ):
        raise InputError("the classes of its sources are not those of the campaign")
    if len(np.unique(ids)) != len(ids) or (ids < 1).any():
        raise InputError("its sources are not numbered from 1, each once")
    return about


def _cut_away(arrays: Mapping[str, np.ndarray], named: bool) -> Positions | None:
    from gpal.catalog.crossmatch import Positions

    if "cut_names" not in arrays:
        return None
    names, ra, dec, position_error = (arrays[f"cut_{name}"] for name in _CUT_AWAY)
    return Positions(names, named, ra, dec, position_error)


def _columns(catalog: Catalog) -> tuple[dict[str, np.ndarray], dict[str, tuple[float, ...]]]:
    """Plain columns of numbers, and the numbers in them that stand for no value."""
    from gpal.catalog.columns import numbers
    from gpal.catalog.cuts import sentinels_of
    from gpal.catalog.sentinels import is_sentinel

    table, columns, absent = catalog.table, {}, {}
    plain = [name for name in table.colnames if table[name].dtype.kind in "iuf"]
    for name in (one for one in plain if table[one].ndim == 1):
        columns[name] = numbers(table, name)
        sentinels = sentinels_of(table, catalog.schema, name)
        if is_sentinel(columns[name], sentinels).any():
            absent[name] = tuple(sorted(map(float, sentinels)))
    return columns, absent


def _spectrum(catalog: Catalog) -> tuple[np.ndarray, np.ndarray, str]:
    """νFν with its errors per band, the bands' limits, and its unit."""
    from gpal.catalog.columns import unit_of
    from gpal.catalog.series import band_fluxes

    E, errors, energy = band_fluxes(catalog.table, catalog.schema)
    bands = list(catalog.schema.bands.values())
    unit = unit_of(catalog.table, bands[0].nuFnu) if bands else ""
    return np.concatenate([E[..., None], errors], axis=2), energy, unit


def _separation(ra: float, dec: float, ras: np.ndarray, decs: np.ndarray) -> np.ndarray:
    """Degrees by the haversine formula, exact for small angles."""
    a, d, b, e = (np.deg2rad(value) for value in (ra, dec, ras, decs))
    h = np.sin((e - d) / 2) ** 2 + np.cos(d) * np.cos(e) * np.sin((b - a) / 2) ** 2
    return np.rad2deg(2 * np.arcsin(np.sqrt(np.clip(h, 0, 1))))
