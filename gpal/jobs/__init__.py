"""What a command does, from a catalog to a folder of results.

classify(catalog, "results")       a calibrated probability for every source
candidates("results", "psr", 0.9)  those of one class, as a list of a stated purity
predict(model, "tonight.csv")      the same for another table, by the model of before
predict_file(model, "big.parquet", "out.parquet")   also for one that is larger than memory
validate(old, new, "validation")   train on an old release, test on what a newer one identified
compare(old, new, lists)           score published lists on what a newer release identified
send_table("results")              to TOPCAT, DS9 or Aladin, by SAMP
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

# Loaded on first use: scikit-learn and matplotlib are not for `gpal --help`.
_PUBLIC = {
    "ClassificationResult": "gpal.jobs.classification",
    "ComparisonResult": "gpal.jobs.comparison",
    "ValidationResult": "gpal.jobs.validation",
    "candidates": "gpal.jobs.candidate_list",
    "classify": "gpal.jobs.classification",
    "compare": "gpal.jobs.comparison",
    "predict": "gpal.jobs.prediction",
    "predict_file": "gpal.jobs.prediction",
    "send_source": "gpal.jobs.sending",
    "send_table": "gpal.jobs.sending",
    "validate": "gpal.jobs.validation",
}
__all__ = [
    "ClassificationResult",
    "ComparisonResult",
    "ValidationResult",
    "candidates",
    "classify",
    "compare",
    "predict",
    "predict_file",
    "send_source",
    "send_table",
    "validate",
]

if TYPE_CHECKING:
    from gpal.jobs.candidate_list import candidates
    from gpal.jobs.classification import ClassificationResult, classify
    from gpal.jobs.comparison import ComparisonResult, compare
    from gpal.jobs.prediction import predict, predict_file
    from gpal.jobs.sending import send_source, send_table
    from gpal.jobs.validation import ValidationResult, validate


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        return getattr(import_module(_PUBLIC[name]), name)
    raise AttributeError(f"module 'gpal.jobs' has no attribute '{name}'")
