"""gpal: classify catalog sources with their error bars, and choose which to observe next."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gpal._version import __version__

# Loaded on first use: `import gpal` must not load TensorFlow.
_PUBLIC = {
    "GPClassifier": "gpal.classifier",
    "InputError": "gpal.errors",
    "Measurements": "gpal.measurements",
    "NoisyInputGP": "gpal.noisy_input_gp",
    "load_catalog": "gpal.catalog",
    "predict": "gpal.jobs.prediction",
    "predict_file": "gpal.jobs.prediction",
}
__all__ = [
    "GPClassifier",
    "InputError",
    "Measurements",
    "NoisyInputGP",
    "__version__",
    "load_catalog",
    "predict",
    "predict_file",
]

if TYPE_CHECKING:
    from gpal.catalog import load_catalog
    from gpal.classifier import GPClassifier
    from gpal.errors import InputError
    from gpal.jobs.prediction import predict, predict_file
    from gpal.measurements import Measurements
    from gpal.noisy_input_gp import NoisyInputGP


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        return getattr(import_module(_PUBLIC[name]), name)
    raise AttributeError(f"module 'gpal' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(__all__)
