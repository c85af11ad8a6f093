"""A classifier that also learns how its sources would look if they were fainter.

What is to be classified is fainter than what has a class, and a model that never saw a faint pulsar
takes one for whatever is faint among the labelled sources. So every labelled source is learned from
twice, as it was measured and as it would look at a significance drawn from the targets'
(gpal.catalog.Fainter), each with weight ½:

    Σ_i ½ [ log p(y_i | x_i) + log p(y_i | x'_i) ]

in place of Σ_i log p(y_i | x_i). The number of sources, and with it what the model thinks that it
knows, stays what it is.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone

from gpal.catalog import Fainter
from gpal.errors import InputError
from gpal.measurements import Measurements

__all__ = ["FaintTraining"]


class FaintTraining(ClassifierMixin, BaseEstimator):
    """`classifier`, taught by sources as they are and as they would be if fainter.

    Parameters
    ----------
    classifier : GPClassifier
        Or another one that takes Measurements and weights.
    fainter : Fainter
        For the catalog that the sources are of.
    random_state : int
        Seed of the significances and the noise.

    Attributes
    ----------
    classifier_ : classifier
        Fitted; it predicts, by itself as well.

    Examples
    --------
    >>> import gpal
    >>> from gpal.catalog import Fainter
    >>> from gpal.evaluation import FaintTraining
    >>> catalog = gpal.load_catalog("4fgl-dr4", features="open")[::20]
    >>> known = catalog.labelled()
    >>> model = FaintTraining(gpal.GPClassifier(n_inducing=20), Fainter.of(catalog))
    >>> model.fit(known.measurements, known.y).predict_proba(known.measurements).shape
    (130, 3)
    """

    takes_measurements = True

    def __init__(self, classifier: Any, fainter: Fainter, random_state: int = 0) -> None:
        self.classifier = classifier
        self.fainter = fainter
        self.random_state = random_state

    def fit(self, X: Measurements, y: np.ndarray) -> FaintTraining:
        """Learn from sources of the catalog, Measurements (n, d), and their labels (n,)."""
        if not isinstance(X, Measurements):
            raise InputError("sources are made fainter by what is known of them: give Measurements")
        both = Measurements.stack([X, self.fainter(X, self.random_state)])
        self.classifier_ = clone(self.classifier)
        self.classifier_.fit(both, np.tile(y, 2), sample_weight=np.full(len(both), 0.5))
        return self

    @property
    def classes_(self) -> np.ndarray:
        """(C,) the labels, sorted."""
        return self.classifier_.classes_

    def check_settings(
        self, num_classes: int | None = None, num_features: int | None = None
    ) -> Any:
        """InputError for settings that no such data could be fitted with."""
        return self.classifier.check_settings(num_classes, num_features)

    def predict(self, X: Measurements) -> np.ndarray:
        """(n,) the most probable classes."""
        return self.classifier_.predict(X)

    def predict_proba(self, X: Measurements) -> np.ndarray:
        """(n, C) probabilities of sources as they were measured."""
        return self.classifier_.predict_proba(X)

    def predict_proba_std(self, X: Measurements, prior: Any = None) -> np.ndarray:
        """(n, C) their standard deviations over the posterior."""
        return self.classifier_.predict_proba_std(X, prior=prior)

    def predict_proba_with_std(self, X: Measurements) -> tuple[np.ndarray, np.ndarray]:
        """Both in one pass."""
        return self.classifier_.predict_proba_with_std(X)

    def sample_proba(self, X: Measurements, num_samples: int = 100, seed: int = 0) -> np.ndarray:
        """(num_samples, n, C) drawn from the posterior, jointly for all sources."""
        return self.classifier_.sample_proba(X, num_samples=num_samples, seed=seed)
