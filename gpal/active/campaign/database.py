"""The file campaign.sqlite: how it is made and opened, and what is checked when it is.

It has a rollback journal (DELETE, synchronous = EXTRA): one mode that is safe on network file
systems, whose locks SQLite asks for, and that opens where nothing can be written. Campaigns of
before, with a write-ahead log, are turned into such at their next opening, unless they are in use.

A database may come from anyone, or from a disk that forgets. Opening compares its tables and
triggers with ours word by word, lets SQLite look at its pages, and goes through what its rows say
of each other: an event that is missing, or that refers to nothing, is seen.
"""

from __future__ import annotations

import os
import sqlite3
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from gpal.errors import InputError, shown
from gpal.provenance import to_json

__all__ = [
    "FORMAT",
    "UNREADABLE",
    "WAIT_SECONDS",
    "create",
    "explained",
    "open_database",
    "read_only",
    "transaction",
]

FORMAT = 1
WAIT_SECONDS = 60.0
UNREADABLE = (sqlite3.Error, UnicodeDecodeError)  # text that is none, in a message or a row

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
CREATE TRIGGER history_is_not_replaced BEFORE INSERT ON history
    WHEN EXISTS (SELECT 1 FROM history WHERE number = NEW.number OR undoes = NEW.undoes)
    BEGIN SELECT RAISE(ABORT, 'the history is append-only'); END;
CREATE VIEW label_now AS
    SELECT source, label, number, time, who FROM history AS given
    WHERE action = 'label' AND number = (
        SELECT MAX(number) FROM history AS other
        WHERE other.source = given.source AND other.action = 'label'
        AND other.number NOT IN (SELECT undoes FROM history WHERE undoes IS NOT NULL)
    );
"""
NEWER = "history_is_not_replaced"  # which campaigns of gpal 0.2 and before do not have

# What the rows say of each other: a query that finds none, and what it means if it does.
RULES = {
    """SELECT 1 FROM (SELECT COUNT(*) AS n, COALESCE(MAX(number), 0) AS last FROM history)
       WHERE n IS NOT last
       OR n IS NOT COALESCE((SELECT seq FROM sqlite_sequence WHERE name = 'history'), 0)""": (
        "events are missing from the history"
    ),
    """SELECT 1 FROM history WHERE action IN ('label', 'undo')
       AND (source IS NULL OR label IS NULL)""": "a label is of no source",
    """SELECT 1 FROM history AS h LEFT JOIN history AS g ON g.number = h.undoes
       WHERE (h.action = 'undo') IS NOT (h.undoes IS NOT NULL)
       OR h.action = 'undo' AND (g.action IS NOT 'label' OR g.source IS NOT h.source
       OR g.label IS NOT h.label OR g.number >= h.number)""": "an undo is not of a label",
    """SELECT 1 FROM model WHERE (SELECT COUNT(*) FROM model) IS NOT (SELECT MAX(number) FROM model)
       OR history < 0 OR history > (SELECT MAX(number) FROM history)
       OR learned_at < 1 OR n_labels < 1""": "a model is of labels that there are not",
    """SELECT 1 FROM release WHERE file IS NOT 'release-' || number || '.npz'
       OR (SELECT COUNT(*) FROM release) IS NOT (SELECT MAX(number) FROM release)""": (
        "a release is missing"
    ),
}


def create(path: Path, settings: Mapping[str, Any]) -> None:
    """A new database with these settings."""
    path.touch()  # with the rights of other files; SQLite's own are never a group's to write
    connection = _connect(path, "rw")
    connection.executescript(f"BEGIN; {TABLES} COMMIT;")
    connection.executemany(
        "INSERT INTO setting VALUES (?, ?)",
        [(key, to_json(value)) for key, value in {"format": FORMAT, **settings}.items()],
    )
    connection.close()


def open_database(path: Path) -> tuple[sqlite3.Connection, bool]:
    """(connection, whether it can be written); InputError where it is not a campaign's, or damaged.

    Where file or folder cannot be written, it can be looked at.
    """
    writable = os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)
    connection = None
    try:
        connection = _connect(path, "rw") if writable else _read_only(path)
        _check_format(connection, path)
        if writable:
            _leave_write_ahead_log(connection)
        _check(connection, path, writable)
    except UNREADABLE as error:
        if connection is not None:
            connection.close()
        raise explained(error, path) from error
    except BaseException:
        if connection is not None:
            connection.close()
        raise
    return connection, writable


@contextmanager
def transaction(connection: sqlite3.Connection, path: Path) -> Iterator[None]:
    """All or nothing, one writer at a time; on disk when the block ends."""
    try:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("COMMIT")
    except BaseException as error:
        if connection.in_transaction:  # SQLite itself has ended it where the disk is full
            connection.execute("ROLLBACK")
        if isinstance(error, sqlite3.Error):
            raise explained(error, path) from error
        raise


def explained(error: sqlite3.Error | UnicodeDecodeError, path: Path) -> Exception:
    """The InputError for what a user can do something about; the error itself for anything else."""
    text = str(error).lower()
    if isinstance(error, sqlite3.IntegrityError) or "full" in text or "disk i/o" in text:
        return error
    if "locked" in text or "busy" in text:
        return InputError(
            f"the campaign is locked by another process for more than {WAIT_SECONDS:g} s"
            f" ({error}); try again"
        )
    if "readonly" in text or "unable to open" in text:
        return read_only(path)
    return _damaged(path, str(error))


def read_only(path: Path) -> InputError:
    """For whoever wants to write all the same."""
    return InputError(
        f"the campaign in '{path.parent}' can only be read here: look at it, export it, or copy the"
        " folder to where you may write"
    )


def _damaged(path: Path, what: str) -> InputError:
    return InputError(f"'{path}' is damaged ({shown(what)}); take the folder from a copy")


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}",
        uri=True,
        timeout=WAIT_SECONDS,
        isolation_level=None,
    )
    try:
        connection.execute("PRAGMA synchronous = EXTRA")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()
    except BaseException:
        connection.close()
        raise
    return connection


def _read_only(path: Path) -> sqlite3.Connection:
    log = path.with_name(path.name + "-wal")
    with open(path, "rb") as file:
        logged = file.read(20)[18:] == b"\x02\x02"  # of before: a log needs files beside it
    if logged and not log.exists():  # nobody has it open
        return _connect(path, "ro&immutable=1")
    try:
        return _connect(path, "ro")
    except sqlite3.OperationalError as error:
        for ending in ("-wal", "-journal"):
            left = path.with_name(path.name + ending)
            if left.exists() and left.stat().st_size:
                raise InputError(
                    f"a process died while it wrote into the campaign in '{path.parent}', which can"
                    " only be read here: open it once where it can be written, or copy the folder"
                    " there"
                ) from error
        raise


def _leave_write_ahead_log(connection: sqlite3.Connection) -> None:
    if connection.execute("PRAGMA journal_mode").fetchone() != ("wal",):
        return
    connection.execute("PRAGMA busy_timeout = 0")
    try:
        connection.execute("PRAGMA journal_mode = DELETE").fetchone()
    except sqlite3.OperationalError:  # another process has it open: at the next opening
        pass
    finally:
        connection.execute(f"PRAGMA busy_timeout = {1000 * WAIT_SECONDS:.0f}")


def _check_format(connection: sqlite3.Connection, path: Path) -> None:
    try:
        (text,) = connection.execute("SELECT value FROM setting WHERE key = 'format'").fetchone()
        found = int(text)
    except sqlite3.OperationalError as error:
        if "locked" in str(error):
            raise
        raise _foreign(path, "it has no settings") from error
    except (TypeError, ValueError) as error:
        raise _foreign(path, "it has no format") from error
    if found > FORMAT:
        raise InputError(f"'{path}' was written by a later gpal; upgrade gpal")
    if found < FORMAT:
        raise _foreign(path, f"it has the format {found}")


def _foreign(path: Path, why: str) -> InputError:
    return InputError(f"'{path}' is not the database of a gpal campaign ({why}); check --session")


def _check(connection: sqlite3.Connection, path: Path, writable: bool) -> None:
    found, ours = _objects(connection), _our_objects()
    protection = {key for key in ours if key[0] == "trigger"}
    for kind, name in (found.keys() | ours.keys()) - (protection - found.keys()):
        if found.get((kind, name)) != ours.get((kind, name)):
            raise _foreign(path, f"the {kind} '{shown(name)}' is not as gpal makes it")
    if writable and (lost := protection - found.keys()):
        if lost != {("trigger", NEWER)}:
            warnings.warn(
                f"'{path}' had lost what keeps its history from being edited, which is in place"
                " again: compare the history with a copy",
                stacklevel=2,
            )
        with transaction(connection, path):
            for key in lost:
                sql = ours[key].replace("CREATE TRIGGER", "CREATE TRIGGER IF NOT EXISTS", 1)
                connection.execute(sql)
    (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if verdict != "ok":
        raise _damaged(path, verdict)
    if connection.execute("PRAGMA foreign_key_check").fetchone():
        raise _damaged(path, "a row refers to one that is not there")
    for table in (name for kind, name in ours if kind == "table"):
        if connection.execute(f"SELECT 1 FROM {table} WHERE {_wrong_types(table)}").fetchone():
            raise _damaged(path, f"a value of '{table}' is of another type")
    for query, meaning in RULES.items():
        if connection.execute(query).fetchone():
            raise _damaged(path, meaning)


def _objects(connection: sqlite3.Connection) -> dict[tuple[str, str], str]:
    rows = connection.execute(
        "SELECT type, name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
    )
    return {(kind, name): sql for kind, name, sql in rows}


@cache
def _our_objects() -> dict[tuple[str, str], str]:
    connection = sqlite3.connect(":memory:")
    connection.executescript(TABLES)
    objects = _objects(connection)
    connection.close()
    return objects


@cache
def _wrong_types(table: str) -> str:
    """A condition for rows with a value of another type than its column's."""
    connection = sqlite3.connect(":memory:")
    connection.executescript(TABLES)
    columns = connection.execute(f"PRAGMA table_info({table})").fetchall()
    connection.close()
    conditions = []
    for _, name, kind, needed, _, key in columns:
        allowed = (kind.lower(), *(() if needed or key else ("null",)))
        conditions.append(f"typeof({name}) NOT IN ({', '.join(map(repr, allowed))})")
    return " OR ".join(conditions)
