"""gpal: classify catalog sources with their error bars, and choose which to observe next.

classify(catalog, "results")          a calibrated probability for every source, and a report
candidates("results", "psr", 0.9)     those of one class, as a list of a stated purity
predict(model, "tonight.csv")         the same for another table, by the model of before
validate(old, new, "validation")      train on an old release, test on what a newer one identified
compare(old, new, lists)              published probabilities beside it, on the same sources
cross_validate(models, X, y)          several models in the same folds
plot, metrics                         every figure, every score, as functions

GPClassifier, NoisyInputGP            scikit-learn estimators that take error bars
Measurements, load_catalog            values with their errors; a table as such
"""

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
    "candidates": "gpal.jobs.candidate_list",
    "classify": "gpal.jobs.classification",
    "compare": "gpal.jobs.comparison",
    "cross_validate": "gpal.evaluation.cross_validation",
    "load_catalog": "gpal.catalog",
    "predict": "gpal.jobs.prediction",
    "predict_file": "gpal.jobs.prediction",
    "validate": "gpal.jobs.validation",
}
_MODULES = ("metrics", "plot")
_WITHOUT_GPFLOW = {"InputError", "Measurements", "compare", "load_catalog"}
__all__ = [
    "GPClassifier",
    "InputError",
    "Measurements",
    "NoisyInputGP",
    "__version__",
    "candidates",
    "classify",
    "compare",
    "cross_validate",
    "load_catalog",
    "metrics",
    "plot",
    "predict",
    "predict_file",
    "validate",
]

if TYPE_CHECKING:
    from gpal import metrics, plot
    from gpal.catalog import load_catalog
    from gpal.classifier import GPClassifier
    from gpal.errors import InputError
    from gpal.evaluation.cross_validation import cross_validate
    from gpal.jobs.candidate_list import candidates
    from gpal.jobs.classification import classify
    from gpal.jobs.comparison import compare
    from gpal.jobs.prediction import predict, predict_file
    from gpal.jobs.validation import validate
    from gpal.measurements import Measurements
    from gpal.noisy_input_gp import NoisyInputGP


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        if name not in _WITHOUT_GPFLOW:
            import_module("gpal.tensorflow_start").check_start()
        return getattr(import_module(_PUBLIC[name]), name)
    if name in _MODULES:
        return import_module(f"gpal.{name}")
    raise AttributeError(f"module 'gpal' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(__all__)
