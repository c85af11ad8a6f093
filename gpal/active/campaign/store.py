"""The durable memory of a campaign: SQLite with a write-ahead log, and a history nobody can edit.

    setting  key -> JSON                                        how the campaign goes on
    source   id, name                                           names of the present release
    release  number, file, catalog provenance                   tables merged so far
    model    number, what it was fitted to, files               every model version
    history  number, time, who, action, source, label, score …  append-only, by triggers

A call returns after its transaction is on the disk (synchronous = FULL): what was acknowledged
survives kill -9 and a power cut. Writers take turns by BEGIN IMMEDIATE and wait for each other;
whatever a decision rests on is read inside the transaction that acts on it.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from gpal.errors import InputError
from gpal.provenance import to_json

__all__ = ["Event", "Store"]

FORMAT = 1
WAIT_SECONDS = 60.0

TABLES = """
CREATE TABLE setting (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE source (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE release (number INTEGER PRIMARY KEY, file TEXT NOT NULL, provenance TEXT NOT NULL);
CREATE TABLE model (
    number INTEGER PRIMARY KEY,
    release INTEGER NOT NULL REFERENCES release (number),
    history INTEGER NOT NULL,
    n_labels INTEGER NOT NULL,
    learned_at INTEGER NOT NULL,
    time TEXT NOT NULL
);
CREATE TABLE history (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    time TEXT NOT NULL,
    who TEXT NOT NULL,
    action TEXT NOT NULL CHECK (action IN ('start', 'ask', 'label', 'undo', 'refit', 'merge')),
    source INTEGER REFERENCES source (id),
    label TEXT,
    score REAL,
    strategy TEXT,
    model INTEGER,
    undoes INTEGER REFERENCES history (number),
    note TEXT NOT NULL DEFAULT ''
);
CREATE INDEX history_of_source ON history (source);
CREATE UNIQUE INDEX undone_once ON history (undoes) WHERE undoes IS NOT NULL;
CREATE TRIGGER history_is_not_edited BEFORE UPDATE ON history
    BEGIN SELECT RAISE(ABORT, 'the history is append-only'); END;
CREATE TRIGGER history_is_not_erased BEFORE DELETE ON history
    BEGIN SELECT RAISE(ABORT, 'the history is append-only'); END;
CREATE VIEW label_now AS
    SELECT source, label, number, time, who FROM history AS given
    WHERE action = 'label' AND number = (
        SELECT MAX(number) FROM history AS other
        WHERE other.source = given.source AND other.action = 'label'
        AND other.number NOT IN (SELECT undoes FROM history WHERE undoes IS NOT NULL)
    );
"""


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
        self.connection = _connect(path)
        try:
            found = int(self.setting("format"))
        except (sqlite3.DatabaseError, TypeError, ValueError):
            self.close()
            raise InputError(
                f"'{path}' is not the database of a gpal campaign; check --session"
            ) from None
        if found > FORMAT:
            self.close()
            raise InputError(f"'{path}' was written by a later gpal; upgrade gpal")

    @classmethod
    def create(cls, path: Path, settings: dict[str, Any]) -> Store:
        path.touch()  # with the rights of other files; SQLite's own are never a group's to write
        connection = _connect(path)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.executescript(f"BEGIN; {TABLES} COMMIT;")
        connection.executemany(
            "INSERT INTO setting VALUES (?, ?)",
            [(key, to_json(value)) for key, value in {"format": FORMAT, **settings}.items()],
        )
        connection.close()
        return cls(path)

    def close(self) -> None:
        self.connection.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing, one writer at a time; on disk when the block ends."""
        try:
            self.connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            raise InputError(
                f"the campaign is locked by another process for more than {WAIT_SECONDS:g} s"
                f" ({error}); try again"
            ) from error
        try:
            yield
        except BaseException:
            self.connection.execute("ROLLBACK")
            raise
        self.connection.execute("COMMIT")

    # ---- reading ---------------------------------------------------------------------------------

    def setting(self, key: str) -> Any:
        (value,) = self.connection.execute(
            "SELECT value FROM setting WHERE key = ?", (key,)
        ).fetchone()
        return json.loads(value)

    def name(self, source: int) -> str:
        """The name of a source in the last release that has it."""
        (name,) = self.connection.execute(
            "SELECT name FROM source WHERE id = ?", (source,)
        ).fetchone()
        return name

    def labels(self) -> dict[int, tuple[str, int, str, str]]:
        """Source -> (label, history number, time, who), as they stand now."""
        rows = self.connection.execute("SELECT * FROM label_now ORDER BY number")
        return {source: tuple(rest) for source, *rest in rows}  # type: ignore[misc]

    def history(self, last: int | None = None) -> list[Event]:
        """Events, the oldest first; only the `last` so many if given."""
        rows = self.connection.execute(
            "SELECT h.number, time, who, action, source, name, label, score, strategy, model,"
            " undoes, note FROM history AS h LEFT JOIN source ON source.id = h.source"
            " ORDER BY h.number DESC LIMIT ?",
            (-1 if last is None else last,),
        ).fetchall()
        return [Event(*row) for row in reversed(rows)]

    def last_label_event(self) -> int:
        """Number of the newest event that changed labels or sources, 0 for none."""
        return self.connection.execute(
            "SELECT COALESCE(MAX(number), 0) FROM history"
            " WHERE action IN ('label', 'undo', 'merge')"
        ).fetchone()[0]

    def last_question(self, source: int) -> tuple[float, str, int] | None:
        """(score, strategy, model) at which a source was last asked for."""
        return self.connection.execute(
            "SELECT score, strategy, model FROM history WHERE source = ? AND action = 'ask'"
            " ORDER BY number DESC LIMIT 1",
            (source,),
        ).fetchone()

    def release(self) -> tuple[int, str]:
        """(number, file) of the present release."""
        return self.connection.execute(
            "SELECT number, file FROM release ORDER BY number DESC LIMIT 1"
        ).fetchone()

    def release_files(self) -> list[str]:
        """Files of all releases, the newest first."""
        rows = self.connection.execute("SELECT file FROM release ORDER BY number DESC")
        return [file for (file,) in rows]

    def models(self) -> list[dict[str, Any]]:
        """Every model version, the oldest first."""
        columns = ("number", "release", "history", "n_labels", "learned_at", "time")
        rows = self.connection.execute(
            f"SELECT {', '.join(columns)} FROM model ORDER BY number"
        ).fetchall()
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
        """Append to the history; the number of the event."""
        cursor = self.connection.execute(
            "INSERT INTO history (time, who, action, source, label, score, strategy, model, undoes,"
            " note) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (now(), who, action, source, label, score, strategy, model, undoes, note),
        )
        return int(cursor.lastrowid or 0)

    def change_setting(self, key: str, value: Any) -> None:
        self.connection.execute("UPDATE setting SET value = ? WHERE key = ?", (to_json(value), key))

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
        return self.connection.execute("SELECT COALESCE(MAX(number), 0) + 1 FROM model").fetchone()[
            0
        ]

    def add_model(
        self, number: int, release: int, history: int, n_labels: int, learned_at: int
    ) -> None:
        self.connection.execute(
            "INSERT INTO model VALUES (?, ?, ?, ?, ?, ?)",
            (number, release, history, n_labels, learned_at, now()),
        )


def now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


def _connect(path: Path) -> sqlite3.Connection:
    try:
        connection = sqlite3.connect(path, timeout=WAIT_SECONDS, isolation_level=None)
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()
    except sqlite3.DatabaseError as error:
        raise InputError(f"cannot open '{path}': {error}; is it a gpal campaign?") from error
    return connection
