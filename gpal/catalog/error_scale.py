"""Errors scaled as a calibration says, with the covariance that its correlations imply.

    σ → s σ  per feature,    Cov_ij = ρ_ij (s_i σ_i)(s_j σ_j)  per source

The calibration is the schema's own, a file that `gpal catalogs calibrate-errors` wrote, or given.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from gpal.catalog.schema import ErrorCalibration, Schema, close_matches, read_toml
from gpal.errors import InputError, shown
from gpal.measurements import Measurements

__all__ = ["find_calibration", "rescale"]


def find_calibration(
    asked: bool | str | os.PathLike | Mapping[str, float], schema: Schema
) -> ErrorCalibration:
    """What `error_scale` of load_catalog means: the schema's own, a file's, or given factors."""
    calibration = _calibration(asked, schema)
    pairs = (pair.split(",") for pair in calibration.correlation)
    for name in (*calibration.scale, *(name.strip() for pair in pairs for name in pair)):
        if name not in schema.features:
            raise InputError(f"error_scale names '{name}'; {close_matches(name, schema.features)}")
    return calibration


def _calibration(
    asked: bool | str | os.PathLike | Mapping[str, float], schema: Schema
) -> ErrorCalibration:
    if isinstance(asked, Mapping):
        try:
            scale = {name: float(s) for name, s in asked.items()}
        except (TypeError, ValueError, OverflowError):
            raise InputError(f"error scales must be positive numbers, got {dict(asked)}") from None
        return ErrorCalibration(scale=scale)
    if isinstance(asked, bool):
        calibration = schema.error_calibration
        if calibration is None:
            raise InputError(
                f"error_scale=True, but {schema.title or schema.name} has no error calibration;"
                " make one with gpal catalogs calibrate-errors and give its file"
            )
        return calibration
    if not isinstance(asked, str | os.PathLike):
        raise InputError(
            f"error_scale is True, a file, or {{feature: factor}}; got {shown(repr(asked))}"
        )
    table = read_toml(Path(asked)).get("error_calibration")
    if table is None:
        raise InputError(
            f"'{asked}' has no table [error_calibration]; gpal catalogs calibrate-errors writes one"
        )
    return (
        Schema.from_dict({"features": {"any": "any"}, "error_calibration": table}).error_calibration
        or ErrorCalibration()
    )


def rescale(measurements: Measurements, calibration: ErrorCalibration) -> Measurements:
    """Errors times their scale, and the covariance per source that the correlations imply."""
    names = measurements.names
    factor = np.array([calibration.scale.get(name, 1.0) for name in names])
    unknown = [name for name in calibration.scale if name not in names]
    if len(unknown) == len(calibration.scale) and unknown:
        raise InputError(
            f"the error calibration is for {', '.join(unknown)}, none of which is among the"
            f" features {', '.join(names)}"
        )
    X_err = measurements.X_err * factor
    ρ = np.eye(len(names))
    for pair, value in calibration.correlation.items():
        a, b = (part.strip() for part in pair.split(","))
        if a in names and b in names:
            i, j = names.index(a), names.index(b)
            ρ[i, j] = ρ[j, i] = value
    covariance = measurements.covariance
    if covariance is not None and calibration.correlation:
        raise InputError(
            "the features share columns, which makes their errors correlated, and the error"
            " calibration has correlations of its own; leave these out, or features that share"
        )
    if covariance is not None:
        covariance = covariance * np.multiply.outer(factor, factor)
    if calibration.correlation:
        finite = np.where(np.isfinite(X_err), X_err, 0.0)
        covariance = ρ * finite[:, :, None] * finite[:, None, :]
        sources, features = np.nonzero(~np.isfinite(X_err))
        covariance[sources, features, features] = np.inf
    limits = measurements.limits
    if limits is not None:
        limits = replace(limits, error=limits.error * factor)
    return replace(measurements, X_err=X_err, covariance=covariance, limits=limits)
