"""The durable memory of a campaign: SQLite, and a history that nobody can edit.

    setting  key -> JSON                                        how the campaign goes on
    source   id, name                                           names of the present release
    release  number, file, catalog provenance                   tables merged so far
    model    number, what it was fitted to, files               every model version
    history  number, time, who, action, source, label, score …  append-only, by triggers

A call returns after its transaction is on the disk: what was acknowledged survives kill -9 and a
power cut. Writers take turns by BEGIN IMMEDIATE and wait for each other;
whatever a decision rests on is read inside the transaction that acts on it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from gpal.active.campaign.database import (
    UNREADABLE,
    create,
    explained,
    open_database,
    read_only,
    transaction,
)
from gpal.errors import InputError, shown
from gpal.files.saved_data import check_fields, whole_number
from gpal.provenance import to_json

__all__ = ["Event", "Store"]

LONGEST_NAME = 200  # characters of who gave a label, and of the label
LONGEST_NOTE = 2000
SETTINGS = {
    "format": int,
    "strategy": str,
    "relearn_every": int,
    "parameters": dict,
    "groups": dict,
    "cuts": [str],
}


@dataclass(frozen=True)
class Event:
    """One line of the history; `name` is the source's present name."""

    number: int
    time: str
    who: str
    action: str
    source: int | None
    name: str | None
    label: str | None
    score: float | None
    strategy: str | None
    model: int | None
    undoes: int | None
    note: str


class Store:
    """One campaign's database. Use as a context manager, or `close` it."""

    def __init__(self, path: Path) -> None:
        if not path.is_file():
            raise InputError(
                f"no campaign in '{path.parent}'; start one with: gpal learn start CATALOG"
                f" --session {path.parent}"
            )
        self.path = path
        self.connection, self.writable = open_database(path)
        try:
            keys = [key for (key,) in self._rows("SELECT key FROM setting")]
            check_fields({key: self.setting(key) for key in keys}, SETTINGS, f"'{path}'")
            whole_number(self.setting("relearn_every"), "relearn_every", 1)
            groups = self.setting("groups")
            check_fields(groups, {name: [str] for name in groups}, f"'{path}'")
        except BaseException:
            self.close()
            raise

    @classmethod
    def create(cls, path: Path, settings: dict[str, Any]) -> Store:
        create(path, settings)
        return cls(path)

    def close(self) -> None:
        self.connection.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def transaction(self) -> AbstractContextManager[None]:
        """All or nothing, one writer at a time; on disk when the block ends."""
        if not self.writable:
            raise read_only(self.path)
        return transaction(self.connection, self.path)

    def _rows(self, query: str, *values: Any) -> list[Any]:
        try:
            return self.connection.execute(query, values).fetchall()
        except UNREADABLE as error:
            raise explained(error, self.path) from error

    # ---- reading ---------------------------------------------------------------------------------

    def setting(self, key: str) -> Any:
        rows = self._rows("SELECT value FROM setting WHERE key = ?", key)
        try:
            return json.loads(rows[0][0])
        except (IndexError, ValueError, RecursionError) as error:
            raise InputError(f"'{self.path}' is damaged (its setting '{key}')") from error

    def name(self, source: int) -> str:
        """The name of a source in the last release that has it."""
        rows = self._rows("SELECT name FROM source WHERE id = ?", source)
        if not rows:
            raise InputError(
                f"no source has the number {source} in the campaign; numbers are those of"
                " SourceTable.ids"
            )
        return rows[0][0]

    def names(self) -> dict[int, str]:
        """Source -> its name in the last release that has it."""
        return dict(self._rows("SELECT id, name FROM source"))

    def labels(self) -> dict[int, tuple[str, int, str, str]]:
        """Source -> (label, history number, time, who), as they stand now."""
        rows = self._rows("SELECT * FROM label_now ORDER BY number")
        return {source: tuple(rest) for source, *rest in rows}  # type: ignore[misc]

    def words(self) -> set[str]:
        """All labels that were ever given."""
        return {
            label
            for (label,) in self._rows("SELECT DISTINCT label FROM history WHERE action = 'label'")
        }

    def history(self, last: int | None = None) -> list[Event]:
        """Events, the oldest first; only the `last` so many if given."""
        rows = self._rows(
            "SELECT h.number, time, who, action, source, name, label, score, strategy, model,"
            " undoes, note FROM history AS h LEFT JOIN source ON source.id = h.source"
            " ORDER BY h.number DESC LIMIT ?",
            -1 if last is None else last,
        )
        return [Event(*row) for row in reversed(rows)]

    def last_label_event(self) -> int:
        """Number of the newest event that changed labels or sources, 0 for none."""
        return self._rows(
            "SELECT COALESCE(MAX(number), 0) FROM history"
            " WHERE action IN ('label', 'undo', 'merge')"
        )[0][0]

    def label_events_after(self, event: int) -> int:
        """How many labels were given or taken back since."""
        return self._rows(
            "SELECT COUNT(*) FROM history WHERE action IN ('label', 'undo') AND number > ?", event
        )[0][0]

    def last_question(self, source: int) -> tuple[float, str, int] | None:
        """(score, strategy, model) at which a source was last asked for."""
        rows = self._rows(
            "SELECT score, strategy, model FROM history WHERE source = ? AND action = 'ask'"
            " ORDER BY number DESC LIMIT 1",
            source,
        )
        return rows[0] if rows else None

    def release(self) -> tuple[int, str]:
        """(number, file) of the present release."""
        rows = self._rows("SELECT number, file FROM release ORDER BY number DESC LIMIT 1")
        if not rows:
            raise InputError(f"'{self.path}' is damaged (it has no sources)")
        return rows[0]

    def origin(self, release: int) -> Any:
        """The provenance of a release's catalog."""
        rows = self._rows("SELECT provenance FROM release WHERE number = ?", release)
        try:
            return json.loads(rows[0][0])
        except (IndexError, ValueError, RecursionError) as error:
            raise InputError(f"'{self.path}' is damaged (where its sources are from)") from error

    def release_files(self) -> list[str]:
        """Files of all releases, the newest first."""
        rows = self._rows("SELECT file FROM release ORDER BY number DESC")
        return [file for (file,) in rows]

    def models(self) -> list[dict[str, Any]]:
        """Every model version, the oldest first."""
        columns = ("number", "release", "history", "n_labels", "learned_at", "time")
        rows = self._rows(f"SELECT {', '.join(columns)} FROM model ORDER BY number")
        return [dict(zip(columns, row, strict=True)) for row in rows]

    # ---- writing, inside a transaction -----------------------------------------------------------

    def record(
        self,
        action: str,
        who: str,
        *,
        source: int | None = None,
        label: str | None = None,
        score: float | None = None,
        strategy: str | None = None,
        model: int | None = None,
        undoes: int | None = None,
        note: str = "",
    ) -> int:
        """Append to the history; the number of the event. InputError for text that could not be
        printed again."""
        for what, text, longest in (
            ("who", who, LONGEST_NAME),
            ("label", label or "", LONGEST_NAME),
            ("note", note, LONGEST_NOTE),
        ):
            if not text.isprintable() or len(text) > longest:
                raise InputError(
                    f"the {what} '{shown(text)}' is kept on one line of at most {longest}"
                    " characters that can be printed; shorten it, or leave out the others"
                )
        cursor = self.connection.execute(
            "INSERT INTO history (time, who, action, source, label, score, strategy, model, undoes,"
            " note) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (now(), who, action, source, label, score, strategy, model, undoes, note),
        )
        return int(cursor.lastrowid or 0)

    def change_setting(self, key: str, value: Any) -> None:
        self.connection.execute("UPDATE setting SET value = ? WHERE key = ?", (to_json(value), key))

    def write_nothing(self) -> None:
        """A write that changes nothing."""
        self.connection.execute("INSERT INTO setting VALUES ('', '')")
        self.connection.execute("DELETE FROM setting WHERE key = ''")

    def add_release(self, file: str, provenance: Any, sources: Sequence[tuple[int, str]]) -> int:
        """A further table; sources (id, name) get their names in it."""
        cursor = self.connection.execute(
            "INSERT INTO release (file, provenance) VALUES (?, ?)", (file, to_json(provenance))
        )
        self.connection.executemany(
            "INSERT INTO source VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET name = excluded.name",
            [(int(number), str(name)) for number, name in sources],
        )
        return int(cursor.lastrowid or 0)

    def next_model(self) -> int:
        return self._rows("SELECT COALESCE(MAX(number), 0) + 1 FROM model")[0][0]

    def add_model(
        self, number: int, release: int, history: int, n_labels: int, learned_at: int
    ) -> None:
        self.connection.execute(
            "INSERT INTO model VALUES (?, ?, ?, ?, ?, ?)",
            (number, release, history, n_labels, learned_at, now()),
        )


def now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")
