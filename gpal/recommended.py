"""The model that gpal's commands take for a catalog, unless told otherwise.

Chosen on 4FGL's labelled sources and the pair 4FGL -> 4FGL-DR2 (workflows/validation/frozen.toml)
before any other pair of releases was looked at. `GPClassifier()` itself has defaults for data of
any kind: there the likelihood is integrated over the error bars, which on synthetic problems is
closest to the truth (docs/noisy_inputs.md), but was no better on Fermi-LAT sources, and dearer.
"""

from __future__ import annotations

from typing import Any

__all__ = ["RECOMMENDED_MODEL"]

RECOMMENDED_MODEL: dict[str, Any] = {
    "likelihood": "softmax",
    "input_noise": "first_order",
    "population": "flat",
    "kernel": "rbf",
    "shared_kernel": False,
}
