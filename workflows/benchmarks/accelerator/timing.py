"""Median wall time of repeated calls."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np


def seconds(function: Callable[[], object], warm_up: int, repeats: int) -> float:
    """Of `repeats` calls, after as many as `warm_up` that are not counted."""
    times = []
    for _ in range(warm_up + repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return float(np.median(times[warm_up:]))
