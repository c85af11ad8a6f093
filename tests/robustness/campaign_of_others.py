"""A small campaign with a model, for tests that only look at it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from astropy.table import Table
from sklearn.base import BaseEstimator, ClassifierMixin

from gpal.active.campaign import Campaign, Given
from gpal.catalog import load_catalog

MAPPING = {
    **{"id": "Name", "class": "Type", "ra": "RA", "dec": "Dec"},
    "classes": {"default": ["bll", "psr"], "candidates": [""]},
    "features": {"index": {"column": "Index", "error": "e_Index"}},
}


class Even(ClassifierMixin, BaseEstimator):
    """All classes are as probable."""

    def fit(self, X, y, X_err=None):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X, X_err=None):
        return np.full((len(X), len(self.classes_)), 1 / len(self.classes_))

    def save(self, path):
        np.savez(path, classes=self.classes_)


def make(folder: Path) -> None:
    """In `folder`: 60 labelled sources, S060 to S099 open but for one label."""
    rng = np.random.default_rng(0)
    table = Table({"Name": [f"S{k:03d}" for k in range(100)]})
    table["Type"] = ["bll", "psr"] * 30 + [""] * 40
    table["RA"], table["Dec"] = rng.uniform(0, 360, 100), rng.uniform(-80, 80, 100)
    table["Index"], table["e_Index"] = rng.normal(2, 0.3, 100), 0.1
    source = folder.parent / "sources.ecsv"
    table.write(source)
    catalog = load_catalog(source, mapping=MAPPING)
    with Campaign.start(catalog, folder, classifier=Even()) as campaign:
        campaign.label([Given(96, "bll", "ann")])
        campaign.refit()
    source.unlink()
