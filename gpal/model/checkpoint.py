"""A fit in the making as a model file: what was learned from the sample, and the present q(f).

Sites that are met with a whole step depend on q(f) alone. So a fit that goes on from the q(f) of
its last sweep makes the same sums, and ends where it would have.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from gpal.errors import InputError
from gpal.inference.chunks import SparsePosterior
from gpal.measurements import Measurements
from gpal.model.parameters import parameters_to_data
from gpal.model.partitions import Drawn
from gpal.provenance import to_json

__all__ = ["Checkpoint"]

Sample = tuple[Measurements, np.ndarray, np.ndarray | None]


@dataclass(frozen=True)
class Checkpoint:
    """fit  the checksum of what decides the result: settings, sample, how many there are of each
    class, the range of every feature
    """

    path: Path
    fit: str

    @classmethod
    def of(
        cls, path: str | os.PathLike, classifier: Any, sample: Sample, drawn: Drawn
    ) -> Checkpoint:
        """InputError where the classifier holds an object that no file can."""
        sources, y, weight = sample
        counts = sorted((str(name), count) for name, count in drawn.counts.items())
        settings = parameters_to_data(classifier.get_params(deep=False), of_classes=True)
        digest = hashlib.sha256(to_json([settings, counts]).encode())
        covariance = () if sources.covariance is None else sources.covariance
        of_sample = (sources.X, sources.X_err, covariance, () if weight is None else weight)
        limits = () if sources.limits is None else vars(sources.limits).values()
        for array in (*of_sample, drawn.lower, drawn.upper, *limits):
            digest.update(np.ascontiguousarray(array, dtype=float).tobytes())
        digest.update("\n".join(map(str, y.tolist())).encode())
        return cls(Path(path), digest.hexdigest())

    def restore(self, classifier: Any) -> bool:
        """Make the classifier that of the file; False where there is none.

        Raises InputError where it is of another fit.
        """
        if not self.path.exists():
            return False
        kept = type(classifier).load(self.path)
        if kept.provenance_.get("checkpoint") != self.fit:
            raise InputError(
                f"'{self.path}' is the checkpoint of another fit, or a finished model: give another"
                " path, or remove it"
            )
        learned = {name: value for name, value in vars(kept).items() if name.endswith("_")}
        classifier.__dict__.update({**learned, "provenance_": {}})
        return True

    def watch(self, classifier: Any) -> Callable[[SparsePosterior], None]:
        """Write the file anew with another q(f)."""

        def write(posterior: SparsePosterior) -> None:
            classifier.model_ = replace(classifier.model_, posterior=posterior)
            classifier.save(self.path, {"checkpoint": self.fit})
            classifier.provenance_ = {}

        return write
