"""The same seed gives the same probabilities whatever the number of threads."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

START = """
import sys
import numpy as np
from gpal import GPClassifier

def small(size, options, largest_error=0.3):
    rng, (n, d, C) = np.random.default_rng(0), size
    X = rng.normal(size=(n, d))
    X_err = rng.uniform(0, largest_error, size=X.shape)
    scores = np.sin(X @ rng.normal(size=(d, C))) + 0.5 * rng.normal(size=(n, C))
    model = GPClassifier(**options).fit(X, np.argmax(scores, axis=1), X_err)
    return model.predict_proba(X[:200], X_err[:200])

def recommended():
    from gpal.catalog import load_catalog
    from gpal.recommended import RECOMMENDED_MODEL
    catalog = load_catalog("4fgl-dr4")
    known = catalog[catalog.y != ""]
    model = GPClassifier(**RECOMMENDED_MODEL).fit(known.measurements, known.y)
    return model.predict_proba(catalog.measurements)

"""
# Numbers of inducing points and of features whose products the threads would share out.
FEW = {
    "sparse": (
        (700, 7, 3),
        {"input_noise": "first_order", "shared_kernel": False, "n_inducing": 100, "max_rounds": 4},
    ),
    "full": ((300, 5, 3), {"input_noise": "none", "max_rounds": 4}),
}
OTHERS = {
    "by default": ((700, 6, 3), {"max_rounds": 3}, 0.0),
    "by default, two classes": ((700, 6, 2), {"max_rounds": 3}, 0.0),
    "many points": (
        (700, 7, 3),
        {"input_noise": "none", "n_inducing": 300, "kernel": "rbf+linear", "max_rounds": 2},
    ),
    "integrated": (
        (450, 3, 5),
        {"input_noise": "integrated", "n_inducing": 60, "max_rounds": 2},
    ),
    "dirichlet": ((600, 6, 3), {"likelihood": "dirichlet", "input_noise": "none", "max_rounds": 4}),
    "step": (
        (500, 6, 3),
        {"likelihood": "step", "input_noise": "first_order", "max_rounds": 2},
    ),
    "logit": (
        (600, 6, 2),
        {
            "likelihood": "bernoulli_logit",
            "input_noise": "none",
            "kernel": "matern52+linear",
            "n_inducing": 100,
            "max_rounds": 4,
        },
    ),
}


def probabilities(path: Path, expression: str, threads: int) -> dict[str, np.ndarray]:
    """A dict of arrays, in a process with so many threads of TensorFlow, OpenMP and BLAS."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "TF_NUM_INTRAOP_THREADS")
    script = f"{START}np.savez(sys.argv[1], **{expression})"
    subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script, str(path)],
        env={**os.environ, **dict.fromkeys(names, str(threads))},
        check=True,
    )
    with np.load(path) as found:
        return dict(found)


def check(tmp_path: Path, expression: str, numbers: tuple[int, ...]) -> None:
    first, *others = (probabilities(tmp_path / f"{t}.npz", expression, t) for t in numbers)
    assert first
    for other in others:
        for name in first:
            np.testing.assert_array_equal(other[name], first[name], name)


def of(cases: dict) -> str:
    return f"{{name: small(*case) for name, case in {cases!r}.items()}}"


@pytest.mark.slow
def test_probabilities_do_not_depend_on_the_number_of_threads(tmp_path):
    check(tmp_path, of(FEW), (1, 2, 4))


@pytest.mark.slow
def test_so_it_is_for_other_models(tmp_path):
    check(tmp_path, f"{of(OTHERS)} | {{'catalog': recommended()}}", (1, 4))
