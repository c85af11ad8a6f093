"""A fit in the making as a model file: what was learned from the sample, the present q(f), and
where the sweeps stand.

That is all that the next sweep depends on (`gpal.inference.batches.BatchFit`). So a fit that goes
on makes the same sums, and ends where it would have.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from gpal.errors import InputError
from gpal.inference.batches import BatchFit
from gpal.inference.chunks import SparsePosterior
from gpal.inference.rows import Statistics
from gpal.measurements import Measurements
from gpal.model.file import read_checkpoint, write_model
from gpal.model.parameters import parameters_to_data
from gpal.model.partitions import Drawn
from gpal.provenance import to_json

__all__ = ["Checkpoint"]

Sample = tuple[Measurements, np.ndarray, np.ndarray | None]
LEARNED = ("feature_names_in_", "units_in_", "X_err_given_")  # of a classifier, at the door
NUMBERS = ("bounds", "size", "signed", "sweep", "step", "lowest", "jitter")  # of a BatchFit


@dataclass(frozen=True)
class Checkpoint:
    """fit  the checksum of what decides the result: settings, sample, how many there are of each
    class, the range of every feature, their names and units
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
        learned = [getattr(classifier, name, None) for name in LEARNED]
        facts = [settings, counts, learned, y.dtype.kind]
        digest = hashlib.sha256(to_json(facts).encode())
        covariance = () if sources.covariance is None else sources.covariance
        of_sample = (sources.X, sources.X_err, covariance, () if weight is None else weight)
        limits = () if sources.limits is None else vars(sources.limits).values()
        for array in (*of_sample, drawn.lower, drawn.upper, *limits):
            digest.update(np.ascontiguousarray(array, dtype=float).tobytes())
        digest.update("\n".join(map(str, y.tolist())).encode())
        return cls(Path(path), digest.hexdigest())

    def restore(self, classifier: Any) -> BatchFit | None:
        """Make the classifier that of the file, and give the fit to go on with; None where there is
        no file.

        Raises InputError where it is of another fit.
        """
        if not self.path.exists():
            return None
        kept = type(classifier).load(self.path)
        if kept.provenance_.get("checkpoint") != self.fit:
            raise InputError(
                f"'{self.path}' is the checkpoint of another fit, or a finished model: give another"
                " path, or remove it"
            )
        learned = {name: value for name, value in vars(kept).items() if name.endswith("_")}
        classifier.__dict__.update({**learned, "provenance_": {}})
        return _from_arrays(read_checkpoint(self.path), kept.model_.posterior)

    def watch(self, classifier: Any) -> Callable[[BatchFit], None]:
        """Write the file anew before another sweep."""

        def write(fit: BatchFit) -> None:
            classifier.model_ = replace(classifier.model_, posterior=fit.posterior)
            kind, (data, arrays) = type(classifier).__name__, classifier.to_data()
            made_by = {"checkpoint": self.fit}
            write_model(self.path, kind, data, arrays, made_by, _to_arrays(fit))

        return write


def _to_arrays(fit: BatchFit) -> dict[str, np.ndarray]:
    """All of it but q(f), which the model has."""
    arrays = {name: np.array(getattr(fit, name)) for name in NUMBERS}
    for name in ("statistics", "accepted"):
        if (part := getattr(fit, name)) is not None:
            for i, tensor in enumerate(tf.nest.flatten(part)):
                arrays[f"{name}/{i}"] = np.asarray(tensor)
    return arrays


def _from_arrays(arrays: Mapping[str, np.ndarray], posterior: SparsePosterior) -> BatchFit:
    """Inverse of `_to_arrays`."""

    def tensors(name: str) -> list[tf.Tensor]:
        number = sum(key.startswith(f"{name}/") for key in arrays)
        return [tf.constant(arrays[f"{name}/{i}"]) for i in range(number)]

    def statistics(parts: list[tf.Tensor]) -> Statistics:
        gram, projection, diagonal, *slope_gram = parts
        return Statistics(gram, projection, diagonal, slope_gram)

    fit = BatchFit(posterior, **{name: arrays[name].tolist() for name in NUMBERS})
    if parts := tensors("statistics"):
        fit.statistics = statistics(parts)
    if parts := tensors("accepted"):
        fit.accepted = statistics(parts[:-3]), SparsePosterior(*parts[-3:])
    return fit
