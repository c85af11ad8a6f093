"""Cross-match: against brute force, on names, and on the real releases."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from astropy.coordinates import SkyCoord
from astropy.table import Table

from gpal.catalog import load_catalog
from gpal.catalog.crossmatch import crossmatch
from gpal.errors import InputError
from gpal.evaluation.prospective import prospective_split

MAPPING = {
    "id": "name",
    "class": "kind",
    "ra": "ra",
    "dec": "dec",
    "ellipse": {"semimajor": "a", "semiminor": "b", "angle": "phi"},
    "features": {"flux": {"column": "flux", "error": "none"}},
}


def catalog(path, ra, dec, a, b, phi, names=None):
    n = len(ra)
    names = [f"S{i}" for i in range(n)] if names is None else names
    columns = {"name": names, "kind": ["psr"] * n, "ra": ra, "dec": dec, "a": a, "b": b}
    Table({**columns, "phi": phi, "flux": np.arange(n)}).write(path, format="ascii.ecsv")
    return load_catalog(path, mapping=MAPPING)


@pytest.fixture
def two_skies(tmp_path):
    """Two crowded patches across right ascension 0, with ellipses of all shapes."""
    rng = np.random.default_rng(3)
    skies = []
    for name in ("old", "new"):
        n = 70
        ra, dec = rng.uniform(-1.5, 1.5, n) % 360, rng.uniform(58, 60, n)
        a = rng.uniform(0.05, 0.3, n)
        ellipse = (a, a * rng.uniform(0.2, 1, n), rng.uniform(-90, 90, n))
        skies.append(catalog(tmp_path / f"{name}.ecsv", ra, dec, *ellipse))
    return skies


def test_a_sentinel_is_no_size_of_an_ellipse(tmp_path):
    columns = {"name": ["A", "B"], "kind": ["psr"] * 2, "ra": [1.0, 2.0], "dec": [1.0, 2.0]}
    columns |= {"a": [-99.0, 0.1], "b": [-99.0, 0.1], "phi": [0.0, 30.0], "flux": [1.0, 2.0]}
    Table(columns).write(tmp_path / "a.ecsv")
    found = load_catalog(tmp_path / "a.ecsv", mapping={**MAPPING, "sentinels": [-99]})
    assert np.isnan(found.position_error[0]).all()
    assert found.position_error[1].tolist() == [0.1, 0.1, 30.0]
    with pytest.raises(InputError, match=r"column 'a', row 0 .*-99 degrees is not between 0"):
        load_catalog(tmp_path / "a.ecsv", mapping=MAPPING)


def inside(old, new, i):
    """Whether each offset from i is within the combined ellipse, by its Gaussian's level."""
    first = SkyCoord(old.ra[i], old.dec[i], unit="deg")
    offsets = first.spherical_offsets_to(SkyCoord(new.ra, new.dec, unit="deg"))
    return [
        np.array(offset) @ np.linalg.inv(spread(old, i) + spread(new, j)) @ offset <= 1
        for j, offset in enumerate(zip(*(angle.deg for angle in offsets), strict=True))
    ]


def spread(catalog, k):
    """Covariance, east and north, whose level 1 is the ellipse."""
    a, b, phi = catalog.position_error[k]
    turn = np.deg2rad(90 - phi)  # from east towards north
    axes = np.array([[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]])
    return axes.T @ np.diag([a**2, b**2]) @ axes


def test_positions_against_brute_force(two_skies):
    old, new = two_skies
    allowed = np.array([inside(old, new, i) for i in range(70)])
    distance = np.array(
        [
            SkyCoord(old.ra[i], old.dec[i], unit="deg")
            .separation(SkyCoord(new.ra, new.dec, unit="deg"))
            .deg
            for i in range(70)
        ]
    )
    distance = np.where(allowed, distance, np.inf)
    expected = {
        (i, int(distance[i].argmin()))
        for i in range(70)
        if np.isfinite(distance[i]).any() and distance[:, distance[i].argmin()].argmin() == i
    }
    pairs = crossmatch(old, new, by="position")
    assert set(zip(pairs.old.tolist(), pairs.new.tolist(), strict=True)) == expected
    assert len(expected) > 20
    np.testing.assert_allclose(pairs.separation, distance[pairs.old, pairs.new], atol=1e-9)
    assert not pairs.by_name.any()


def test_every_source_is_paired_at_most_once(two_skies):
    pairs = crossmatch(*two_skies)
    assert len(set(pairs.old.tolist())) == len(set(pairs.new.tolist())) == len(pairs)


def test_names_are_trusted_only_where_positions_agree(tmp_path):
    rng = np.random.default_rng(0)
    ra, dec = rng.uniform(0, 360, 40), rng.uniform(-60, 60, 40)
    small = np.full(40, 0.05)
    old = catalog(tmp_path / "old.ecsv", ra, dec, small, small, small)
    shifted = np.roll(np.arange(40), 1)
    same_sky = (ra[shifted], dec[shifted], small, small, small)
    renamed = catalog(tmp_path / "renamed.ecsv", *same_sky)
    pairs = crossmatch(old, renamed)
    assert len(pairs) == 40 and not pairs.by_name.any()
    np.testing.assert_array_equal(shifted[pairs.new], pairs.old)
    assert (crossmatch(old, renamed, by="name").separation > 0.1).all()

    kept = catalog(tmp_path / "kept.ecsv", *same_sky, names=old.names[shifted])
    pairs = crossmatch(old, kept)
    assert pairs.by_name.all()
    np.testing.assert_array_equal(shifted[pairs.new], pairs.old)


def test_few_names_at_other_places_are_said(tmp_path):
    """As two sources whose names a new release swaps: 38 of 40 names agree."""
    rng = np.random.default_rng(0)
    ra, dec = rng.uniform(0, 360, 40), rng.uniform(-60, 60, 40)
    small = np.full(40, 0.05)
    old = catalog(tmp_path / "old.ecsv", ra, dec, small, small, small)
    names = old.names.copy()
    names[[3, 7]] = names[[7, 3]]
    new = catalog(tmp_path / "new.ecsv", ra, dec, small, small, small, names=names)
    with pytest.warns(UserWarning, match="2 pairs of sources of one name lie far apart"):
        assert crossmatch(old, new).by_name.all()


@pytest.mark.parametrize("names", [["B", "A"], ["J2", "J1"]])
@pytest.mark.parametrize("cut_old", [True, False])
def test_a_source_that_was_cut_keeps_its_counterpart(tmp_path, names, cut_old):
    """B is beside A and in both catalogs, A in one of them; B is cut, and A must not take its place
    in the other one."""
    ra, ellipse = np.array([10.05, 10.0]), (np.full(2, 0.1), np.full(2, 0.1), np.zeros(2))
    both = catalog(tmp_path / "both.ecsv", ra, np.zeros(2), *ellipse, names)
    one = catalog(tmp_path / "one.ecsv", ra[:1], np.zeros(1), *(x[:1] for x in ellipse), ["B"])
    turn = 1 if cut_old else -1
    assert len(crossmatch(*(both, one)[::turn])) == 1
    cut = load_catalog(tmp_path / "both.ecsv", mapping=MAPPING, cuts="flux > 0")
    assert cut.names.tolist() == names[1:]
    assert len(crossmatch(*(cut, one)[::turn])) == 0
    twice = load_catalog(tmp_path / "both.ecsv", mapping=MAPPING, cuts=["flux > 0", "flux < 9"])
    assert len(crossmatch(*(twice[:1], one)[::turn])) == 0


def test_pairs_of_a_name_that_lie_far_apart_are_told_where_they_are_not_cut(tmp_path, recwarn):
    n = 30
    ra, ellipse = 5.0 * np.arange(n), (np.full(n, 0.1), np.full(n, 0.1), np.zeros(n))
    catalog(tmp_path / "old.ecsv", ra, np.zeros(n), *ellipse)
    new = catalog(tmp_path / "new.ecsv", ra, 3.0 * (np.arange(n) == 0), *ellipse)
    old = load_catalog(tmp_path / "old.ecsv", mapping=MAPPING, cuts="flux > 0")
    pairs = crossmatch(old, new)
    assert pairs.old.tolist() == list(range(n - 1)) and pairs.new.tolist() == list(range(1, n))
    assert pairs.by_name.all() and np.allclose(pairs.separation, 0)
    assert not recwarn.list


def test_sources_without_an_ellipse_take_the_stated_radius(tmp_path):
    nan = np.full(1, np.nan)
    old = catalog(tmp_path / "old.ecsv", [10.0], [0.0], nan, nan, nan)
    new = catalog(tmp_path / "new.ecsv", [10.25], [0.0], nan, nan, nan, names=["other"])
    # two circles of radius r combine to r √2
    assert len(crossmatch(old, new, fallback_radius=0.25 / np.sqrt(2) + 1e-6)) == 1
    assert len(crossmatch(old, new, fallback_radius=0.25 / np.sqrt(2) - 1e-6)) == 0


@pytest.mark.parametrize("apart, pairs", [(0.035, 1), (0.045, 0)])
@pytest.mark.parametrize("shorter", [0.03, 0.01])
def test_without_an_angle_the_larger_half_axis_stands_for_both(tmp_path, apart, pairs, shorter):
    """Also of a circle, which needs none: two of radius .03 combine to .042."""
    old, new = (
        catalog(tmp_path / f"{name}.ecsv", [10.0], [dec], [0.03], [shorter], [np.nan], [name])
        for name, dec in (("old", 0.0), ("new", apart))
    )
    assert len(crossmatch(old, new)) == pairs


@pytest.mark.parametrize("ra, dec", [(0.1, 0.0), (180.0, 89.95)])
def test_two_sources_are_as_near_beside_the_pole_as_elsewhere(tmp_path, ra, dec):
    nan = [np.nan]
    old, new = (
        catalog(tmp_path / f"{name}.ecsv", [x], [dec], nan, nan, nan, [name])
        for name, x in (("old", 0.0), ("new", ra))
    )
    assert len(crossmatch(old, new)) == 1


@pytest.mark.parametrize("angle, pairs", [(60.0, 1), (-60.0, 0)])
def test_the_angle_of_each_ellipse_is_counted_from_its_own_north(tmp_path, angle, pairs):
    """Around the pole two sources see each other 60° east and 60° west of it."""
    axes = [0.08], [0.001]
    old = catalog(tmp_path / "old.ecsv", [0.0], [89.9], *axes, [60.0], ["old"])
    new = catalog(tmp_path / "new.ecsv", [60.0], [89.9], *axes, [-angle], ["new"])
    assert len(crossmatch(old, new)) == pairs


def test_bad_arguments(two_skies):
    old, new = two_skies
    with pytest.raises(InputError, match="'colour'"):
        crossmatch(old, new, by="colour")
    with pytest.raises(InputError, match="fallback_radius"):
        crossmatch(old, new, fallback_radius=-1.0)
    nowhere = replace(old, ra=old.ra * np.nan, schema=replace(old.schema, id=""))
    with pytest.raises(InputError, match="names or positions"):
        crossmatch(nowhere, new)


@pytest.mark.parametrize(
    "old, new, examined, origins",
    [
        ("4fgl", "4fgl-dr4", 310, {"bcu": 239, "unassociated": 67, "unk": 4}),
        ("4fgl", "fl16y", 566, {"bcu": 423, "unassociated": 130, "unk": 13}),
        ("4fgl-dr4", "fl16y", 361, {"bcu": 266, "unassociated": 84, "unk": 11}),
    ],
)
def test_sources_classified_since(old, new, examined, origins):
    split = prospective_split(load_catalog(old), load_catalog(new))
    assert int(split.examined.sum()) == examined
    names, counts = np.unique(split.origin[split.examined], return_counts=True)
    assert dict(zip(names.tolist(), counts.tolist(), strict=True)) == origins


def test_a_source_with_half_a_position_is_not_matched(two_skies):
    old, new = two_skies
    whole = crossmatch(old, new, by="position")
    lost = whole.old[0]
    dec = old.dec.copy()
    dec[lost] = np.nan
    for by in ("position", "auto"):
        half = crossmatch(replace(old, dec=dec), new, by=by)
        assert np.isnan(half.separation[half.old == lost]).all()
    position = crossmatch(replace(old, dec=dec), new, by="position")
    assert lost not in position.old and len(position) >= len(whole) - 1
