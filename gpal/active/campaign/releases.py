"""A new release in a running campaign: which of its sources are known, and what it says of them."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gpal.active.campaign.answers import possible
from gpal.active.campaign.store import Store
from gpal.active.campaign.table import OTHER, SourceTable
from gpal.errors import InputError, shown

if TYPE_CHECKING:
    from gpal.catalog import Catalog
    from gpal.measurements import Measurements

__all__ = ["conflicts", "continuing", "merge", "released"]


def released(store: Store, folder: Path) -> list[SourceTable]:
    """The tables of all releases in a campaign's folder, the newest first."""
    return [SourceTable.load(folder / file) for file in store.release_files()]


def merge(
    store: Store,
    folder: Path,
    catalog: Catalog,
    cuts: Sequence[str] | None = None,
    who: str = "",
    fallback_radius: float = 0.1,
) -> dict[str, Any]:
    """Give the campaign in `folder` a new release; what was found, as counts and lists of sources.

    cuts  take the place of the campaign's from now on; None keeps those it was started with
    fallback_radius     degrees, the 95 % radius of a source without a position error

    renamed             (name so far, name now) of sources that were matched by position
    matched, new, gone  counts; gone: in the release before and not in this one
    gone_labelled       (name, label) of those that the campaign labelled; the labels are kept
    conflicts           of `conflicts`; the campaign's label stays
    """
    from gpal.catalog.cuts import cut

    groups = {name: tuple(labels) for name, labels in store.setting("groups").items()}
    _warn_of_missing_classes(catalog, groups)
    catalog = replace(catalog, groups=groups, own_groups=groups, known_as={})
    wanted = store.setting("cuts") if cuts is None else list(cuts)
    if wanted:
        catalog = replace(cut(catalog, wanted), provenance={**catalog.provenance, "cuts": wanted})
    new = SourceTable.from_catalog(catalog, first=False)
    if not new.target.any():
        warnings.warn("the new release has no source of unknown class to ask for", stacklevel=3)
    with store.transaction():
        if cuts is None and (store.setting("cuts") or []) != (wanted or []):
            raise InputError("another process changed the cuts meanwhile: merge again")
        earlier = released(store, folder)
        largest = max(store.names())
        names = store.names()
        new = continuing(new, earlier, largest + 1, fallback_radius)
        # Labels mean what they meant when they were given.
        new = replace(new, coarser={**new.coarser, **earlier[0].coarser})
        file = f"release-{len(earlier) + 1}.npz"
        new.save(folder / file)
        store.add_release(
            file, new.provenance, list(zip(new.ids.tolist(), new.names.tolist(), strict=True))
        )
        given = {source: label for source, (label, *_) in store.labels().items()}
        title = new.provenance.get("title") or new.provenance.get("file", "")
        store.record("merge", who, note=shown(title, 200))
        store.change_setting("cuts", wanted)
    before, fresh = earlier[0], int((new.ids > largest).sum())
    gone = np.flatnonzero(~np.isin(before.ids, new.ids)).tolist()
    return {
        "matched": len(new) - fresh,
        "new": fresh,
        "gone": len(gone),
        "renamed": [
            (names[source], name)
            for source, name in zip(new.ids.tolist(), new.names.tolist(), strict=True)
            if names.get(source, name) != name
        ],
        "gone_labelled": [
            (str(before.names[row]), given[int(before.ids[row])])
            for row in gone
            if int(before.ids[row]) in given
        ],
        "conflicts": conflicts(new, given),
    }


def continuing(
    new: SourceTable, earlier: Iterable[SourceTable], first: int, fallback_radius: float = 0.1
) -> SourceTable:
    """`new` with its sources numbered as in the earlier releases, unknown ones from `first` on.

    earlier          the newest first: a source that one release lacks is found in the one before
    fallback_radius  degrees, the 95 % radius of a source without a position error

    Matched by name where names are stable, else by position, whole releases with whole ones: what
    cuts took away of either keeps its counterpart, as far as the campaign's files say. Raises
    InputError where features or their units differ, or where an error calibration is left out.
    """
    from gpal.catalog.crossmatch import Positions, crossmatch

    earlier = list(earlier)
    if earlier[0].provenance.get("error_scale") and not new.provenance.get("error_scale"):
        raise InputError(
            "the campaign's errors are scaled by an error calibration and those of the new release"
            " are not; load it with one: --error-scale"
        )
    ids, was_cut = np.zeros(len(new), dtype=int), np.zeros(len(new), dtype=bool)
    held = np.empty(0, dtype=int)
    for before in earlier:
        _check_features(new, before, warn=before is earlier[0])
        every = Positions.uncut(before)
        pairs = crossmatch(every, new, fallback_radius=fallback_radius)
        numbers = np.zeros(len(every.names), dtype=int)  # those that were cut have none
        numbers[: len(before)] = before.ids
        known = numbers[pairs.old]
        # What a later release paired stays: neither row nor number is given twice. What was cut
        # from a later release is none of the sources that this one held.
        free = (ids[pairs.new] == 0) & (known > 0) & ~np.isin(known, ids)
        free &= ~(was_cut[pairs.new] & np.isin(known, held))
        ids[pairs.new[free]] = known[free]
        was_cut[pairs.new[known == 0]] = True
        held = np.append(held, before.ids)
    fresh = np.flatnonzero(ids == 0)
    ids[fresh] = first + np.arange(len(fresh))
    return replace(new, ids=ids)


def conflicts(table: SourceTable, given: Mapping[int, str]) -> list[tuple[str, str, str]]:
    """(name, the release's class, ours) of the sources that were labelled otherwise than `table`.

    given  number of the source -> the campaign's label
    """
    found = []
    for row, source in enumerate(table.ids.tolist()):
        ours = given.get(source)
        if ours is None or table.target[row]:
            continue
        theirs = str(table.label[row]) or OTHER  # it has a class, which is none of the campaign's
        if theirs != ours and theirs not in possible(ours, table):
            found.append((str(table.names[row]), str(table.catalog_class[row]), ours))
    return found


def _check_features(new: SourceTable, before: SourceTable, warn: bool) -> None:
    ours, theirs = before.measurements, new.measurements
    if theirs.names != ours.names:
        raise InputError(
            f"the new release has the features {', '.join(theirs.names)}; the campaign needs"
            f" {', '.join(ours.names)}"
        )
    for name, unit, wanted in zip(ours.names, theirs.units, ours.units, strict=True):
        if unit != wanted:
            raise InputError(
                f"feature '{name}' is in '{unit}' in the new release and in '{wanted}' in the"
                f" campaign; give it unit and transform of the campaign in a schema: --schema FILE"
            )
        _check_making(name, _made(before, name), _made(new, name), warn)
    if warn:
        _check_measured(ours, theirs)
        _warn_of_other_values(ours, theirs)


def _warn_of_missing_classes(catalog: Catalog, groups: Mapping[str, Sequence[str]]) -> None:
    """Of classes without a source in the new release: those of the campaign's labels are left."""
    known = set(catalog.labels.tolist()) - {""}
    lost = [name for classes in groups.values() for name in classes if name not in known]
    of_schema = catalog.schema.classes
    expected = {*of_schema.absent, *(c for group in of_schema.groups.values() for c in group)}
    missing = [name for name in lost if name not in expected]
    if missing:
        warnings.warn(
            f"the new release has no source of {shown(', '.join(missing))}: of"
            f" {'that' if len(missing) == 1 else 'those'} the campaign's own labels are left"
            f" (there are: {shown(', '.join(sorted(known)) or 'none')})",
            stacklevel=4,
        )


def _check_measured(before: Measurements, new: Measurements) -> None:
    """InputError for a feature that has become one of no source, a warning for one of far fewer."""
    for name, had, has in zip(
        before.names, before.measured.mean(axis=0), new.measured.mean(axis=0), strict=True
    ):
        if has == 0 < had:
            raise InputError(
                f"feature '{name}' was measured for no source of the new release, and the campaign"
                " needs it: are its column and its error's filled there?"
            )
        if 2 * has < had:
            warnings.warn(
                f"feature '{name}' was measured for {has:.0%} of the sources of the new release,"
                f" and for {had:.0%} of those before: are its errors missing there?",
                stacklevel=6,
            )


def _warn_of_other_values(before: Measurements, new: Measurements) -> None:
    """Of features of which most values are none that the campaign has had."""
    for name, had, has in zip(before.names, before.X.T, new.X.T, strict=True):
        had, has = had[np.isfinite(had)], has[np.isfinite(has)]
        beyond = ((has < had.min()) | (has > had.max())).sum() if len(had) else 0
        if 2 * beyond > len(has):
            warnings.warn(
                f"feature '{name}': {beyond} of {len(has)} values of the new release are not in the"
                f" range of the campaign's, {had.min():.4g} to {had.max():.4g}: check its unit and"
                " its transform",
                stacklevel=6,
            )


def _made(table: SourceTable, name: str) -> Mapping[str, Any]:
    """How its release made a feature; of campaigns begun before that was on record, nothing."""
    schema = table.provenance.get("schema")
    features = schema.get("features") if isinstance(schema, Mapping) else None
    return features.get(name, {}) if isinstance(features, Mapping) else {}


def _check_making(name: str, before: Mapping[str, Any], new: Mapping[str, Any], warn: bool) -> None:
    """InputError for another transform, or columns that have changed places; their names may be
    others in a new release."""
    if not before or not new:
        return
    was, now = (each.get("transform") or "none" for each in (before, new))
    if was != now:
        raise InputError(
            f"feature '{name}' has the transform '{now}' in the new release and '{was}' in the"
            " campaign; make it as the campaign's in a schema: --schema FILE"
        )
    was_key, was = _made_of(before)
    key, now = _made_of(new)
    differently = (
        f"feature '{name}' is the {_said(key, now)} in the new release and the"
        f" {_said(was_key, was)} in the campaign"
    )
    # A colour may be a column of one release and made of two in another, not of itself.
    another = key != was_key and ("column" not in (key, was_key) or {*was} & {*now})
    if another or (now == was[::-1] and now != was):
        raise InputError(f"{differently}; make it as the campaign's in a schema: --schema FILE")
    if key != was_key and warn:
        warnings.warn(f"{differently}: taken for the same quantity", stacklevel=6)


def _made_of(feature: Mapping[str, Any]) -> tuple[str, list[str]]:
    """What a feature is, and of which columns or bands."""
    for key in ("difference", "ratio", "hardness"):
        if feature.get(key):
            return key, list(map(str, feature[key]))
    return "column", [str(feature.get("column") or "")]


def _said(key: str, columns: list[str]) -> str:
    return f"column {columns[0]}" if key == "column" else f"{key} of {' and '.join(columns)}"
