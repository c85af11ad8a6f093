"""What a model file does not keep of a likelihood: priors, bounds and quadrature of its own."""

from __future__ import annotations

import warnings

import gpflow
import numpy as np

__all__ = ["warn_of_lost_settings"]


def warn_of_lost_settings(
    likelihood: gpflow.likelihoods.Likelihood,
    again: gpflow.likelihoods.Likelihood,
    stacklevel: int,
) -> None:
    """Say what `again`, the likelihood as it comes out of the file, has not."""
    lost, found = [], gpflow.utilities.parameter_dict(again)
    for path, parameter in gpflow.utilities.parameter_dict(likelihood).items():
        if not isinstance(parameter, gpflow.Parameter):
            continue  # a variable, which has neither
        name = path.lstrip(".")
        kept = found[path]
        if parameter.prior is not None and kept.prior is None:
            lost.append(f"the prior on '{name}'")
        if not np.array_equal(_bounds(parameter), _bounds(kept)):
            lost.append(f"the bounds of '{name}'")
    if _points(likelihood) != _points(again):
        lost.append("its quadrature points")
    if lost:
        warnings.warn(
            f"a model file keeps the likelihood without {', '.join(lost)}: what is loaded from it"
            " goes without, and is fitted without",
            stacklevel=stacklevel + 1,
        )


def _bounds(parameter: gpflow.Parameter) -> np.ndarray:
    """Where the transform puts what is far below and far above."""
    ends = np.array([-1e3, 1e3])
    transform = parameter.transform
    return ends if transform is None else np.asarray(transform.forward(ends))


def _points(likelihood: gpflow.likelihoods.Likelihood) -> int | None:
    return getattr(getattr(likelihood, "quadrature", None), "n_gh", None)
