"""GPClassifier: the scikit-learn face of gpal.

    likelihood × input noise × inference

It owns what every user would otherwise get wrong: errors are scaled with their values, sources
with values that were not measured are kept, prediction uses the treatment of training, and a model
fitted with error bars does not silently predict without them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from gpal.array_messages import refuse_masked
from gpal.errors import InputError, shown
from gpal.files.saved_data import whole_number
from gpal.model.batch_learning import BatchLearning
from gpal.model.estimator import NoisyInputEstimator
from gpal.model.labels import as_whole_numbers, check_labels, holds_weights, labels_as_given
from gpal.model.reweighting import prior_ratio, reweighted
from gpal.model.rollback import as_it_was_on_error
from gpal.plain_values import warn_of_other_rows
from gpal.tensorflow_start import import_tensorflow

if TYPE_CHECKING:
    from gpal.model.fit import FitModel
    from gpal.model.posterior import ClassPosterior

__all__ = ["GPClassifier"]

Prior = str | Mapping[Any, float]
LONGEST_CLASS = 1 << 16  # bytes that a model file may take for the name of one


class GPClassifier(ClassifierMixin, BatchLearning):
    """Gaussian-process classifier for inputs with error bars.

    Every method takes sources as Measurements, or as an array X with X_err or X_cov beside it.

    Parameters
    ----------
    likelihood : str or likelihood
        "auto", a name, see `gpal.likelihoods.LIKELIHOODS`, a likelihood object, or GPflow's
        Softmax, MultiClass or Bernoulli. "auto" is "softmax", and for two classes the same model
        with one latent function, "bernoulli_logit", unless labels have weights or there is a kernel
        for each.
    input_noise : str
        What error bars do: "none", "first_order", "integrated", ..., see `gpal.input_noise`.
    population : int or "flat"
        Number of Gaussians in the prior of the true inputs, fitted by extreme deconvolution; "flat"
        takes each measurement for the best guess.
    error_scale, error_floor : float or array (d,)
        V = scale² X_err² + floor², the floor in the units of X.
    learn_errors : str
        What of that is learned from the labels, starting from the values given, a floor of 0 from a
        tenth of the feature's width: "none", "scale", "floor" or "both".
    inference : str
        How q(f) is found: "sites", "svgp", ..., see `gpal.inference.capabilities`.
    kernel : str, kernel, or list of these
        "auto", a name such as "rbf", "matern52", "rbf+linear", a GPflow kernel, or a list of such,
        one for each class in sorted order (one in all where a likelihood has a single latent
        function). "auto" is "rbf" where inputs have errors, and where they are exact "rbf+linear",
        or, for few sources of many features, "isotropic_rbf+dot_product"; of powers of features
        with heavy tails where likelihood, inference, `learn_by` and `inducing_points` are the
        default and the labels ask for them (`gpal.model.heavy_tails`).
    shared_kernel : bool
        One kernel for all latent functions, or one each; of no account with a list.
    n_inducing : int, optional
        Inducing points; None takes a full GP up to 400 exact sources, and above, from 100 on, as
        many as the kernel asks for (`gpal.inference.conditional_variance`). Where inputs have
        errors, 100, or up to 400 sources as many as there are.
    learn_inducing : bool, optional
        Optimise the inducing points, which start at k-means centres; None does so where their
        number is left open and the kernel is learned from more than 4,000 exact inputs.
    inducing_points : array (m, d), optional
        In the units of X, in place of the k-means centres.
    prior : "train" or mapping
        Class fractions that the probabilities should refer to: class -> fraction.
    temperature : float or str
        Predictions divide the mean of q(f) by it: below 1 they are surer. "leave_one_out" chooses
        the one under which labels are most likely given those of the other sources; "auto" does so
        where inputs are exact and the likelihood, too, is "auto", and else is 1
        (`gpal.model.leaving_out`).
    learn_by : str
        What hyper-parameters are learned by: "bound", or "leave_one_out", for a few more steps by
        how likely labels are given those of the other sources; "auto" does so of more than 400
        sources where inputs are exact, likelihood and inference are the default, and the kernel is
        a name. `settings_["learn_by"]` says "bound" where those steps made nothing likelier.
    learn_from : int, optional
        Of more sources than this a sample of so many, drawn at random, gives scaling, population,
        kernel and inducing points; q(f) is that of all. None: all give everything, in memory.
    max_rounds : int
        Rounds of hyper-parameter learning; 0 keeps the kernel as given. An inference that learns
        it in its own steps refuses 0.
    inference_options : mapping, optional
        Further arguments of the function that runs the inference.
    packed : bool
        X is [X | X_err], for tools that know only X (see `gpal.measurements.pack`). No step before
        may choose, scale or exchange columns: the second half is taken for the errors of the first.
    random_state : int
        Seed of k-means and of the population mixture.
    dtype : str
        "float64", or "float32" for the n × m products, of which a full GP has none, and those by
        which `inference` learns by gradients are in float64 all the same. With "float64"
        too, and six classes or more, some products of the search for hyper-parameters are float32:
        see `mixed_precision` of `gpal.inference.sites.Schedule`.
    verbose : bool
        Show a progress bar on a terminal.

    Attributes
    ----------
    classes_ : array (C,)
        Sorted; the columns of probabilities are in this order.
    n_features_in_ : int
        Number of columns of X: of features d, or 2 d where `packed`.
    settings_ : dict
        What was used, as plain data.
    temperature_ : float
        By which predictions divide the mean of q(f).
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
    X_err holds 1-sigma errors in the units of X: an (n, d) array, a (d,) vector, a scalar or None.
    A value that was not measured has X_err = inf (X is ignored there and may be NaN).

    Examples
    --------
    >>> import numpy as np
    >>> from gpal import GPClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 2))
    >>> y = np.where(X[:, 0] > 0, "star", "quasar")
    >>> classifier = GPClassifier(max_rounds=1).fit(X, y, X_err=0.1)
    >>> classifier.predict([[2.0, 0.0]], X_err=0.1)
    array(['star'], dtype='<U6')
    >>> p = classifier.predict_proba([[2.0, 0.0], [2.0, 0.0]], X_err=[[0.1, 0.1], [np.inf, 0.1]])
    >>> bool(p[0, 1] > p[1, 1])  # the second star's first value was not measured
    True
    >>> classifier.predict_proba_std([[2.0, 0.0]], X_err=0.1).shape
    (1, 2)
    """

    saved_fields: ClassVar[dict[str, Any]] = {
        **NoisyInputEstimator.saved_fields,
        "classes": ([str], [bool], [float]),
        "classes_dtype": str,
    }
    saved_arrays: ClassVar[dict[str, str]] = {
        **NoisyInputEstimator.saved_arrays,
        "class_fractions": "float C",
    }

    def __init__(
        self,
        likelihood: Any = "auto",
        *,
        input_noise: Any = "integrated",
        population: int | str = 1,
        error_scale: Any = 1.0,
        error_floor: Any = 0.0,
        learn_errors: str = "none",
        inference: str = "sites",
        kernel: Any = "auto",
        shared_kernel: bool = True,
        n_inducing: int | None = None,
        learn_inducing: bool | None = None,
        inducing_points: Any = None,
        prior: Prior = "train",
        temperature: float | str = "auto",
        learn_by: str = "auto",
        learn_from: int | None = 25_000,
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
        self.shared_kernel = shared_kernel
        self.n_inducing = n_inducing
        self.learn_inducing = learn_inducing
        self.inducing_points = inducing_points
        self.prior = prior
        self.temperature = temperature
        self.learn_by = learn_by
        self.learn_from = learn_from
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
            C and d of the data to come; what is None is left open.
        """
        import_tensorflow()
        from gpal.model.settings import check_classifier

        check_classifier(self, num_classes, num_features)

    # ---- fitting ---------------------------------------------------------------------------------

    def fit(
        self, X: Any, y: Any, X_err: Any = None, X_cov: Any = None, sample_weight: Any = None
    ) -> GPClassifier:
        """Fit to sources and labels.

        Parameters
        ----------
        X : Measurements or array (n, d)
            Sources, or their values.
        y : array (n,)
            Class of each source. Where all that is known is that it is of one of several classes,
            a `set` or `frozenset` of them. Where what was seen is more or less likely by class, a
            mapping class -> weight ≥ 0, p(what was seen | class) up to a factor: {"bll": 0.9,
            "fsrq": 0.1} of an observer who says bll and is right nine times in ten. A set is equal
            weights of its classes, and equal weights of all classes are as if the source were not
            there. Classes of a weight above 0 are some of `classes_`.
        X_err : array (n, d), (d,) or float, optional
            1-sigma errors of the values.
        X_cov : array (n, d, d), optional
            Covariances of the errors instead.
        sample_weight : array (n,), optional
            How many times each source counts: 2 as if it were there twice, 0 as if it were not
            there, in the likelihood, class fractions, scaling and population. (Not in what is
            chosen by leaving a source out, which leaves out all of its weight; in which values are
            so far off that scaling leaves them out; and in where a population of several Gaussians
            starts.)

        Raises
        ------
        InputError
            For sets and weights, where likelihood or inference take none (docs/capabilities.md),
            and for weights that are negative, not finite, or all 0.

        Returns
        -------
        GPClassifier
            Itself.
        """
        import_tensorflow()
        from gpal.model.fit import fit_model

        return self._fit(fit_model, X, y, X_err, X_cov, sample_weight, may_sample=True)

    @classmethod
    def from_gpflow(
        cls, svgp: Any, X: Any, y: Any, X_err: Any = None, X_cov: Any = None, **parameters: Any
    ) -> GPClassifier:
        """A classifier with the posterior of a gpflow.models.SVGP or VGP: nothing is learned.

        Parameters
        ----------
        svgp : gpflow.models.SVGP or VGP
            Class index c of it is the c-th of the sorted labels.
        X : Measurements or array (n, d)
            What it was fitted to, in the units that it takes: scaling, and population prior of the
            inputs.
        y : array (n,)
            Class of each source.
        X_err : array (n, d), (d,) or float, optional
            1-sigma errors, for a classifier that takes error bars in predictions.
        X_cov : array (n, d, d), optional
            Covariances of the errors instead.
        **parameters : Any
            Of the constructor, but for likelihood, kernel and inducing points.

        Returns
        -------
        GPClassifier

        Raises
        ------
        InputError
            For an SVGP that gpal has no counterpart of.
        """
        from gpal.model.fit import fit_model
        from gpal.model.from_gpflow import GivenPosterior, likelihood_of_classes, own_parameters

        given = GivenPosterior.of(svgp)
        own = own_parameters(given, parameters)
        classifier = cls(likelihood=likelihood_of_classes(svgp), **own)
        return classifier._fit(given.model(fit_model), X, y, X_err, X_cov)

    def _fit(
        self,
        fit: FitModel,
        X: Any,
        y: Any,
        X_err: Any,
        X_cov: Any,
        sample_weight: Any = None,
        *,
        may_sample: bool = False,
    ) -> GPClassifier:
        with as_it_was_on_error(self):
            self.streamed_ = self.batch_ = None
            warn_of_other_rows(X, sample_weight=sample_weight)
            sources, y = self._received(X, y, X_err, X_cov, reset=True)
            check_labels(y)
            sources, y, weight = self._counted(sources, y, sample_weight)
            labels = self._set_classes(y)
            sources, labels, weight = self._telling(sources, labels, weight)
            self._refuse_untold(labels)
            counts = self._counts(labels, weight)
            self.class_fractions_ = counts / counts.sum()
            self._prior_ratio(self.prior)
            if may_sample and self._learns_from_sample(len(sources)):
                self._fit_arrays(fit, sources, labels, weight)
            else:
                self._fit_model(fit, sources, labels, weight)
                self.batch_ = self._scaled(sources), labels, weight
        return self

    # ---- prediction ------------------------------------------------------------------------------

    def predict_proba(
        self, X: Any, X_err: Any = None, X_cov: Any = None, *, prior: Prior | None = None
    ) -> np.ndarray:
        """Class probabilities.

        Parameters
        ----------
        X : Measurements or array (n, d)
            Sources, or their values.
        X_err : array (n, d), (d,) or float, optional
            1-sigma errors of the values.
        X_cov : array (n, d, d), optional
            Covariances of the errors instead.
        prior : "train" or mapping, optional
            Class fractions to refer to in this call, as in the constructor; None: that one.

        Returns
        -------
        array (n, C)
            Columns in the order of `classes_`.
        """
        sources, ratio = self._to_predict(X, X_err, X_cov), self._ratio(prior)
        return reweighted(self.model_.predict_proba(sources), ratio)

    def predict_proba_std(
        self, X: Any, X_err: Any = None, X_cov: Any = None, *, prior: Prior | None = None
    ) -> np.ndarray:
        """Standard deviation of p(y = c | f, x) over q(f) and the error bars.

        Parameters
        ----------
        X : Measurements or array (n, d)
            Sources, or their values.
        X_err : array (n, d), (d,) or float, optional
            1-sigma errors of the values.
        X_cov : array (n, d, d), optional
            Covariances of the errors instead.
        prior : "train" or mapping, optional
            Class fractions to refer to in this call, as in the constructor; None: that one.

        Returns
        -------
        array (n, C)
        """
        sources = self._to_predict(X, X_err, X_cov)
        return self.model_.deviation(sources, self._ratio(prior))

    def predict_proba_with_std(
        self, X: Any, X_err: Any = None, X_cov: Any = None, *, prior: Prior | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """`predict_proba` and `predict_proba_std`, in less time than one after the other.

        Parameters
        ----------
        X : Measurements or array (n, d)
            Sources, or their values.
        X_err : array (n, d), (d,) or float, optional
            1-sigma errors of the values.
        X_cov : array (n, d, d), optional
            Covariances of the errors instead.
        prior : "train" or mapping, optional
            Class fractions to refer to in this call, as in the constructor; None: that one.

        Returns
        -------
        P, deviation : arrays (n, C)
        """
        sources, ratio = self._to_predict(X, X_err, X_cov), self._ratio(prior)
        P, deviation = self.model_.with_deviation(sources, ratio)
        return reweighted(P, ratio), deviation

    def predict(self, X: Any, X_err: Any = None, X_cov: Any = None) -> np.ndarray:
        """The most probable class.

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
        probabilities = self.predict_proba(X, X_err, X_cov)
        return self.classes_[np.argmax(probabilities, axis=1)]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Fraction of sources whose most probable class is theirs.

        Parameters
        ----------
        X : Measurements or array (n, d)
            Sources, or their values.
        y : array (n,)
            Class of each source, no sets and no weights.
        sample_weight : array (n,), optional
            How many times each source counts.

        Returns
        -------
        float

        Raises
        ------
        InputError
            Where a label is a set or has weights.
        """
        refuse_masked(y=y, sample_weight=sample_weight)
        if holds_weights(y):
            raise InputError(
                "a score is of sources of one known class: leave out those whose label is a set or"
                " has weights"
            )
        return super().score(X, as_whole_numbers(labels_as_given(y)), sample_weight)

    def probability_draws(
        self, X: Any, X_err: Any = None, X_cov: Any = None, *, nodes: int = 32, samples: int = 64
    ) -> Iterator[np.ndarray]:
        """p(y | f_s, x_t) of every source, for what the measurement and the posterior allow.

            x_t ~ p(x | x̃)    `nodes` fixed quasi-random inputs that the measurement allows, under
                               the population prior; one where every feature is exact
            f_s(x_t)           `samples` fixed points of the posterior at x_t

        The population is the learned one, also of a classifier with a flat prior of its own. Other
        class fractions, `prior`, change it as well: nodes are then taken once or more, as they are
        likely under these. The mean over t and s is not `predict_proba` where the classifier treats
        error bars otherwise than by integration over that population.

        Parameters
        ----------
        X : Measurements or array (n, d)
            Sources, or their values.
        X_err : array (n, d), (d,) or float, optional
            1-sigma errors of the values.
        X_cov : array (n, d, d), optional
            Covariances of the errors instead.
        nodes : int
            T, inputs of each source.
        samples : int
            S, points of the posterior; even, as they come in pairs ± ε.

        Yields
        ------
        array (b, T, S, C)
            Of a block of b sources.
        """
        whole_number(nodes, "nodes", 1)
        if whole_number(samples, "samples", 2) % 2:
            raise InputError(f"samples must be an even number, got {samples}")
        sources = self._to_predict(X, X_err, X_cov)
        return self.model_.draws(sources, self._ratio(None), nodes, samples)

    def sample_proba(
        self, X: Any, X_err: Any = None, X_cov: Any = None, *, num_samples: int = 1, seed: int = 0
    ) -> np.ndarray:
        """p(y | f_s, x̃) of latent functions drawn jointly at all sources, each averaged over the
        inputs that a measurement allows.

        Their mean is `predict_proba` where `prior` is "train". Other class fractions are taken into
        each draw, and there into the mean of all: the mean of the first is another, the more so
        the farther the fractions are from those of training and the less f is known. For numbers of
        sources, see `gpal.metrics.class_counts`. Costs the cube of the number of sources, times
        that of the inputs of each: for some thousand at most.

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
        array (num_samples, n, C)
        """
        from gpal.model import latent

        sources, of = self._to_predict(X, X_err, X_cov), self.model_.probabilities_of
        p = latent.mean_over_inputs(self.model_, sources, num_samples, seed, of)
        return reweighted(p, self._ratio(None))

    @property
    def posterior_(self) -> ClassPosterior:
        """q(f), and the probabilities that it gives, as functions of exactly known inputs."""
        from gpal.model.posterior import ClassPosterior

        check_is_fitted(self)
        scaling = self.offset_, self.width_
        return ClassPosterior(self.model_, self._exact, *scaling, self.classes_)

    def _ratio(self, prior: Prior | None) -> np.ndarray:
        return self._prior_ratio(self.prior if prior is None else prior)

    def _prior_ratio(self, prior: Prior) -> np.ndarray:
        return prior_ratio(prior, self.classes_, self.class_fractions_, stacklevel=6)

    # ---- model files -----------------------------------------------------------------------------

    def to_data(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """What `from_data` makes the classifier from again.

        Returns
        -------
        data : dict
            JSON-able.
        arrays : dict of str to array
        """
        if not all(isinstance(name, str | bool | int | float) for name in self.classes_.tolist()):
            raise InputError("a model file holds classes that are text, numbers, or truth values")
        data, arrays = super().to_data()
        data["classes"] = self.classes_.tolist()
        data["classes_dtype"] = self.classes_.dtype.str
        return data, {**arrays, "class_fractions": self.class_fractions_}

    @classmethod
    def from_data(cls, data: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> GPClassifier:
        """Inverse of `to_data`.

        Parameters
        ----------
        data : mapping
            As `to_data` makes it.
        arrays : mapping of str to array
            Likewise.

        Returns
        -------
        GPClassifier

        Raises
        ------
        InputError
            For data or arrays that are not as `to_data` makes them.
        """
        classifier = super().from_data(data, arrays)
        dtype = np.dtype(data["classes_dtype"])
        if dtype.kind not in "biufUO" or dtype.itemsize > LONGEST_CLASS:
            raise InputError(
                f"'classes_dtype' of the file is {shown(dtype)}, which classes are not"
            )
        classes = np.array(data["classes"], dtype=dtype)
        fractions = arrays["class_fractions"]
        if not classes.tolist() == data["classes"] == np.unique(classes).tolist():
            raise InputError(
                f"'classes' of the file are not distinct names of one kind, sorted: {classes}"
            )
        if len(fractions) != len(classes) or classifier.model_.likelihood.num_classes != len(
            classes
        ):
            raise InputError(f"the model is not one of {len(classes)} classes")
        if (fractions < 0).any() or not np.isclose(fractions.sum(), 1):
            raise InputError("the array 'class_fractions' does not hold fractions")
        classifier.classes_, classifier.class_fractions_ = classes, fractions
        classifier.check_settings(len(classes), len(classifier.offset_))
        cls._prior_ratio(classifier, classifier.prior)
        return classifier
