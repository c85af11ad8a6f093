"""Provenance of every output file: which code, which data and which settings made it."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from gpal._version import __version__

__all__ = ["json_safe", "provenance", "to_json"]


def provenance(
    catalog: Mapping[str, Any] | None = None,
    settings: Mapping[str, Any] | None = None,
    random_state: int | None = None,
) -> dict[str, Any]:
    """What made a result: gpal, catalog release and checksum, settings, seed, date, versions.

    The date is UTC in ISO 8601; SOURCE_DATE_EPOCH (seconds since 1970), where set, stands for now,
    so that a build can be repeated byte for byte.
    """
    return json_safe(
        {
            "gpal": __version__,
            "date": _now().isoformat(timespec="seconds"),
            "catalog": dict(catalog or {}),
            "settings": dict(settings or {}),
            "random_state": random_state,
            "python": platform.python_version(),
            "numpy": _version("numpy"),
            "scikit-learn": _version("scikit-learn"),
            "tensorflow": _version("tensorflow", "tensorflow-cpu"),
            "gpflow": _version("gpflow"),
            "platform": platform.platform(),
        }
    )


def _now() -> datetime:
    """A SOURCE_DATE_EPOCH that is no date is taken for none: a result is not lost for it."""
    try:
        return datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), timezone.utc)
    except (KeyError, ValueError, OverflowError, OSError):
        return datetime.now(timezone.utc)


def _version(*distributions: str) -> str | None:
    """Version of the first installed one, read from its metadata: nothing heavy is imported."""
    for name in distributions:
        try:
            return version(name)
        except PackageNotFoundError:
            continue
    return None


def json_safe(value: Any) -> Any:
    """`value` in JSON's own types: arrays as lists, NaN and infinities as null, the rest by str."""
    if isinstance(value, Mapping):
        return {str(key): json_safe(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return json_safe(value.tolist())
    if isinstance(value, list | tuple | set | frozenset):
        return [json_safe(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not np.isfinite(value):
        return None
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)


def to_json(value: Any, indent: int | None = None) -> str:
    """`value` as standard JSON (no NaN literals)."""
    return json.dumps(json_safe(value), indent=indent, allow_nan=False)
