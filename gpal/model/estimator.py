"""What estimators of inputs with error bars share: the door, scaling, the way to a fit, files.

Sources come as Measurements, or as arrays with X_err or X_cov that become Measurements here. Errors
are scaled with their values, sources with values that were not measured are kept, and a model that
was fitted with error bars does not silently predict without them. Every refusal names column, row
and remedy.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import (
    _check_sample_weight,
    check_is_fitted,
    check_random_state,
    validate_data,
)

from gpal.errors import InputError, shown
from gpal.files.saved_data import check_arrays, check_fields, check_keys
from gpal.measurements import (
    Measurements,
    as_measurements,
    errors_beside,
    informative,
    plain,
    unpack,
)
from gpal.model.array_messages import refuse_missing_labels, refuse_text
from gpal.model.known_features import by_name, frame_by_name, in_units
from gpal.model.outliers import FARTHEST, without_outliers
from gpal.model.training_sample import TrainingSample
from gpal.provenance import json_safe
from gpal.summary import Summary

if TYPE_CHECKING:
    from gpal.model.posterior import Posterior

__all__ = ["NoisyInputEstimator"]

# Rise of the bound per source in the last round, in nats, that is worth a warning.
UNFINISHED = 1e-3

Estimator = TypeVar("Estimator", bound="NoisyInputEstimator")


class NoisyInputEstimator(BaseEstimator):
    """A subclass has the constructor's arguments, and says whether y is numeric.

    The first argument X of every method is Measurements, which carry their errors, or an array
    (n, d) with X_err or X_cov beside it.
    """

    takes_measurements = True
    # Of a model file, see `to_data`: its fields, and the arrays beside those of the fitted model.
    saved_fields: ClassVar[dict[str, Any]] = {
        "parameters": dict,
        "feature_names": [str],
        "units": [str],
        "n_features_in": int,
        "X_err_given": bool,
        "exact_inputs": bool,
        "model": dict,
    }
    saved_arrays: ClassVar[dict[str, str]] = {
        "offset": "float d",
        "width": "float d",
        "training_range": "float 2 d",
        "training": "float s d",
    }
    y_numeric = False
    # Seen by type checkers: constructor arguments and fitted attributes of every subclass.
    packed: bool
    error_scale: Any
    error_floor: Any
    learn_errors: str
    max_rounds: int
    population: Any
    input_noise: Any
    inducing_points: Any
    random_state: Any
    model_: Any
    offset_: np.ndarray
    width_: np.ndarray
    units_in_: tuple[str, ...]
    training_: TrainingSample
    provenance_: Mapping[str, Any] = MappingProxyType({})  # of the file that it was saved to

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

    def _exact(self, X: Any) -> np.ndarray:
        """Standardised values (n, d) of sources whose inputs are known exactly."""
        error = None if self.packed or isinstance(X, Measurements) else 0.0
        sources = self._at_the_door(X, error, None)
        if (sources.X_err > 0).any():
            i, j = np.argwhere(sources.X_err > 0)[0]
            raise InputError(
                f"'{sources.names[j]}' of row {i} has an error bar, or was not measured: the"
                " posterior is of exact inputs; predict_latent, sample_latent and probability_draws"
                " take error bars"
            )
        return self._scaled(sources).X

    def remeasured(
        self,
        X: Any,
        X_err: Any = None,
        X_cov: Any = None,
        *,
        shrink: float = 0.5,
        outcomes: int = 16,
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
            The second measurement leaves this part of the errors.
        outcomes : int
            How many.

        Yields
        ------
        Measurements
        """
        from gpal.model import second_measurement

        check_is_fitted(self)
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
        self._describe()
        self._warn_of_unfinished_learning()

    def _warn_of_unfinished_learning(self) -> None:
        """Fewer rounds than the default are a choice: `converged_` says what came of it."""
        trace = self.bounds_per_round_
        enough_asked = len(trace) > 1 and self.max_rounds >= type(self)().max_rounds
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
        learning = self.model_.settings.get("learning", {})  # not in files of before 0.4
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
        if not np.any(np.asarray(sample_weight)):
            raise InputError("sample_weight is zero for all sources; give some of them a weight")
        weight = _check_sample_weight(sample_weight, sources.X, dtype=np.float64)
        if not np.isfinite(weight).all() or (weight < 0).any():
            i = int(np.argmin(np.isfinite(weight) & (weight >= 0)))
            raise InputError(
                f"sample_weight of row {i} is {weight[i]:g}; it must be a number ≥ 0, 0 to leave"
                " the source out"
            )
        counts = weight > 0
        sources, y, weight = sources[counts], np.asarray(y)[counts], weight[counts]
        return sources, y, None if (weight == 1).all() else weight

    # ---- the door --------------------------------------------------------------------------------

    def as_fitted(self, X: Any, X_err: Any = None, X_cov: Any = None) -> Measurements:
        """The sources with the features of the fit alone, in its order and units.

        Parameters
        ----------
        X : Measurements or array (n, d)
            Sources, or their values.
        X_err : array (n, d), (d,) or float, optional
            1-sigma errors of the values.
        X_cov : array (n, d, d), optional
            Covariances of the errors instead.

        Returns
        -------
        Measurements
        """
        check_is_fitted(self)
        return self._at_the_door(X, X_err, X_cov)

    def _at_the_door(self, X: Any, X_err: Any, X_cov: Any) -> Measurements:
        """Sources to predict, with the features of the fit in its order."""
        return self._received(X, None, X_err, X_cov, reset=False)[0]

    def _received(
        self, X: Any, y: Any, X_err: Any, X_cov: Any, reset: bool
    ) -> tuple[Measurements, Any]:
        """Sources and checked responses; `reset` when they are to be learned from."""
        from gpal.model.settings import check_values

        if reset:
            check_values(self)
        if isinstance(X, Measurements):
            sources, y = self._received_measurements(as_measurements(X, X_err, X_cov), y, reset)
            errors_given = True
        else:
            errors_given = self.packed or X_err is not None or X_cov is not None
            sources, y = self._received_arrays(X, y, X_err, X_cov, reset)
        if reset:
            self.X_err_given_ = errors_given
        elif self.X_err_given_ and not errors_given:
            raise InputError(
                "the model was fitted with error bars: pass X_err, or X_err=0 for exact inputs"
            )
        elif self.exact_inputs_ and (sources.measured & (sources.X_err > 0)).any():
            raise InputError(
                "the model was fitted to exact inputs: fit it with X_err to predict with error bars"
            )
        return sources, y

    def _received_measurements(
        self, sources: Measurements, y: Any, reset: bool
    ) -> tuple[Measurements, Any]:
        """Features are found by name, and converted to the units of the fit."""
        if self.packed:
            raise InputError("packed=True is for arrays [X | X_err]; Measurements need no packing")
        known = getattr(self, "feature_names_in_", None)
        if not reset and known is not None and sources.named:
            sources = in_units(by_name(sources, list(known)), self.units_in_)
        elif not reset and sources.named:
            warnings.warn(
                "the model was fitted without names of features:"
                f" {shown(', '.join(sources.names), 300)} are taken for its features in this order;"
                " fit it to Measurements or a data frame and they are found by name",
                stacklevel=5,
            )
        values: Any = sources.X
        if sources.named and (reset or known is not None):
            values = pd.DataFrame(values, columns=list(sources.names))
        _, y = self._checked(values, y, reset)
        if reset:
            self.units_in_ = sources.units
        return sources, y

    def _received_arrays(
        self, X: Any, y: Any, X_err: Any, X_cov: Any, reset: bool
    ) -> tuple[Measurements, Any]:
        known = getattr(self, "feature_names_in_", None)
        if not reset and known is not None and hasattr(X, "columns"):
            X, X_err, X_cov = frame_by_name(X, X_err, X_cov, list(known))
        X, X_err = plain("X", X), errors_beside(X, X_err)
        if np.ma.is_masked(y):
            raise InputError("y has masked entries; leave out sources without a class")
        if self.packed:
            if X_err is not None or X_cov is not None:
                raise InputError("packed=True takes the errors from X = [X | X_err]; drop X_err")
            packed, y = self._checked(X, y, reset)
            X, X_err = unpack(packed)
        else:
            X, y = self._checked(X, y, reset)
        if reset:
            self.units_in_ = ("",) * X.shape[1]
        names = None if self.packed else getattr(self, "feature_names_in_", None)
        return as_measurements(X, X_err, X_cov, names=names), y

    def _checked(self, X: Any, y: Any, reset: bool) -> tuple[np.ndarray, Any]:
        """As scikit-learn has them; what is not finite in X is for Measurements to refuse."""
        options: dict[str, Any] = {"dtype": np.float64, "reset": reset, "ensure_all_finite": False}
        try:
            if y is None and not reset:
                return validate_data(self, X, **options), None
            return validate_data(self, X, y, y_numeric=self.y_numeric, **options)
        except ValueError:
            refuse_text(X)
            refuse_missing_labels(y)
            raise

    def _plain_parameters(self) -> dict[str, Any]:
        """Constructor arguments as JSON-able data (objects by their class name)."""
        plain = (str, int, float, bool, type(None), Mapping, np.ndarray, np.generic)

        def described(value: Any) -> Any:
            if isinstance(value, list | tuple):
                return [described(item) for item in value]
            return json_safe(value) if isinstance(value, plain) else type(value).__name__

        return {name: described(value) for name, value in self.get_params(deep=False).items()}

    # ---- model files -----------------------------------------------------------------------------

    def save(self, path: str | os.PathLike, provenance: Mapping[str, Any] | None = None) -> None:
        """Write the fitted model to one .npz: arrays and JSON, nothing pickled.

        Parameters
        ----------
        path : str or path
            The file appears when it is whole.
        provenance : mapping, optional
            Kept beside it, where the caller knows more than the model: catalog, seed, date. It is
            `provenance_` then, as of a model that was loaded, until the next `fit`.

        Raises
        ------
        InputError
            Where an argument or the kernel is an object that no file can hold.
        """
        from gpal.model.file import read_provenance, write_model

        check_is_fitted(self)
        write_model(path, type(self).__name__, *self.to_data(), provenance)
        self.provenance_ = read_provenance(path)

    @classmethod
    def load(cls: type[Estimator], path: str | os.PathLike) -> Estimator:
        """The model that `save` wrote: it predicts the same, and can be cloned and fitted.

        Parameters
        ----------
        path : str or path

        Returns
        -------
        estimator
            Its `provenance_` is what was given to `save` as such, and the checksum of the file.
        """
        from gpal.model.file import read_model, read_provenance

        data, arrays = read_model(path, cls.__name__)
        try:
            estimator = cls.from_data(data, arrays)
        except MemoryError:
            raise
        except Exception as error:  # TensorFlow and GPflow raise what they like on a bad value
            what = f"{'' if isinstance(error, InputError) else type(error).__name__ + ': '}{error}"
            raise InputError(
                f"'{path}' is damaged: {shown(what, 300)}; fit the model again"
            ) from error
        estimator.provenance_ = read_provenance(path)
        return estimator

    def to_data(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """What `from_data` makes the estimator from again.

        Returns
        -------
        data : dict
            JSON-able.
        arrays : dict of str to array
        """
        from gpal.model.parameters import parameters_to_data

        model, arrays = self.model_.to_data()
        data = {
            "parameters": parameters_to_data(self.get_params(deep=False)),
            "feature_names": getattr(self, "feature_names_in_", np.array([])).tolist(),
            "units": list(self.units_in_),
            "n_features_in": self.n_features_in_,
            "X_err_given": self.X_err_given_,
            "exact_inputs": bool(self.exact_inputs_),
            "model": model,
        }
        own = {"offset": self.offset_, "width": self.width_, **self.training_.to_arrays()}
        return data, {**arrays, **own}

    @classmethod
    def from_data(
        cls: type[Estimator], data: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
    ) -> Estimator:
        """Inverse of `to_data`.

        Parameters
        ----------
        data : mapping
            As `to_data` makes it.
        arrays : mapping of str to array
            Likewise.

        Returns
        -------
        estimator

        Raises
        ------
        InputError
            For data or arrays that are not as `to_data` makes them.
        """
        from gpal.model.fitted import FittedModel
        from gpal.model.parameters import parameters_from_data

        check_fields(data, cls.saved_fields, "the file")
        d = data["n_features_in"]
        own = {name: arrays[name] for name in cls.saved_arrays if name in arrays}
        check_arrays(own, cls.saved_arrays, {"d": d}, may_be_nan=("training", "training_range"))
        if not (own["width"] > 0).all():
            raise InputError("the array 'width' holds a value that is not above 0")
        if len(data["units"]) != d or len(set(data["feature_names"])) not in (0, d):
            raise InputError(f"'feature_names' or 'units' are not those of {d} features")
        check_keys(data["parameters"], cls._get_param_names(), "the list of parameters")
        estimator = cls(**parameters_from_data(data["parameters"], d))
        estimator.offset_, estimator.width_ = own["offset"], own["width"]
        estimator.training_ = TrainingSample.from_arrays(own["training_range"], own["training"])
        estimator.n_features_in_ = d
        if data["feature_names"]:
            estimator.feature_names_in_ = np.array(data["feature_names"], dtype=object)
        estimator.units_in_ = tuple(data["units"])
        estimator.X_err_given_ = data["X_err_given"]
        estimator.exact_inputs_ = data["exact_inputs"]
        rest = {name: array for name, array in arrays.items() if name not in own}
        estimator.model_ = FittedModel.from_data(data["model"], rest)
        if estimator.model_.population.means.shape[1] != d:
            raise InputError(f"the model is not one of {d} features")
        estimator._describe()
        return estimator
