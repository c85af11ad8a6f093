"""NoisyInputGP: a response of any kind, predicted from inputs with error bars.

    p(y | f(x)) × input noise × inference,      f ~ GP(0, k)

for every likelihood of GPflow that has one latent function: measurements with normal errors
(Gaussian) or outliers (Student-t), counts (Poisson), grades (Ordinal), and so on. The treatments of
input noise are those of the classifier (Villacampa-Calvo et al. 2021, sec. 3.5).

Where the input is integrated over, S nodes x_s per source, predictions are those of the mixture:

    E[y] = (1/S) Σ_s E_s[y]      Var[y] = (1/S) Σ_s (Var_s[y] + E_s[y]²) − E[y]²
    p(y) = (1/S) Σ_s p_s(y)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from scipy.special import logsumexp
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d

from gpal.array_messages import refuse_masked
from gpal.model.estimator import NoisyInputEstimator
from gpal.model.rollback import as_it_was_on_error
from gpal.plain_values import plain, warn_of_other_rows
from gpal.tensorflow_start import import_tensorflow

__all__ = ["NoisyInputGP"]


class NoisyInputGP(NoisyInputEstimator):
    """Gaussian process for inputs with error bars and any single-latent likelihood.

    Parameters
    ----------
    likelihood : str or gpflow.likelihoods.ScalarLikelihood
        A name, see `gpal.inference.single_latent.SINGLE_LATENT`, or an object, which is copied:
        learning starts from its parameters.
    input_noise : str
        As in `GPClassifier`, as are all below but for max_rounds.
    population : int or "flat"
        Number of Gaussians in the prior of the true inputs.
    error_scale, error_floor : float or array (d,)
        V = scale² X_err² + floor².
    learn_errors : str
        What of that is learned.
    inference : str
        How q(f) is found.
    kernel : str or kernel
        Of the latent function.
    n_inducing : int, optional
        Inducing points.
    learn_inducing : bool
        Optimise them.
    inducing_points : array (m, d), optional
        In the units of X.
    max_rounds : int
        Rounds of learning kernel and likelihood; 0 keeps both as given. An inference that learns
        them in its own steps refuses 0.
    inference_options : mapping, optional
        Further arguments of the function that runs the inference.
    packed : bool
        X is [X | X_err]. No step before may choose, scale or exchange columns: the second half is
        taken for the errors of the first.
    random_state : int
        Seed.
    dtype : str
        "float64" or "float32".
    verbose : bool
        Show a progress bar on a terminal.

    Attributes
    ----------
    likelihood_ : likelihood
        The fitted one.
    n_features_in_ : int
        Number of columns of X: of features d, or 2 d where `packed`.
    settings_ : dict
        What was used, as plain data.
    bound_ : float
        The evidence lower bound per source, nats.
    X_err_given_ : bool
        Whether it was fitted with error bars.
    n_rounds_ : int
        Rounds of learning.
    bounds_per_round_ : list of float
        `bound_` before and after each.
    converged_ : bool or None
        Whether it had stopped rising; None without rounds.

    Notes
    -----
    X is standardised, and the kernel refers to that; y is taken as it is. The kernels by name have
    an offset of variance 1 to start from: of a Gaussian or Student-t response subtract the mean and
    divide by the standard deviation first.

    Examples
    --------
    >>> import numpy as np
    >>> from gpal import NoisyInputGP
    >>> x = np.linspace(-2, 2, 40)[:, None]
    >>> process = NoisyInputGP(max_rounds=3).fit(x, np.sin(x[:, 0]), X_err=0.01)
    >>> mean, variance = process.predict_y([[1.0]], X_err=0.01)
    >>> round(float(mean[0]), 1)
    0.8
    """

    y_numeric = True
    shared_kernel = True  # there is one latent function

    def __init__(
        self,
        likelihood: Any = "gaussian",
        *,
        input_noise: Any = "integrated",
        population: int | str = 1,
        error_scale: Any = 1.0,
        error_floor: Any = 0.0,
        learn_errors: str = "none",
        inference: str = "sites",
        kernel: Any = "rbf",
        n_inducing: int | None = None,
        learn_inducing: bool = False,
        inducing_points: Any = None,
        max_rounds: int = 20,
        inference_options: Mapping[str, Any] | None = None,
        packed: bool = False,
        random_state: Any = 0,
        dtype: str = "float64",
        verbose: bool = False,
    ) -> None:
        self.likelihood = likelihood
        self.input_noise = input_noise
        self.population = population
        self.error_scale = error_scale
        self.error_floor = error_floor
        self.learn_errors = learn_errors
        self.inference = inference
        self.kernel = kernel
        self.n_inducing = n_inducing
        self.learn_inducing = learn_inducing
        self.inducing_points = inducing_points
        self.max_rounds = max_rounds
        self.inference_options = inference_options
        self.packed = packed
        self.random_state = random_state
        self.dtype = dtype
        self.verbose = verbose

    def check_settings(
        self, num_classes: int | None = None, num_features: int | None = None
    ) -> None:
        """Raise InputError for settings that no data could be fitted with.

        Parameters
        ----------
        num_classes, num_features : int, optional
            There are no classes; d of the data to come, left open where None.
        """
        import_tensorflow()
        from gpal.model.settings import check_response

        check_response(self, num_features)

    def fit(
        self, X: Any, y: Any, X_err: Any = None, X_cov: Any = None, sample_weight: Any = None
    ) -> NoisyInputGP:
        """Fit to sources and responses.

        Parameters
        ----------
        X : Measurements or array (n, d)
            Sources, or their values.
        y : array (n,)
            Responses.
        X_err : array (n, d), (d,) or float, optional
            1-sigma errors of the values.
        X_cov : array (n, d, d), optional
            Covariances of the errors instead.
        sample_weight : array (n,), optional
            How many times each source counts.

        Returns
        -------
        NoisyInputGP
            Itself.
        """
        import_tensorflow()
        from gpal.model.fit import fit_response_model

        warn_of_other_rows(X, sample_weight=sample_weight)
        with as_it_was_on_error(self):
            sources, y = self._received(X, y, X_err, X_cov, reset=True)
            sources, y, weight = self._counted(sources, y, sample_weight)
            self._fit_model(fit_response_model, sources, np.asarray(y, float), weight)
        return self

    @classmethod
    def from_gpflow(
        cls, svgp: Any, X: Any, y: Any, X_err: Any = None, X_cov: Any = None, **parameters: Any
    ) -> NoisyInputGP:
        """A fitted process with the posterior of an SVGP, or VGP, of one latent function.

        Parameters
        ----------
        svgp : gpflow.models.SVGP or VGP
            See `GPClassifier.from_gpflow`.
        X : Measurements or array (n, d)
            What it was fitted to.
        y : array (n,)
            Responses.
        X_err : array (n, d), (d,) or float, optional
            1-sigma errors of the values.
        X_cov : array (n, d, d), optional
            Covariances of the errors instead.
        **parameters : Any
            Of the constructor, but for likelihood, kernel and inducing points.

        Returns
        -------
        NoisyInputGP
        """
        from gpal.model.fit import fit_response_model
        from gpal.model.from_gpflow import GivenPosterior, likelihood_of_response, own_parameters

        given = GivenPosterior.of(svgp)
        own = own_parameters(given, parameters)
        process = cls(likelihood=likelihood_of_response(svgp), **own)
        sources, y = process._received(X, y, X_err, X_cov, reset=True)
        process._fit_model(given.model(fit_response_model), sources, np.asarray(y, float))
        return process

    @classmethod
    def from_data(cls, data: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> NoisyInputGP:
        """Inverse of `to_data`.

        Parameters
        ----------
        data : mapping
            As `to_data` makes it.
        arrays : mapping of str to array
            Likewise.

        Returns
        -------
        NoisyInputGP

        Raises
        ------
        InputError
            For data or arrays that are not as `to_data` makes them.
        """
        process = super().from_data(data, arrays)
        process.check_settings(None, len(process.offset_))
        return process

    @property
    def likelihood_(self) -> Any:
        """The fitted likelihood."""
        check_is_fitted(self)
        return self.model_.likelihood

    # ---- prediction ------------------------------------------------------------------------------

    def predict_f(
        self, X: Any, X_err: Any = None, X_cov: Any = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of the latent function, over q(f) and the input.

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
        mean, variance : arrays (n,)
        """
        mean, variance = self.predict_latent(X, X_err, X_cov)
        return mean[:, 0], variance[:, 0]

    def predict_y(
        self, X: Any, X_err: Any = None, X_cov: Any = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of a new response.

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
        mean, variance : arrays (n,)
            A Student-t of df 2 or less has infinite variances, and of df 1 or less no mean:
            InputError.
        """
        check_is_fitted(self)
        from gpal.inference.response_distribution import response_moments

        return self._moments(partial(response_moments, self.likelihood_), X, X_err, X_cov)

    def predict(self, X: Any, X_err: Any = None, X_cov: Any = None) -> np.ndarray:
        """Mean of a new response.

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
        array (n,)
        """
        return self.predict_y(X, X_err, X_cov)[0]

    def predict_log_density(
        self, X: Any, y: Any, X_err: Any = None, X_cov: Any = None
    ) -> np.ndarray:
        """log p(y) of new responses.

        Parameters
        ----------
        X : Measurements or array (n, d)
            Sources, or their values.
        y : array (n,)
            Responses.
        X_err : array (n, d), (d,) or float, optional
            1-sigma errors of the values.
        X_cov : array (n, d, d), optional
            Covariances of the errors instead.

        Returns
        -------
        array (n,)
        """
        from gpal.inference.response_distribution import response_log_density

        sources = self._to_predict(X, X_err, X_cov)
        refuse_masked(y=y)
        y = column_or_1d(plain("y", y), dtype=np.float64)
        check_consistent_length(sources.X, y)
        self.model_.check_response(y)

        def log_density(mean: Any, variance: Any, nodes: int, y: np.ndarray) -> tuple[Any]:
            Y = np.repeat(y, nodes)[:, None]
            log_p = response_log_density(self.likelihood_, mean, variance, Y)
            return (logsumexp(np.reshape(log_p, [-1, nodes]), axis=1) - np.log(nodes),)

        return self.model_.over_nodes(log_density, sources, y)[0]

    def score(self, X: Any, y: Any, X_err: Any = None, X_cov: Any = None) -> float:
        """Mean log density of the responses.

        Parameters
        ----------
        X : Measurements or array (n, d)
            Sources, or their values.
        y : array (n,)
            Responses.
        X_err : array (n, d), (d,) or float, optional
            1-sigma errors of the values.
        X_cov : array (n, d, d), optional
            Covariances of the errors instead.

        Returns
        -------
        float
        """
        return float(np.mean(self.predict_log_density(X, y, X_err, X_cov)))

    def _moments(
        self, predict: Callable[..., Any], X: Any, X_err: Any, X_cov: Any
    ) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of the mixture over nodes, each with the moments predict(m, v)."""
        sources = self._to_predict(X, X_err, X_cov)

        def of_mixture(m: Any, v: Any, nodes: int) -> tuple[Any, Any]:
            means, variances = (np.reshape(part, [-1, nodes]) for part in predict(m, v))
            return means.mean(axis=1), variances.mean(axis=1) + means.var(axis=1)

        mean, variance = self.model_.over_nodes(of_mixture, sources)
        return mean, variance
