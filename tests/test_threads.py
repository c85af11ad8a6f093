"""The same seed gives the same probabilities whatever the number of threads."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

SMALL = """
rng = np.random.default_rng(0)
n, d, C = SIZE
X = rng.normal(size=(n, d))
X_err = rng.uniform(0, 0.3, size=X.shape)
labels = np.argmax(np.sin(X @ rng.normal(size=(d, C))) + 0.5 * rng.normal(size=(n, C)), axis=1)
model = GPClassifier(**{"max_rounds": 4, **OPTIONS})
p = model.fit(X, labels, X_err).predict_proba(X[:200], X_err[:200])
"""
CATALOG = """
from gpal.catalog import load_catalog
from gpal.recommended import RECOMMENDED_MODEL
catalog = load_catalog("4fgl-dr4")
known = catalog[catalog.y != ""]
model = GPClassifier(**{**RECOMMENDED_MODEL, **OPTIONS}).fit(known.measurements, known.y)
p = model.predict_proba(catalog.measurements)
"""
THREADS = (1, 2, 4)


def probabilities(tmp_path: Path, code: str, threads: int) -> np.ndarray:
    """What `code` calls p, in a process with so many threads of TensorFlow, OpenMP and BLAS."""
    path, names = tmp_path / f"{threads}.npy", ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    own = dict.fromkeys((*names, "TF_NUM_INTRAOP_THREADS"), str(threads))
    script = f"import numpy as np\nfrom gpal import GPClassifier\n{code}\nnp.save({str(path)!r}, p)"
    subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script], env={**os.environ, **own}, check=True
    )
    return np.load(path)


def check(tmp_path: Path, code: str, **options: object) -> None:
    first, *others = (probabilities(tmp_path, f"OPTIONS = {options}\n{code}", t) for t in THREADS)
    for other in others:
        np.testing.assert_array_equal(other, first)


@pytest.mark.parametrize(
    "size, options",
    [
        # Numbers of inducing points and of features whose products the threads would share out.
        ((700, 7, 3), {"input_noise": "first_order", "shared_kernel": False, "n_inducing": 100}),
        ((300, 5, 3), {"input_noise": "none"}),  # a full GP
    ],
    ids=["sparse", "full"],
)
def test_probabilities_do_not_depend_on_the_number_of_threads(tmp_path, size, options):
    check(tmp_path, SMALL.replace("SIZE", str(size)), **options)


@pytest.mark.slow
@pytest.mark.parametrize(
    "size, options",
    [
        (
            (700, 7, 3),
            {"input_noise": "none", "n_inducing": 300, "kernel": "rbf+linear", "max_rounds": 2},
        ),
        ((450, 3, 5), {"input_noise": "integrated", "n_inducing": 60, "max_rounds": 2}),
        ((600, 6, 3), {"likelihood": "dirichlet", "input_noise": "none"}),
        ((500, 6, 3), {"likelihood": "step", "input_noise": "first_order", "max_rounds": 2}),
        (
            (600, 6, 2),
            {
                "likelihood": "bernoulli_logit",
                "input_noise": "none",
                "kernel": "matern52+linear",
                "n_inducing": 100,
            },
        ),
    ],
    ids=str,
)
def test_so_it_is_for_other_models(tmp_path, size, options):
    check(tmp_path, SMALL.replace("SIZE", str(size)), **options)


@pytest.mark.slow
def test_so_it_is_for_the_recommended_model_of_a_catalog(tmp_path):
    check(tmp_path, CATALOG)
