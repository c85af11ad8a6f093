"""Measurements: values and their 1-sigma errors in one object.

A catalog value without its error bar is half a measurement, so the two are held, sliced, scaled and
transformed together. Errors are standard deviations in the units of the value, everywhere.

    measured value          X finite,  0 <= X_err < inf
    known exactly           X finite,  X_err = 0
    not measured            X = NaN,   X_err = inf      (a measurement with no information)
    below or above a limit  the same, and the limit     (see `gpal.limits`)

A transform g acts on both: g(X) and |g'(X)| X_err (first-order error propagation); a covariance per
source, where there is one, becomes J Cov J with J = diag(g'(X)).

Measurements go whole from a catalog to a model and back. Whoever has arrays makes one of them at
the door, by `gpal.arrays.as_measurements`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpal.array_messages import as_numbers, errors_of_all
from gpal.errors import InputError
from gpal.limits import Limits
from gpal.plain_values import (
    identifiers,
    plain,
    refuse_other_columns,
    refuse_other_rows,
    rows_of,
)

__all__ = [
    "NO_ARRAY",
    "TRANSFORMS",
    "Measurements",
    "informative",
    "pack",
    "symmetric_error",
    "unpack",
]

NO_ARRAY = (
    "an array has no place for the errors of Measurements: give their pack() to a model with"
    " packed=True, or use gpal.cross_validate, which takes them as they are"
)
CORRELATION = 1e-5  # how far correlations may be none, by rounding to single precision

# name -> (function, derivative). The square root has the logarithms' domain x > 0: its slope is
# infinite at zero, where any error at all would turn the value into "not measured".
TRANSFORMS: dict[str, tuple[Callable, Callable]] = {
    "none": (lambda x: x, np.ones_like),
    "log10": (np.log10, lambda x: 1.0 / (x * np.log(10.0))),
    "ln": (np.log, lambda x: 1.0 / x),
    "sqrt": (np.sqrt, lambda x: 0.5 / np.sqrt(x)),
    "asinh": (np.arcsinh, lambda x: 1.0 / np.hypot(1.0, x)),
}


def symmetric_error(lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """One sigma from an asymmetric pair: sqrt((lower² + upper²)/2), whatever the sign of `lower`.

    Where only one side was measured (an upper limit has no lower error) that side stands for both.
    """
    lower, upper = np.abs(np.asarray(lower, float)), np.abs(np.asarray(upper, float))
    lower = np.where(np.isnan(lower), upper, lower)
    upper = np.where(np.isnan(upper), lower, upper)
    return np.sqrt((lower**2 + upper**2) / 2.0)


def pack(X: np.ndarray, X_err: np.ndarray) -> np.ndarray:
    """[X | X_err], shape (n, 2d): the form that passes through scikit-learn's own tools."""
    return np.hstack([X, np.broadcast_to(X_err, np.shape(X))])


def unpack(packed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Inverse of `pack`."""
    packed = np.asarray(packed)
    if packed.ndim != 2 or packed.shape[1] % 2:
        raise InputError(
            f"packed [X | X_err] needs an even number of columns, got shape {packed.shape}; "
            "build it with gpal.measurements.pack(X, X_err)"
        )
    half = packed.shape[1] // 2
    return packed[:, :half], packed[:, half:]


@dataclass(frozen=True)
class Measurements:
    """n sources × d features with 1-sigma errors.

    Attributes
    ----------
    X : array (n, d)
        Values; NaN where not measured.
    X_err : array (n, d)
        Standard deviations in the units of X; 0 exact, inf not measured.
    names : tuple of d str
        Features.
    units : tuple of d str
        '' where dimensionless.
    ids : array (n,) of str
        Source identifiers.
    covariance : array (n, d, d), optional
        Of the errors of each source; its diagonal is X_err².
    limits : Limits, optional
        Of values that were not measured.
    noisy : array (d,) of bool, optional
        Features that count as measured with errors, though none of these sources may have one; see
        `with_parts_alike`.

    Raises
    ------
    InputError
        On what is no number and on shapes that do not fit. Naming source and feature, on NaN
        without an infinite error, on an infinite value, on a negative or NaN error, on a masked
        identifier, and on a covariance that is none or is not that of X_err.

    Examples
    --------
    >>> import numpy as np
    >>> from gpal import Measurements
    >>> sources = Measurements(
    ...     X=[[20.1, 0.3], [19.5, np.nan]],
    ...     X_err=[[0.02, 0.05], [0.01, np.inf]],
    ...     names=("magnitude", "colour"),
    ...     units=("mag", ""),
    ... )
    >>> sources
    <Measurements: 2 sources, magnitude [mag], colour; 1 values not measured>
    >>> sources.select(["colour"])[:1].X_err
    array([[0.05]])
    """

    X: np.ndarray
    X_err: np.ndarray
    names: tuple[str, ...]
    units: tuple[str, ...] = ()
    ids: np.ndarray | None = None
    covariance: np.ndarray | None = None
    limits: Limits | None = None
    noisy: np.ndarray | None = None

    def __post_init__(self) -> None:
        X = np.array(as_numbers("X", plain("X", self.X)))
        if X.ndim != 2:
            raise InputError(f"X must be two-dimensional (sources, features), got shape {X.shape}")
        n, d = X.shape
        X_err = errors_of_all(plain("X_err", self.X_err), (n, d))
        names = tuple(self.names)
        for what, given in (("X", self.X), ("X_err", self.X_err)):
            refuse_other_columns(what, given, names)
        refuse_other_rows(self.X, self.X_err)
        if len(names) != d or len(set(names)) != d:
            raise InputError(f"{d} features need {d} different names, got {names}")
        units = tuple(self.units) or ("",) * d
        if len(units) != d:
            raise InputError(f"{d} features need {d} units ('' where dimensionless), got {units}")
        ids = np.arange(n).astype(str) if self.ids is None else identifiers(self.ids)
        if len(ids) != n:
            raise InputError(f"{n} sources need {n} identifiers, got {len(ids)}")
        not_measured = np.isinf(X_err) & (X_err > 0)
        X = np.where(not_measured, np.nan, X)
        for bad, problem, remedy in (
            (~np.isfinite(X) & ~not_measured, "is {x}", "give X_err=inf there if not measured"),
            (np.isnan(X_err), "has error NaN", "give 0 for an exact value, inf for no measurement"),
            (X_err < 0, "has negative error {e}", "errors are 1-sigma standard deviations"),
        ):
            if bad.any():
                i, j = np.argwhere(bad)[0]
                detail = problem.format(x=X[i, j], e=X_err[i, j])
                raise InputError(
                    f"column '{names[j]}', {_row(ids, i)} {detail}"
                    f" ({int(bad.sum())} such in all); {remedy}"
                )
        if self.covariance is not None:
            covariance = _checked_covariance(self.covariance, X_err, ids)
            object.__setattr__(self, "covariance", covariance)
        if self.limits is not None:
            parts = {part: plain(f"limits.{part}", x) for part, x in vars(self.limits).items()}
            limits = Limits.checked(Limits(**parts), ~not_measured)
            object.__setattr__(self, "limits", limits if limits.given.any() else None)
        if self.noisy is not None:
            noisy = np.asarray(self.noisy, dtype=bool)
            if noisy.shape != (d,):
                raise InputError(f"noisy is one bool for each of {d} features, got {noisy.shape}")
            object.__setattr__(self, "noisy", noisy)
        object.__setattr__(self, "X", X)
        object.__setattr__(self, "X_err", X_err)
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "units", units)
        object.__setattr__(self, "ids", ids)

    def __len__(self) -> int:
        return len(self.X)

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        """InputError: scikit-learn's tools make an array of what they are given."""
        raise InputError(NO_ARRAY)

    def __repr__(self) -> str:
        """What they are, without the numbers."""
        features = [
            f"{name} [{unit}]" if unit else name for name, unit in zip(self.names, self.units)
        ]
        lost = int((~self.measured).sum())
        correlated = "" if self.covariance is None else ", with covariances"
        return (
            f"<Measurements: {len(self)} sources, {', '.join(features)};"
            f" {lost} values not measured{correlated}>"
        )

    @property
    def named(self) -> bool:
        """Whether the features have names, not only numbers."""
        return self.names != tuple(str(j) for j in range(len(self.names)))

    @property
    def measured(self) -> np.ndarray:
        """(n, d) bool: True where a value was measured."""
        return np.isfinite(self.X_err)

    @property
    def error_covariance(self) -> np.ndarray:
        """(n, d, d) the covariance of the errors, diagonal where none was given."""
        if self.covariance is not None:
            return self.covariance
        covariance = np.zeros((*self.X.shape, self.X.shape[1]))
        np.einsum("ndd->nd", covariance)[:] = self.X_err**2
        return covariance

    @property
    def have_errors(self) -> np.ndarray:
        """(d,) bool: features of which a source has an error, or that count as such."""
        found = np.any(self.X_err > 0, axis=0)
        return found if self.noisy is None else np.logical_or(found, self.noisy)

    def with_parts_alike(self) -> Measurements:
        """The same, of which every part counts as having errors where the whole has some.

        A model's computations depend on which features have errors, and are prepared anew for
        others, which takes seconds: the folds of a cross-validation should not differ in that for
        one source. What they find is the same, but for rounding.

        Returns
        -------
        Measurements
        """
        return self._part(noisy=self.have_errors)

    def __getitem__(self, rows: Any) -> Measurements:
        """The sources `rows` (slice, indices or mask), errors and covariance with them."""
        rows = rows_of(rows, len(self))
        assert self.ids is not None
        covariance = None if self.covariance is None else self.covariance[rows]
        return self._part(
            X=self.X[rows],
            X_err=self.X_err[rows],
            ids=self.ids[rows],
            covariance=covariance,
            limits=None if self.limits is None else self.limits[rows],
        )

    def _part(self, **parts: Any) -> Measurements:
        """These fields replaced by slices of themselves, which need no second check."""
        part = object.__new__(Measurements)
        part.__dict__.update(self.__dict__, **parts)
        return part

    def select(self, names: Sequence[str]) -> Measurements:
        """Some of the features, in that order.

        Parameters
        ----------
        names : sequence of str

        Returns
        -------
        Measurements
        """
        missing = [name for name in names if name not in self.names]
        if missing:
            raise InputError(f"no feature '{missing[0]}'; there are: {', '.join(self.names)}")
        if len(set(names)) < len(names):
            raise InputError(f"a feature is named twice among {', '.join(names)}; name each once")
        columns = [self.names.index(name) for name in names]
        covariance = self.covariance
        return self._part(
            X=self.X[:, columns],
            X_err=self.X_err[:, columns],
            names=tuple(names),
            units=tuple(self.units[j] for j in columns),
            covariance=None if covariance is None else covariance[:, columns][:, :, columns],
            limits=None if self.limits is None else self.limits[:, columns],
            noisy=None if self.noisy is None else self.noisy[columns],
        )

    def scale(self, offset: np.ndarray, width: np.ndarray) -> Measurements:
        """(X − offset)/width with errors X_err/width, per feature.

        Parameters
        ----------
        offset, width : array (d,) or float

        Returns
        -------
        Measurements
            Without units.
        """
        offset, width = np.broadcast_to(offset, self.X.shape[1]), np.asarray(width, float)
        covariance = self.covariance
        return replace(
            self,
            X=(self.X - offset) / width,
            X_err=self.X_err / width,
            units=("",) * self.X.shape[1],
            covariance=None if covariance is None else covariance / np.multiply.outer(width, width),
            limits=None if self.limits is None else self.limits.scale(offset, width),
        )

    def transform(self, name: str, transform: str) -> Measurements:
        """Apply one of TRANSFORMS to a feature, errors propagated to first order.

        log10: sigma -> sigma / (x ln 10).

        Parameters
        ----------
        name : str
            Of the feature.
        transform : str
            "none", "log10", "ln", "sqrt" or "asinh".

        Returns
        -------
        Measurements

        Raises
        ------
        InputError
            On a value outside the domain.
        """
        if transform not in TRANSFORMS:
            raise InputError(f"no transform '{transform}'; there are: {', '.join(TRANSFORMS)}")
        if name not in self.names:
            raise InputError(f"no feature '{name}'; there are: {', '.join(self.names)}")
        j = self.names.index(name)
        x = self.X[:, j]
        outside = self.measured[:, j] & (x <= 0) & (transform in ("log10", "ln", "sqrt"))
        if outside.any():
            i = int(np.flatnonzero(outside)[0])
            assert self.ids is not None
            raise InputError(
                f"feature '{name}', {_row(self.ids, i)}: {transform} of {x[i]:g}"
                f" ({int(outside.sum())} such in all); give it above = 0 (not measured there), a"
                " floor, or another transform"
            )
        function, derivative = TRANSFORMS[transform]
        X, X_err = self.X.copy(), self.X_err.copy()
        measured = self.measured[:, j]
        slope = np.where(measured, derivative(np.where(measured, x, 1.0)), 1.0)
        X[:, j] = function(np.where(measured, x, np.nan))
        X_err[:, j] = np.abs(slope) * self.X_err[:, j]
        covariance = self.covariance
        if covariance is not None:
            covariance = covariance.copy()
            covariance[:, j, :] *= slope[:, None]
            covariance[:, :, j] *= slope[:, None]
        limits = self.limits
        if limits is not None:
            lowest = 0.0 if transform in ("log10", "ln", "sqrt") else -np.inf
            limits = limits.transform(j, function, derivative, lowest)
        units = list(self.units)
        if transform != "none" and units[j]:
            units[j] = f"{transform}({units[j]})"
        return replace(
            self, X=X, X_err=X_err, units=tuple(units), covariance=covariance, limits=limits
        )

    def pack(self) -> np.ndarray:
        """[X | X_err], the form that passes through scikit-learn's own tools.

        Returns
        -------
        array (n, 2 d)

        Raises
        ------
        InputError
            Where a covariance or limits would be lost.
        """
        if self.limits is not None:
            raise InputError(
                "[X | X_err] has no place for limits; pass the Measurements themselves, or drop"
                " them with dataclasses.replace(sources, limits=None)"
            )
        if self.covariance is not None:
            raise InputError(
                "[X | X_err] has no place for a covariance; pass the Measurements themselves, or"
                " drop the correlations with dataclasses.replace(sources, covariance=None)"
            )
        return pack(self.X, self.X_err)

    @classmethod
    def stack(cls, parts: Sequence[Measurements]) -> Measurements:
        """Sources of several objects with the same features, one after another.

        Where some have a covariance, the errors of the others are uncorrelated.

        Parameters
        ----------
        parts : sequence of Measurements

        Returns
        -------
        Measurements
        """
        first = parts[0]
        for part in parts[1:]:
            if part.names != first.names or part.units != first.units:
                raise InputError(
                    f"cannot stack: features {part.names} {part.units} differ from"
                    f" {first.names} {first.units}; select the common ones first"
                )
        correlated = any(part.covariance is not None for part in parts)
        limited = any(part.limits is not None for part in parts)
        counted = any(part.noisy is not None for part in parts)
        return replace(
            first,
            X=np.vstack([part.X for part in parts]),
            X_err=np.vstack([part.X_err for part in parts]),
            ids=np.concatenate([np.asarray(part.ids) for part in parts]),
            covariance=np.concatenate([part.error_covariance for part in parts])
            if correlated
            else None,
            limits=Limits.stack([part.limits or Limits.none(part.X.shape) for part in parts])
            if limited
            else None,
            noisy=np.any([part.have_errors for part in parts], axis=0) if counted else None,
        )


def _row(ids: np.ndarray, i: int) -> str:
    """`row 3 (4FGL J1)`; without the identifier where that is the number again."""
    return f"row {i}" if ids[i] == str(i) else f"row {i} ({ids[i]})"


def _checked_covariance(covariance: Any, X_err: np.ndarray, ids: np.ndarray) -> np.ndarray:
    """A copy, uncorrelated where a value was not measured; InputError where it is no covariance."""
    n, d = X_err.shape
    covariance = np.array(plain("covariance", covariance), dtype=float)
    if covariance.shape != (n, d, d):
        raise InputError(f"covariance must be {(n, d, d)}, got {covariance.shape}")
    finite = np.isfinite(X_err)
    known = np.where(finite[:, :, None] & finite[:, None, :], covariance, 0.0)
    size = np.abs(known).max(axis=(1, 2), initial=0.0)
    skew = np.abs(known - np.swapaxes(known, 1, 2)).max(axis=(1, 2), initial=0.0)
    lowest = np.full(n, np.nan)
    sound = np.asarray(np.isfinite(known).all(axis=(1, 2)))
    lowest[sound] = np.linalg.eigvalsh(known[sound])[:, 0]
    # The correlations as well, for features in units of other sizes.
    variance = np.where(sound[:, None], np.einsum("ndd->nd", known), 0.0)
    σ = np.sqrt(np.where(variance > 0, variance, np.inf))
    ρ = np.where(sound[:, None, None], known, 0.0) / σ[:, :, None] / σ[:, None, :]
    unequal = np.abs(ρ - np.swapaxes(ρ, 1, 2)).max(axis=(1, 2), initial=0.0)
    odd = np.fmax(unequal, -np.linalg.eigvalsh(ρ).min(axis=1, initial=0.0)) > CORRELATION
    bad = (skew > 1e-8 * size) | (lowest < -1e-8 * size) | ~sound | odd
    if bad.any():
        raise InputError(
            f"the covariance of {_row(ids, int(np.argmax(bad)))} is none: it must be symmetric and"
            " positive semi-definite, with inf on the diagonal for what was not measured"
        )
    variance = np.where(finite, X_err, 0.0) ** 2
    other = np.abs(np.einsum("ndd->nd", known) - variance) > 1e-6 * variance
    if other.any():
        raise InputError(
            f"the covariance of {_row(ids, int(np.argmax(other.any(axis=1))))} has other variances"
            " than X_err²; give errors and covariance of the same measurement"
        )
    np.einsum("ndd->nd", known)[~finite] = np.inf
    return known


def informative(X: np.ndarray, X_err: np.ndarray) -> np.ndarray:
    """Which values tell where those of their feature lie: a mask [n, d], some of each column that
    was measured.

    Those whose error is at most ten robust widths (interquartile range / 1.349) of the column. The
    value that comes with a larger one may be anywhere, and would spoil a mean or a deviation.
    """
    measured = np.isfinite(X_err)
    values = np.where(measured, X, np.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a column that was not measured
        lower, upper = np.nanpercentile(values, [25, 75], axis=0)
        deviation = np.nanstd(values, axis=0)
    width = np.where(upper > lower, (upper - lower) / 1.349, deviation)
    precise = measured & (X_err <= 10.0 * width)
    return np.where(precise.any(axis=0), precise, measured)
