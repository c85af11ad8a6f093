"""Targets, labels and history of a campaign as files for other programs, by the ending of the name.

    .csv  .fits  .vot / .xml (VOTable)  .reg (a region file for DS9 and Aladin)

Every file is whole or absent, and carries its provenance. A text that a format cannot hold is
refused: FITS holds all, CSV all but halves of characters, VOTable and regions what is
printable.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gpal.active.campaign import Campaign
from gpal.errors import InputError, shown
from gpal.files.csv import write_csv
from gpal.files.fits import write_fits
from gpal.files.output import atomic_path, check_apart
from gpal.names import check_classes, probability_column
from gpal.provenance import provenance, to_json

if TYPE_CHECKING:
    from astropy.table import Table

    from gpal.active.campaign.table import SourceTable

__all__ = ["ENDINGS", "export_history", "export_labels", "export_targets"]

ENDINGS = (".csv", ".fits", ".vot", ".xml", ".reg")
RADIUS = 0.1  # degrees, of a source without a position error
UCDS = {
    "name": "meta.id;meta.main",
    "ra": "pos.eq.ra;meta.main",
    "dec": "pos.eq.dec;meta.main",
    "position_error": "stat.error;pos.eq",
    "rank": "stat.rank",
    "label": "src.class",
    "entropy": "stat.value",
}


def export_targets(
    campaign: Campaign, path: str | os.PathLike, number: int | None = None, **options: Any
) -> int:
    """The ranking of the newest model, the best `number` of it; how many were written.

    options  of Campaign.ranking: `observing`, `diverse`
    """
    _check(path)
    scored = campaign.scores()
    check_classes(scored.classes)
    targets = campaign.ranking(scored, number, **options)
    rows = [t.row for t in targets]
    ellipses = campaign.table.position_error[rows]
    longer = ellipses[:, :2].max(axis=1)
    strategy = campaign.store.setting("strategy")
    table = _table(
        [
            ("rank", np.arange(1, len(targets) + 1), "1 is the best", None),
            ("name", [t.name for t in targets], "source", None),
            ("ra", [t.ra for t in targets], "right ascension, J2000", "deg"),
            ("dec", [t.dec for t in targets], "declination, J2000", "deg"),
            *(
                [("position_error", longer, "95 % error, the longer half axis", "deg")]
                if np.isfinite(longer).any()
                else []
            ),
            ("score", [t.score for t in targets], f"{strategy}, per observing time", None),
            *(
                (probability_column(c), [t.probabilities[c] for t in targets], of_class, None)
                for c, of_class in ((c, f"probability of {c}") for c in scored.classes)
            ),
            ("entropy", [t.entropy for t in targets], "over the error bars, nats", None),
            *(
                (f"entropy_{part}", [getattr(t, part) for t in targets], f"{what}, nats", None)
                for part, what in (
                    ("measurement", "entropy from the error bars"),
                    ("model", "entropy from few labels"),
                    ("overlap", "entropy from overlapping classes"),
                )
            ),
        ]
    )
    for name, column in campaign.table.carried.items():
        table[name] = column[rows]
    about = {"what": "targets", "model": scored.number, "n_labels": scored.n_labels}
    _write(table, Path(path), campaign, about, ellipses)
    return len(targets)


def export_labels(campaign: Campaign, path: str | os.PathLike) -> int:
    """The labels that the campaign gave, as they stand; how many were written.

    Those of sources that the present release lacks too, placed as in the last one that had them.
    """
    _check(path)
    given = campaign.store.labels()
    place: dict[int, tuple[SourceTable, int]] = {}
    for release in campaign.releases():
        for row in np.flatnonzero(np.isin(release.ids, list(given))):
            place.setdefault(int(release.ids[row]), (release, int(row)))
    sources = [place[number] for number in given]
    table = _table(
        [
            ("name", [str(release.names[row]) for release, row in sources], "source", None),
            ("ra", [release.ra[row] for release, row in sources], "right ascension, J2000", "deg"),
            ("dec", [release.dec[row] for release, row in sources], "declination, J2000", "deg"),
            ("label", [value[0] for value in given.values()], "class given", None),
            ("time", [value[2] for value in given.values()], "when, UTC", None),
            ("who", [value[3] for value in given.values()], "who gave it", None),
        ]
    )
    ellipses = [release.position_error[row] for release, row in sources]
    _write(table, Path(path), campaign, {"what": "labels"}, ellipses)
    return len(given)


def export_history(campaign: Campaign, path: str | os.PathLike) -> int:
    """Every event of the history, the oldest first; how many were written."""
    _check(path, ENDINGS[:-1])
    events = campaign.store.history()

    def column(name: str, fill: Any) -> Any:
        values = [getattr(event, name) for event in events]
        absent = [value is None and fill != "" for value in values]
        return np.ma.array([fill if value is None else value for value in values], mask=absent)

    table = _table(
        [
            ("number", column("number", 0), "of the event", None),
            ("time", column("time", ""), "when, UTC", None),
            ("who", column("who", ""), "who caused it", None),
            ("action", column("action", ""), "start, ask, label, undo, refit or merge", None),
            ("name", column("name", ""), "source, as the last release calls it", None),
            ("label", column("label", ""), "class given or taken back", None),
            ("score", column("score", np.nan), "at which the source was asked for", None),
            ("strategy", column("strategy", ""), "that asked", None),
            ("model", column("model", 0), "version that asked, or was made", None),
            ("undoes", column("undoes", 0), "number of the event taken back", None),
            ("note", column("note", ""), "of who caused it", None),
        ]
    )
    _write(table, Path(path), campaign, {"what": "history"})
    return len(events)


def _check(path: str | os.PathLike, endings: Sequence[str] = ENDINGS) -> None:
    if Path(path).suffix.lower() not in endings:
        raise InputError(
            f"'{Path(path).name}' should end in one of {', '.join(endings)}: that tells the format"
        )


def _table(columns: Sequence[tuple[str, Any, str, str | None]]) -> Table:
    from astropy.table import Column, MaskedColumn, Table

    table = Table()
    for name, values, description, unit in columns:
        values = np.ma.asarray(values, dtype=str if len(values) == 0 and unit is None else None)
        kind = MaskedColumn if np.ma.is_masked(values) else Column
        ucd = "stat.probability" if name.startswith("p_") else UCDS.get(name)
        meta = {"ucd": ucd} if ucd else None
        table[name] = kind(values, description=description, unit=unit, meta=meta)
    return table


def _write(
    table: Table, path: Path, campaign: Campaign, about: dict[str, Any], ellipses: Any = ()
) -> None:
    origin = provenance(campaign.table.provenance, {**about, "folder": campaign.folder.name})
    ending = path.suffix.lower()
    check_apart([path], campaign.files)  # a link may lead there
    with atomic_path(path) as temporary:
        if ending == ".csv":
            columns = {column.name: column for column in table.itercols()}
            write_csv(temporary, columns, [f"provenance: {to_json(origin)}"])
        elif ending == ".fits":
            table.meta = {"CREATOR": f"gpal {origin['gpal']}", "PROVENAN": to_json(origin)}
            write_fits(table, temporary)
        elif ending == ".reg":
            temporary.write_text(_regions(table, ellipses, to_json(origin)), "utf-8")
        else:
            from astropy.io.votable.exceptions import W03

            _check_text(table)
            table.meta = {"description": to_json(origin)}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", W03)  # not every heading is an XML ID too
                table.write(temporary, format="votable")


def _check_text(table: Table) -> None:
    """Raise InputError for a cell that XML cannot hold, or not as it stands."""
    for column in table.itercols():
        if column.dtype.kind != "U":
            continue
        for row, text in enumerate(np.ma.asarray(column).filled("").tolist()):
            if not text.isprintable() or text != text.strip():
                raise InputError(
                    f"column '{column.name}', row {row}: VOTable cannot hold '{shown(text)}' as it"
                    " stands; write .fits"
                )


def _regions(table: Table, ellipses: Any, origin: str) -> str:
    """One ellipse per source with a position error, a circle otherwise.

    DS9 turns an ellipse from west over north; position angles run from north over east: + 90°.
    """
    lines = [
        "# Region file format: DS9 version 4.1",
        f"# provenance: {origin}",
        'global color=green width=1 font="helvetica 10 normal roman"',
        "icrs",
    ]
    nowhere = 0
    for k, (a, b, angle) in enumerate(ellipses):
        ra, dec = table["ra"][k], table["dec"][k]
        if not (np.isfinite(ra) and np.isfinite(dec)):
            nowhere += 1
            continue
        place = f"{ra:.6f},{dec:.6f}"
        known = np.isfinite([a, b]).all() and a > 0 and b > 0
        if known and np.isfinite(angle):
            shape = f'ellipse({place},{3600 * a:.2f}",{3600 * b:.2f}",{(angle + 90) % 360:.2f})'
        else:
            shape = f'circle({place},{3600 * (max(a, b) if known else RADIUS):.2f}")'
        rank = f"{table['rank'][k]} " if "rank" in table.colnames else ""
        lines.append(f"{shape} # text={_region_text(rank + str(table['name'][k]))}")
    if nowhere:
        warnings.warn(
            f"{nowhere} of {len(ellipses)} sources have no position, and no region", stacklevel=2
        )
    return "\n".join(lines) + "\n"


def _region_text(text: str) -> str:
    """In marks that the text does not hold: DS9 knows three kinds, and no escapes."""
    for opening, closing in ("{}", '""', "''"):
        if text.isprintable() and opening not in text and closing not in text:
            return f"{opening}{text}{closing}"
    raise InputError(f"a region file cannot hold the name '{shown(text)}'; write .csv or .fits")
