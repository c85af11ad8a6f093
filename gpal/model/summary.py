"""A fitted model in a few lines: what it was made of, and how far learning went."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from gpal.summary import Summary

__all__ = ["summary_of"]


def summary_of(estimator: Any) -> Summary:
    """Facts, and a line for each feature: range and lengthscales in its own unit.

    Lengthscales are those of the kernels' first part, one for each kernel; none is shown of kernels
    that have another form. Of a feature of which the kernels take a power, they are in deviations
    of that.
    """
    check_is_fitted(estimator)
    settings, training = estimator.settings_, estimator.training_
    d = len(estimator.units_in_)  # of packed columns these are the values
    names = list(getattr(estimator, "feature_names_in_", range(d)))[:d]
    likelihood = settings["likelihood"]
    rounds = f"{estimator.n_rounds_} rounds" if estimator.n_rounds_ != 1 else "1 round"
    ended = {True: "converged", False: "not converged", None: ""}[estimator.converged_]
    facts = {"likelihood": str(likelihood.get("name", likelihood.get("class")))}
    if hasattr(estimator, "classes_"):
        shares = zip(estimator.classes_.tolist(), estimator.class_fractions_, strict=True)
        facts["classes"] = ", ".join(f"{name} {100 * share:.1f} %" for name, share in shares)
    facts |= {
        "error bars": settings["treatment"]["name"] if estimator.X_err_given_ else "none given",
        "inference": f"{settings['inference']}, {_points(settings)}",
        "learning": ", ".join(part for part in (rounds, ended) if part),
        "bound": f"{estimator.bound_:.4f} nats per source",
    }
    if estimator.temperature_ != 1.0:
        facts["temperature"] = f"{estimator.temperature_:.2f}"
    scales = _lengthscales(estimator)
    headings = ["feature", "unit", "from", "to", *(["lengthscale"] if scales else [])]
    rows = [
        [str(name), unit, f"{low:.4g}", f"{high:.4g}", *([scales[j]] if scales else [])]
        for j, (name, unit, low, high) in enumerate(
            zip(names, estimator.units_in_, training.lower, training.upper, strict=True)
        )
    ]
    return Summary(f"{type(estimator).__name__}, fitted", facts, headings, rows)


def _points(settings: dict[str, Any]) -> str:
    if settings.get("gp") == "full":
        return "full GP"
    points = settings["inducing_points"]
    number = len(points) if isinstance(points, list) else points
    return f"{number} inducing points"


def _lengthscales(estimator: Any) -> list[str]:
    """One text per feature; none where a kernel has no lengthscale for each."""
    from gpal.inference.affine_input import AffineInput
    from gpal.inference.power_input import PowerInput

    per_kernel, width = [], estimator.width_
    for kernel in estimator.model_.gp.kernels:
        own, power = width, np.ones(len(width))
        if isinstance(kernel, AffineInput):  # of inputs in the user's units
            kernel, own = kernel.base_kernel, width * kernel.width
        if isinstance(kernel, PowerInput):
            power = kernel.power.numpy()
            kernel, own = kernel.base_kernel, own * (kernel.unit * kernel.width).numpy()
        parts = [part for part in (kernel, *kernel.submodules) if hasattr(part, "lengthscales")]
        if not parts or np.shape(parts[0].lengthscales) != width.shape:
            return []
        dims, scales = parts[0].active_dims, np.empty(len(width))
        order = np.arange(len(width))[dims] if isinstance(dims, slice) else np.ravel(dims)
        scales[order] = np.asarray(parts[0].lengthscales)
        per_kernel.append(map(_in_its_unit, scales, own, power))
    return [", ".join(column) for column in zip(*per_kernel)]


def _in_its_unit(lengthscale: float, width: float, power: float) -> str:
    """Of a power of a feature in deviations of that power."""
    if power == 1.0:
        return f"{lengthscale * width:.3g}"
    return f"{lengthscale:.3g} deviations of its power {power:.2g}"
