"""Damaged model files."""

from __future__ import annotations

import numpy as np
import pytest
from harness import Subject
from mutations import damage_bytes

from gpal import GPClassifier


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> bytes:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 2)), np.repeat(["bll", "fsrq", "psr"], 10)
    path = tmp_path_factory.mktemp("model") / "model.npz"
    GPClassifier(n_inducing=5, max_rounds=1).fit(X, y).save(path, {"seed": 0})
    return path.read_bytes()


def test_model(model, withstands):
    X = np.random.default_rng(1).normal(size=(3, 2))

    def read(path):
        return GPClassifier.load(path).predict_proba(X)

    withstands(Subject("model.npz", model, read, damage_bytes))
