"""The same sources in two catalogs: by name where names are stable, else by position.

Positions. A 95 % ellipse with half axes a, b and position angle φ, east of north, is a Gaussian of
covariance

    S = R diag(a², b²) Rᵀ / χ²,    R = [[sin φ, cos φ], [cos φ, −sin φ]],    χ² = 5.991

in (east, north). Two sources at offset Δ are compatible if Δᵀ (S_old + S_new)⁻¹ Δ ≤ χ², that is, if
one lies within the combined 95 % ellipse of the other; they match if each is also the nearest
compatible source of the other. Releases share data, so their positions differ by less than that:
true pairs are lost less often than in one case of twenty.

North turns along a great circle, near a pole by much, so S and Δ are taken in the frame of the one
through both sources: φ is counted from it, at each source, and Δ = (0, separation).

A circle needs no angle; of an ellipse without one the larger half axis stands for both. A source
without an ellipse (an extended one), or with a half axis of 0, gets a circle of the stated radius.

Sources that a cut took away are matched as well: else one that has no counterpart would get theirs.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from gpal.errors import InputError, shown

if TYPE_CHECKING:
    from astropy.coordinates import SkyCoord

__all__ = ["Crossmatch", "Placed", "Positions", "crossmatch"]

CHI2_95 = 5.991464547107979  # of two degrees of freedom
FAR = 5  # combined 95 % radii between sources of one name, from which on it is said
STABLE = 0.95  # share of common names at compatible positions from which on names are trusted


class Placed(Protocol):
    """n sources with names and positions: a Catalog, or what a campaign keeps of one.

    names           (n,) identifiers
    named           whether these are the catalog's; else they only count its rows
    ra, dec         (n,) degrees; NaN where unknown
    position_error  (n, 3) 95 % half axes and position angle in degrees, NaN where unknown; or None
    cut_away        the sources that cuts took away, or None
    """

    @property
    def names(self) -> np.ndarray: ...
    @property
    def named(self) -> bool: ...
    @property
    def ra(self) -> np.ndarray: ...
    @property
    def dec(self) -> np.ndarray: ...
    @property
    def position_error(self) -> np.ndarray | None: ...
    @property
    def cut_away(self) -> Positions | None: ...


@dataclass(frozen=True, eq=False)
class Positions:
    """Names and positions of n sources, as Placed, without anything else."""

    names: np.ndarray
    named: bool
    ra: np.ndarray
    dec: np.ndarray
    position_error: np.ndarray
    cut_away: None = None

    def __getitem__(self, rows: np.ndarray) -> Positions:
        axes = self.position_error[rows]
        return Positions(self.names[rows], self.named, self.ra[rows], self.dec[rows], axes)

    @classmethod
    def uncut(cls, catalog: Placed) -> Positions:
        """All sources of a catalog: those in it, and then those that cuts took away."""
        error, cut = catalog.position_error, catalog.cut_away
        if error is None:
            error = np.full((len(catalog.names), 3), np.nan)
        if cut is None:
            return cls(catalog.names, catalog.named, catalog.ra, catalog.dec, error)
        return cls(
            np.concatenate([catalog.names, cut.names]),
            catalog.named,
            np.concatenate([catalog.ra, cut.ra]),
            np.concatenate([catalog.dec, cut.dec]),
            np.concatenate([error, cut.position_error]),
        )


@dataclass(frozen=True)
class Crossmatch:
    """m pairs, in the order of the old catalog.

    old, new    (m,) row numbers in the two catalogs
    separation  (m,) degrees; NaN where a position is unknown
    by_name     (m,) bool: paired by name, else by position
    """

    old: np.ndarray
    new: np.ndarray
    separation: np.ndarray
    by_name: np.ndarray

    def __len__(self) -> int:
        return len(self.old)


def crossmatch(
    old: Placed, new: Placed, *, by: str = "auto", fallback_radius: float = 0.1
) -> Crossmatch:
    """Pair the sources of two catalogs, each at most once, and as without any cuts on these: a
    source whose counterpart was cut has none.

    by               "name", "position", or "auto": equal names first, if at least 95 % of the
                     common names have compatible positions, then the rest by position
    fallback_radius  degrees, the 95 % radius of a source without an ellipse

    Warns where "auto" pairs sources of one name that lie far apart. Raises InputError if neither
    names nor positions can be compared.
    """
    if by not in ("auto", "name", "position"):
        raise InputError(f"by = {by!r} is not one of 'auto', 'name', 'position'")
    if not 0 < fallback_radius <= 10:
        raise InputError(f"fallback_radius is in degrees, got {fallback_radius}; give e.g. 0.1")
    n_old, n_new = len(old.names), len(new.names)
    old, new = Positions.uncut(old), Positions.uncut(new)
    named = old.named and new.named
    placed = bool(_has_position(old).any() and _has_position(new).any())
    if (by == "name" and not named) or (by == "position" and not placed) or not (named or placed):
        wanted = {"name": "an 'id' column", "position": "'ra' and 'dec' columns"}
        raise InputError(
            "cross-match: both catalogs need"
            f" {wanted.get(by, 'names or positions')}; name the columns in their schemas"
        )
    i, j = np.empty(0, int), np.empty(0, int)
    if named and by != "position":
        _, i, j = np.intersect1d(old.names, new.names, return_indices=True)
        known = _has_position(old)[i] & _has_position(new)[j]
        apart = _deviance(old, new, i[known], j[known], fallback_radius)
        far = np.flatnonzero(known)[apart > FAR**2 * CHI2_95]
        far = far[(i[far] < n_old) & (j[far] < n_new)]
        if by == "auto" and len(apart) and np.mean(apart <= CHI2_95) < STABLE:
            i, j = i[:0], j[:0]
        elif by == "auto" and len(far):
            first = far[:1]
            separation = _separation(old, new, i[first], j[first])[0]
            warnings.warn(
                f"{len(far)} pairs of sources of one name lie far apart, such as"
                f" {shown(old.names[i[first[0]]])} ({separation:.3g} deg): paired by name all the"
                " same; check that the names of both catalogs mean the same sources",
                stacklevel=2,
            )
    n_named = len(i)
    if placed and by != "name":
        rest_old = np.setdiff1d(np.flatnonzero(_has_position(old)), i)
        rest_new = np.setdiff1d(np.flatnonzero(_has_position(new)), j)
        p, q = _mutual_nearest(old, new, rest_old, rest_new, fallback_radius)
        i, j = np.concatenate([i, p]), np.concatenate([j, q])
    order = np.argsort(i, kind="stable")
    order = order[(i[order] < n_old) & (j[order] < n_new)]
    return Crossmatch(i[order], j[order], _separation(old, new, i, j)[order], order < n_named)


def _has_position(catalog: Placed) -> np.ndarray:
    """(n,) bool: both coordinates are known."""
    return np.isfinite(catalog.ra) & np.isfinite(catalog.dec)


def compatible(
    old: Placed, new: Placed, i: np.ndarray, j: np.ndarray, fallback_radius: float
) -> np.ndarray:
    """(m,) bool: whether rows i of old and j of new lie within each other's combined ellipse."""
    return _deviance(old, new, i, j, fallback_radius) <= CHI2_95


def _deviance(
    old: Placed, new: Placed, i: np.ndarray, j: np.ndarray, fallback_radius: float
) -> np.ndarray:
    """(m,) Δᵀ (S_old + S_new)⁻¹ Δ."""
    first, second = _coordinates(old, i), _coordinates(new, j)
    S = _covariance(old, i, fallback_radius, first.position_angle(second).deg)
    S += _covariance(new, j, fallback_radius, second.position_angle(first).deg)
    offset = np.zeros((len(i), 2, 1))
    offset[:, 1, 0] = first.separation(second).deg
    return np.einsum("nij,nij->n", offset, np.linalg.solve(S, offset))


def _covariance(
    catalog: Placed, rows: np.ndarray, fallback_radius: float, bearing: np.ndarray | float = 0.0
) -> np.ndarray:
    """(m, 2, 2) position covariance, degrees², in (east, north) turned by `bearing` to the east."""
    ellipse = np.full((len(rows), 3), np.nan)
    if catalog.position_error is not None:
        ellipse = catalog.position_error[rows]
    axes, φ = ellipse[:, :2], ellipse[:, 2]
    known = (np.isfinite(axes) & (axes > 0)).all(axis=1, keepdims=True)
    axes = np.where(known, axes, fallback_radius)
    turned = np.isfinite(φ)
    axes = np.where(turned[:, None], axes, axes.max(axis=1, keepdims=True))
    φ = np.deg2rad(np.where(turned, φ, 0.0) - bearing)
    sin, cos = np.sin(φ), np.cos(φ)
    R = np.stack([np.stack([sin, cos], -1), np.stack([cos, -sin], -1)], -2)
    return np.einsum("nij,nj,nkj->nik", R, axes**2 / CHI2_95, R)


def _mutual_nearest(
    old: Placed, new: Placed, rows_old: np.ndarray, rows_new: np.ndarray, fallback_radius: float
) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of compatible sources each of which is the nearest compatible one of the other."""
    import astropy.units as u
    from astropy.coordinates import search_around_sky

    if not len(rows_old) or not len(rows_new):
        return np.empty(0, int), np.empty(0, int)
    # the combined ellipse lies within the larger half axes added in quadrature
    reach = np.hypot(
        *(
            np.sqrt(CHI2_95 * np.trace(_covariance(c, r, fallback_radius), axis1=1, axis2=2)).max()
            for c, r in ((old, rows_old), (new, rows_new))
        )
    )
    p, q, distance, _ = search_around_sky(
        _coordinates(old, rows_old), _coordinates(new, rows_new), reach * u.deg
    )
    i, j = rows_old[p], rows_new[q]
    near = compatible(old, new, i, j, fallback_radius)
    i, j, distance = i[near], j[near], distance.deg[near]
    first_of_old = dict(_nearest(i, j, distance))
    first_of_new = dict(_nearest(j, i, distance))
    pairs = [(a, b) for a, b in first_of_old.items() if first_of_new[b] == a]
    matched = np.array(pairs, dtype=int).reshape(-1, 2)
    return matched[:, 0], matched[:, 1]


def _nearest(i: np.ndarray, j: np.ndarray, distance: np.ndarray) -> Iterator[tuple[int, int]]:
    """For every i its nearest j; ties go to the smaller row number."""
    order = np.lexsort((j, distance, i))
    first = np.unique(i[order], return_index=True)[1]
    return zip(i[order][first].tolist(), j[order][first].tolist(), strict=True)


def _separation(old: Placed, new: Placed, i: np.ndarray, j: np.ndarray) -> np.ndarray:
    """Degrees between rows i of old and j of new."""
    separation = np.full(len(i), np.nan)
    known = _has_position(old)[i] & _has_position(new)[j]
    if known.any():
        first, second = _coordinates(old, i[known]), _coordinates(new, j[known])
        separation[known] = first.separation(second).deg
    return separation


def _coordinates(catalog: Placed, rows: np.ndarray) -> SkyCoord:
    from astropy.coordinates import SkyCoord

    return SkyCoord(catalog.ra[rows], catalog.dec[rows], unit="deg")
