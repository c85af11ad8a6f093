"""Values of a catalog's columns as a page shows them."""

from __future__ import annotations

import math
from typing import Any

from gpal.catalog.cells import LARGEST_WHOLE

__all__ = ["cell"]


def cell(value: Any) -> str:
    """A number to four digits, whole ones as they are; text as it stands; – for nothing."""
    if isinstance(value, float):
        if math.isnan(value):
            return "–"
        return (
            f"{value:.0f}" if value.is_integer() and abs(value) <= LARGEST_WHOLE else f"{value:.4g}"
        )
    return str(value) or "–"
