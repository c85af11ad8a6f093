"""What estimators of inputs with error bars share: settings, scaling, the way to a fit, and what is
the same of classes and of a response in what they predict.

Errors are scaled with their values, and sources with values that were not measured are kept. What
comes in is checked in `door.py`, and files are `saving.py`'s.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from inspect import signature
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, check_random_state

from gpal.array_messages import as_numbers, refuse_masked
from gpal.errors import InputError
from gpal.measurements import Measurements, informative
from gpal.model.door import Door
from gpal.model.outliers import FARTHEST, without_outliers
from gpal.model.saving import SavedEstimator
from gpal.model.training_sample import TrainingSample
from gpal.plain_values import plain, refuse_other_columns
from gpal.provenance import json_safe
from gpal.summary import Summary

if TYPE_CHECKING:
    from gpal.model.posterior import Posterior

__all__ = ["NoisyInputEstimator"]

# Rise of the bound per source in the last round, in nats, that is worth a warning.
USUAL_ROUNDS = 20
UNFINISHED = 1e-3

Estimator = TypeVar("Estimator", bound="NoisyInputEstimator")


class NoisyInputEstimator(Door, SavedEstimator):
    """A subclass has the constructor's arguments, and says whether y is numeric.

    The first argument X of every method is Measurements, which carry their errors, or an array
    (n, d) with X_err or X_cov beside it.
    """

    # Seen by type checkers: constructor arguments of every subclass.
    error_scale: Any
    error_floor: Any
    learn_errors: str
    max_rounds: int
    population: Any
    input_noise: Any
    inducing_points: Any
    random_state: Any

    def check_settings(
        self, num_classes: int | None = None, num_features: int | None = None
    ) -> None:
        """Raise InputError for settings that no data could be fitted with.

        Parameters
        ----------
        num_classes, num_features : int, optional
            C and d of the data to come; what is None is left open.
        """
        raise NotImplementedError

    def summary(self) -> Summary:
        """What was fitted, in a few lines: text, and a table in a notebook.

        Returns
        -------
        Summary
            Likelihood, classes, treatment of error bars, inference, how far learning went, and the
            range and lengthscales of every feature.
        """
        from gpal.model.summary import summary_of

        return summary_of(self)

    # ---- latent functions ------------------------------------------------------------------------

    def predict_latent(
        self, X: Any, X_err: Any = None, X_cov: Any = None, *, full_cov: bool = False
    ) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of the latent functions, over q(f) and the input.

        Parameters
        ----------
        X : Measurements or array (n, d)
            Sources, or their values.
        X_err : array (n, d), (d,) or float, optional
            1-sigma errors of the values.
        X_cov : array (n, d, d), optional
            Covariances of the errors instead.
        full_cov : bool
            The covariance of all sources in place of the variance.

        Returns
        -------
        mean : array (n, P)
        variance : array (n, P), or (P, n, n)
            Of P latent functions.
        """
        from gpal.model import latent

        sources = self._to_predict(X, X_err, X_cov)
        mean, variance = latent.moments(self.model_, sources)
        return mean, latent.covariance(self.model_, sources) if full_cov else variance

    def sample_latent(
        self, X: Any, X_err: Any = None, X_cov: Any = None, *, num_samples: int = 1, seed: int = 0
    ) -> np.ndarray:
        """Latent functions drawn jointly at all sources, inputs drawn too.

        Parameters
        ----------
        X : Measurements or array (n, d)
            Sources, or their values.
        X_err : array (n, d), (d,) or float, optional
            1-sigma errors of the values.
        X_cov : array (n, d, d), optional
            Covariances of the errors instead.
        num_samples : int
            How many.
        seed : int
            Of the draws.

        Returns
        -------
        array (num_samples, n, P)
        """
        from gpal.model import latent

        sources = self._to_predict(X, X_err, X_cov)
        return latent.samples(self.model_, sources, num_samples, seed)

    @property
    def posterior_(self) -> Posterior:
        """q(f) as a function of exactly known inputs, see `gpal.model.posterior`."""
        from gpal.model.posterior import Posterior

        check_is_fitted(self)
        return Posterior(self.model_, self._exact, self.offset_, self.width_)

    def _refuse_noisy(self, X: Any) -> None:
        """InputError for sources of the posterior that have error bars, or were not measured."""
        known = list(getattr(self, "feature_names_in_", ()))
        if known and set(known) <= set(getattr(X, "columns", ())):
            X = X[known]
        elif known and isinstance(X, Measurements) and set(known) <= set(X.names):
            X = X.select(known)
        noisy = ~X.measured | (X.X_err > 0) if isinstance(X, Measurements) else None
        if noisy is None and not self.packed:
            noisy = np.isnan(as_numbers("X", plain("X", X)))
        if noisy is not None and noisy.ndim == 2 and noisy.any():
            i, j = np.argwhere(noisy)[0]
            names = X.names if isinstance(X, Measurements) else getattr(X, "columns", None)
            name = j if names is None else names[j]
            raise InputError(
                f"'{name}' of row {i} has an error bar, or was not measured: the posterior is of"
                " exact inputs; predict_latent, sample_latent and probability_draws take error bars"
            )

    def _exact(self, X: Any) -> np.ndarray:
        """Standardised values (n, d) of sources whose inputs are known exactly."""
        error = None if self.packed or isinstance(X, Measurements) else 0.0
        self._refuse_noisy(X)
        sources = self._at_the_door(X, error, None)
        self._refuse_noisy(sources)  # of packed arrays they are known now
        return self._scaled(sources).X

    def remeasured(
        self,
        X: Any,
        X_err: Any = None,
        X_cov: Any = None,
        *,
        shrink: float = 0.5,
        outcomes: int = 32,
    ) -> Iterator[Measurements]:
        """The sources after a second measurement, in each of its possible outcomes, all equally
        likely.

        Parameters
        ----------
        X : Measurements or array (n, d)
            Sources, or their values.
        X_err : array (n, d), (d,) or float, optional
            1-sigma errors of the values.
        X_cov : array (n, d, d), optional
            Covariances of the errors instead.
        shrink : float
            The second measurement leaves this part of the errors, from 0 to 1.
        outcomes : int
            How many.

        Yields
        ------
        Measurements
        """
        from gpal.model import second_measurement

        check_is_fitted(self)
        if not 0 <= shrink <= 1:
            raise InputError(f"shrink is the part of the errors that is left, 0 to 1; got {shrink}")
        if outcomes < 1:
            raise InputError(f"outcomes must be 1 or more, got {outcomes}")
        sources = self._at_the_door(X, X_err, X_cov)
        scaled = self._scaled(sources)
        for outcome in second_measurement.outcomes(self.model_, scaled, shrink, outcomes):
            covariance = sources.covariance
            if covariance is not None:
                outer = np.multiply.outer(self.width_, self.width_)
                covariance = outcome.covariance * outer
            yield replace(
                sources,
                X=outcome.X * self.width_ + self.offset_,
                X_err=outcome.X_err * self.width_,
                covariance=covariance,
            )

    # ---- fitting ---------------------------------------------------------------------------------

    def _fit_model(
        self, fit: Callable, sources: Measurements, y: np.ndarray, weight: np.ndarray | None = None
    ) -> None:
        """`model_`, `settings_` and `bound_` by a function of `gpal.model.fit`, in standardised
        units; weight [n] of the sources, None: they count once."""
        from gpal.model.settings import check_values

        check_values(self, sources.X.shape[1])
        for name in ("error_scale", "error_floor", "inducing_points"):
            refuse_other_columns(name, getattr(self, name), sources.names)
        self._set_scaling(sources, weight)
        self.training_, self.provenance_ = TrainingSample.of(sources), {}
        Z = self.inducing_points
        self.exact_inputs_ = not (sources.X_err > 0).any()
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        scaled = self._scaled(sources)
        self.model_ = fit(
            self,
            scaled,
            y,
            seed,
            floor=np.asarray(self.error_floor, float) / self.width_,
            Z=None if Z is None else (np.asarray(Z, float) - self.offset_) / self.width_,
            weight=weight,
        )
        # What was used, whatever set_params says later; but `prior` is of each prediction.
        used = {k: v for k, v in self._plain_parameters().items() if k != "prior"}
        self.model_.settings.update(used | self.model_.settings)
        self._describe()
        self._warn_of_unfinished_learning()

    def _warn_of_unfinished_learning(self) -> None:
        """Fewer rounds than the default are a choice: `converged_` says what came of it."""
        trace = self.bounds_per_round_
        enough_asked = len(trace) > 1 and self.max_rounds >= _usual_rounds(type(self))
        if self.converged_ is False and enough_asked and trace[-1] - trace[-2] > UNFINISHED:
            warnings.warn(
                f"hyper-parameters had not converged after {self.n_rounds_} rounds: the last one"
                f" still raised the bound by {trace[-1] - trace[-2]:.2g} per source; raise"
                f" max_rounds (now {self.max_rounds})",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _describe(self) -> None:
        """`settings_`, `bound_` and the course of learning of the fitted model, which is that of no
        file any more.

        Errors are in the user's units; kernels refer to (X − offset)/width, which is given.
        """
        floor = self.model_.true_input.floor.numpy() * self.width_
        self.settings_ = {
            **self._plain_parameters(),
            **self.model_.settings,
            "error_floor": floor.tolist(),
            "standardisation": {"offset": self.offset_.tolist(), "width": self.width_.tolist()},
        }
        self.provenance_ = {k: v for k, v in self.provenance_.items() if k != "model_sha256"}
        self.bound_ = self.model_.bound
        self.temperature_ = self.model_.temperature
        learning = self.model_.settings.get("learning", {})
        self.converged_: bool | None = learning.get("converged")
        self.bounds_per_round_: list[float] = learning.get("bounds", [])
        self.n_rounds_ = max(0, len(self.bounds_per_round_) - 1)

    def _refitted(self: Estimator, model: Any) -> Estimator:
        """A copy with another model of the same hyper-parameters."""
        fitted = clone(self)
        fitted.__dict__.update(self.__dict__)
        fitted.model_ = model
        fitted._describe()
        return fitted

    def _refits(self, noisy: np.ndarray) -> bool:
        """Whether q(f) alone can be found anew where `noisy` [d] features have errors."""
        if not hasattr(self, "model_") or not self.model_.can_refit:
            return False
        if noisy.any() and not self.X_err_given_:
            return False
        treatment = self.model_.input_noise
        if treatment.uses_root:
            return set(np.flatnonzero(noisy)) <= set(self.model_.gp.noisy)
        # A fit without any error has put `none` in the place of the treatment asked for.
        asked = getattr(self.input_noise, "name", self.input_noise)
        return treatment.name == asked or not noisy.any()

    def _to_predict(self, X: Any, X_err: Any, X_cov: Any) -> Measurements:
        """Sources in standardised units, as `model_` takes them."""
        check_is_fitted(self)
        return self._scaled(self._at_the_door(X, X_err, X_cov))

    def _set_scaling(self, sources: Measurements, weight: np.ndarray | None = None) -> None:
        X, X_err = sources.X, sources.X_err
        empty = ~np.isfinite(X_err).any(axis=0)
        if empty.any():
            name = sources.names[int(np.flatnonzero(empty)[0])]
            raise InputError(f"column '{name}' was not measured for any source; leave it out")
        values = np.where(informative(X, X_err), X, np.nan)
        # In units of a power of two, which costs no digit: the square of 1e200 is no number.
        power = np.frexp(np.nanmax(np.abs(values), axis=0))[1]
        values = np.ldexp(values, -power)
        values = without_outliers(values)
        times = np.ones(len(X)) if weight is None else weight
        times = times[:, None] * np.isfinite(values)
        times /= times.sum(axis=0)
        offset = np.nansum(times * values, axis=0)
        spread = np.sqrt(np.nansum(times * (values - offset) ** 2, axis=0))
        constant = spread <= 1e-12 * np.abs(offset)
        self.offset_ = np.ldexp(offset, power)
        self.width_ = np.where(constant, 1.0, np.ldexp(spread, power))

    def _scaled(self, sources: Measurements) -> Measurements:
        scaled = sources.scale(self.offset_, self.width_)
        return replace(scaled, X=np.clip(scaled.X, -FARTHEST, FARTHEST))

    def _counted(
        self, sources: Measurements, y: Any, sample_weight: Any
    ) -> tuple[Measurements, Any, np.ndarray | None]:
        """(sources, y, weights [n]) without those of weight zero; None where all count once."""
        if sample_weight is None:
            return sources, y, None
        refuse_masked(sample_weight=sample_weight)
        sample_weight = as_numbers("sample_weight", plain("sample_weight", sample_weight))
        if not sample_weight.ndim:
            sample_weight = np.full(len(sources), sample_weight)
        if sample_weight.shape != (len(sources),):
            raise InputError(
                f"sample_weight has shape {sample_weight.shape}; give one for each of"
                f" {len(sources)} sources"
            )
        if not np.any(sample_weight):
            raise InputError("sample_weight is zero for all sources; give some of them a weight")
        possible = np.isfinite(sample_weight) & (sample_weight >= 0)
        if not possible.all():
            i = int(np.argmin(possible))
            raise InputError(
                f"sample_weight of row {i} is {sample_weight[i]:g}; it must be a number ≥ 0, 0 to"
                " leave the source out"
            )
        with np.errstate(over="ignore"):
            total = sample_weight.sum()
        if not np.finfo(float).tiny <= total < np.inf:
            raise InputError(
                f"sample_weight sums to {total:g}, which cannot be computed with; divide it by its"
                " mean"
            )
        counts = sample_weight > 0
        sources, y, weight = sources[counts], np.asarray(y)[counts], sample_weight[counts]
        return sources, y, None if (weight == 1).all() else weight

    def _plain_parameters(self) -> dict[str, Any]:
        """Constructor arguments as JSON-able data (objects by their class name)."""
        plain = (str, int, float, bool, type(None), Mapping, np.ndarray, np.generic)

        def described(value: Any) -> Any:
            if isinstance(value, list | tuple):
                return [described(item) for item in value]
            return json_safe(value) if isinstance(value, plain) else type(value).__name__

        return {name: described(value) for name, value in self.get_params(deep=False).items()}


def _usual_rounds(kind: type) -> int:
    """The default of max_rounds of a class, which may need other arguments."""
    given = signature(kind).parameters.get("max_rounds")
    default = None if given is None else given.default
    return default if isinstance(default, int) else USUAL_ROUNDS
