"""Damage done to a file, at random and by seed: bytes as a disk or a network damages them, text as
an editor or a program that is nearly right does."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

__all__ = ["damage_bytes", "damage_text"]

Damage = Callable[[bytes, np.random.Generator], bytes]

# What turns up in the cells of other people's tables.
CELLS = (
    *(
        "",
        " ",
        "nan",
        "NaN",
        "NA",
        "inf",
        "-inf",
        "None",
        "null",
        "--",
        "1e400",
        "-0",
        "001",
        "1E5",
    ),
    *("0x10", "1_000", "1,5", "x", "True", "#", "=1+1", '"', "''", "9007199254740993"),
    *("\u0661", "β", "a\u0301", "\u202e", "\x1b[31m", "\x00", "\ufeff", "�", "$x$", "z" * 5000),
)


def damage_bytes(content: bytes, rng: np.random.Generator) -> bytes:
    """One to three of: a flipped bit, another byte, bytes inserted, dropped, doubled, zeroed, the
    end cut off, two blocks exchanged."""
    for _ in range(int(rng.integers(1, 4))):
        content = _BYTES[rng.integers(len(_BYTES))](content, rng)
    return content


def damage_text(content: bytes, rng: np.random.Generator) -> bytes:
    """One to three of: a cell replaced, a line doubled, dropped, exchanged or cut, a separator, a
    quote, a comment or a byte order mark put somewhere; now and then damage to the bytes."""
    for _ in range(int(rng.integers(1, 4))):
        kinds = _BYTES if rng.random() < 0.2 else _TEXT
        content = kinds[rng.integers(len(kinds))](content, rng)
    return content


def _place(content: bytes, rng: np.random.Generator) -> int:
    """Somewhere; every second time in the first kilobyte, where headers are."""
    end = min(len(content), 1024) if rng.random() < 0.5 else len(content)
    return int(rng.integers(end + 1))


def _flip(content: bytes, rng: np.random.Generator) -> bytes:
    if not content:
        return content
    damaged, k = bytearray(content), min(_place(content, rng), len(content) - 1)
    damaged[k] ^= 1 << int(rng.integers(8))
    return bytes(damaged)


def _other(content: bytes, rng: np.random.Generator) -> bytes:
    k = _place(content, rng)
    return content[:k] + bytes([int(rng.integers(256))]) + content[k + 1 :]


def _insert(content: bytes, rng: np.random.Generator) -> bytes:
    k = _place(content, rng)
    return content[:k] + rng.bytes(int(rng.integers(1, 9))) + content[k:]


def _drop(content: bytes, rng: np.random.Generator) -> bytes:
    k = _place(content, rng)
    return content[:k] + content[k + int(rng.integers(1, 65)) :]


def _double(content: bytes, rng: np.random.Generator) -> bytes:
    k, length = _place(content, rng), int(rng.integers(1, 3000))
    return content[: k + length] + content[k:]


def _zero(content: bytes, rng: np.random.Generator) -> bytes:
    k, length = _place(content, rng), int(rng.integers(1, 600))
    return content[:k] + bytes(len(content[k : k + length])) + content[k + length :]


def _truncate(content: bytes, rng: np.random.Generator) -> bytes:
    return content[: _place(content, rng)]


def _exchange(content: bytes, rng: np.random.Generator) -> bytes:
    a, b = sorted((_place(content, rng), _place(content, rng)))
    length = min(int(rng.integers(1, 200)), b - a)
    return (
        content[:a]
        + content[b : b + length]
        + content[a + length : b]
        + content[a : a + length]
        + content[b + length :]
    )


def _lines(content: bytes, rng: np.random.Generator) -> tuple[list[bytes], int]:
    lines = content.splitlines(keepends=True) or [b""]
    return lines, int(rng.integers(min(len(lines), 5) if rng.random() < 0.4 else len(lines)))


def _double_line(content: bytes, rng: np.random.Generator) -> bytes:
    lines, k = _lines(content, rng)
    return b"".join([*lines[: k + 1], *lines[k:]])


def _drop_line(content: bytes, rng: np.random.Generator) -> bytes:
    lines, k = _lines(content, rng)
    return b"".join([*lines[:k], *lines[k + 1 :]])


def _move_line(content: bytes, rng: np.random.Generator) -> bytes:
    lines, k = _lines(content, rng)
    line = lines.pop(k)
    lines.insert(int(rng.integers(len(lines) + 1)), line)
    return b"".join(lines)


def _cut_line(content: bytes, rng: np.random.Generator) -> bytes:
    lines, k = _lines(content, rng)
    lines[k] = lines[k][: int(rng.integers(len(lines[k]) + 1))] + b"\n"
    return b"".join(lines)


def _put(content: bytes, rng: np.random.Generator) -> bytes:
    marks = (b",", b'"', b"'", b"\n", b"\r", b"#", b"\x00", b"\xef\xbb\xbf", b"\xff", b"\t", b";")
    k = _place(content, rng)
    return content[:k] + marks[rng.integers(len(marks))] + content[k:]


def _comment(content: bytes, rng: np.random.Generator) -> bytes:
    lines, k = _lines(content, rng)
    return b"".join([*lines[:k], b"# a remark, with a comma\n", *lines[k:]])


def _cell(content: bytes, rng: np.random.Generator) -> bytes:
    lines, k = _lines(content, rng)
    cells = lines[k].rstrip(b"\r\n").split(b",")
    cells[rng.integers(len(cells))] = CELLS[rng.integers(len(CELLS))].encode()
    lines[k] = b",".join(cells) + b"\n"
    return b"".join(lines)


def _every_row(content: bytes, rng: np.random.Generator) -> bytes:
    """A field more, or less, in every row, as a program makes that forgets one in the header."""
    lines = content.splitlines() or [b""]
    more = rng.random() < 0.5
    return b"".join(
        line + b"\n" if k == 0 else (line + b",0\n" if more else line.rpartition(b",")[0] + b"\n")
        for k, line in enumerate(lines)
    )


_BYTES: tuple[Damage, ...] = (
    *(_flip, _flip, _other, _insert, _drop, _double, _zero, _truncate, _exchange),
)
_TEXT: tuple[Damage, ...] = (
    *(_cell, _cell, _cell, _double_line, _drop_line, _move_line, _cut_line, _put, _put),
    *(_comment, _every_row, _truncate),
)
