"""JSON that gpal wrote, read strictly."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from gpal.errors import InputError, shown

__all__ = ["read_json"]


def read_json(path: Path) -> dict[str, Any]:
    """An object of standard JSON: no NaN, no key twice."""
    content = json.loads(
        path.read_text("utf-8"),
        object_pairs_hook=_object,
        parse_float=_finite,
        parse_constant=_finite,
    )
    if not isinstance(content, dict):
        raise InputError("it holds no JSON object")
    return content


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) != len(pairs):
        raise InputError("it has a key twice")
    return content


def _finite(text: str) -> float:
    if not math.isfinite(float(text)):
        raise InputError(f"{shown(text)} is no number of JSON")
    return float(text)
