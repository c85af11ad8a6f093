"""A classifier fitted to a problem of known truth, shared by the tests."""

from __future__ import annotations

import pytest
from known_truth import draw


@pytest.fixture(scope="session")
def fitted():
    """GPClassifier fitted to 150 sources with errors of 0.3, with the sources."""
    from gpal import GPClassifier

    X, X_err, _, y = draw(150, 0.3, seed=0)
    classifier = GPClassifier(n_inducing=20, max_rounds=2, input_noise="first_order")
    classifier.fit(X, y, X_err=X_err)
    return classifier, X, X_err, y
