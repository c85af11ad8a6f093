"""The program in a process that is forked from one with all libraries loaded, with a classifier
that is quick: what takes its time is reading, cross-validation, figures and files."""

from __future__ import annotations

import atexit
import os
import sys

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from gpal.evaluation import logistic_regression
from gpal.provenance import to_json

# What the program imports, also on its way; this folder is not on the fork server's path.
PRELOAD = [
    *("gpal.cli", "gpal.jobs", "gpal.catalog", "gpal.report", "tensorflow", "pandas"),
    *("matplotlib.backends.backend_agg", "astropy.table", "astropy.io.fits", "sklearn.ensemble"),
]


class Quick(ClassifierMixin, BaseEstimator):
    """Logistic regression that can be told apart by its seed and save itself."""

    def __init__(self, random_state=None, verbose=False):
        self.random_state = random_state
        self.verbose = verbose

    def check_settings(self, *sizes):
        """Any will do."""

    def fit(self, X, y):
        self.model_ = logistic_regression().fit(X, y)
        self.classes_ = self.model_.classes_
        self.settings_ = {"likelihood": "softmax", "kernel": {"name": "none"}}
        return self

    def predict_proba(self, X):
        return self.model_.predict_proba(X)

    def save(self, path, provenance=None):
        np.savez(path, coefficients=self.model_[-1].coef_, origin=to_json(provenance))


def run(arguments: list[str], folder: str, temporary: str) -> None:
    """`gpal ARGUMENTS` in `folder`; ends this process with its exit code."""
    os.chdir(folder)
    os.environ["TMPDIR"] = temporary
    sys.argv = ["gpal", *arguments]
    sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    from gpal.cli import main
    from gpal.cli.commands import classify, predict, validate
    from gpal.cli.options import ModelOptions

    ModelOptions.classifier = lambda options, **parameters: Quick(**parameters)  # type: ignore
    for command in (classify, predict, validate):
        command.start_tensorflow = lambda *_: None
    try:
        main()
    finally:
        atexit._run_exitfuncs()  # which a process of multiprocessing leaves out
