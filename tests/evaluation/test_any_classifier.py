"""What a classifier of any kind is given of Measurements; a covariance is never lost in silence."""

from __future__ import annotations

import gpflow
import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gpal import GPClassifier
from gpal.errors import InputError
from gpal.evaluation import any_classifier, cross_validate, logistic_regression
from gpal.evaluation.baselines import one_vs_rest
from gpal.evaluation.prospective import prospective_split, prospective_validation
from gpal.input_noise.integrated import Integrated
from gpal.likelihoods import make_likelihood
from gpal.limits import Limits
from gpal.measurements import Measurements


class Recorder(ClassifierMixin, BaseEstimator):
    """Answers equal fractions and keeps what it was given; subclasses differ in what they take."""

    def _keep(self, *given):
        self.given = [*getattr(self, "given", []), given]

    def _answer(self, X, *given):
        self._keep(X, *given)
        return np.full((len(X), len(self.classes_)), 1 / len(self.classes_))


class Values(Recorder):
    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self._keep(X)
        return self

    def predict_proba(self, X):
        return self._answer(X)


class Errors(Recorder):
    def fit(self, X, y, X_err=None):
        self.classes_ = np.unique(y)
        self._keep(X, X_err)
        return self

    def predict_proba(self, X, X_err=None):
        return self._answer(X, X_err)


class Covariances(Recorder):
    def fit(self, X, y, X_err=None, X_cov=None):
        self.classes_ = np.unique(y)
        self._keep(X, X_err, X_cov)
        return self

    def predict_proba(self, X, X_err=None, X_cov=None):
        return self._answer(X, X_err, X_cov)


class Whole(Recorder):
    takes_measurements = True

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self._keep(X)
        return self

    def predict_proba(self, X):
        return self._answer(X)

    def predict_proba_std(self, X, prior=None):
        self._keep(X, prior)
        return np.zeros((len(X), len(self.classes_)))

    def save(self, path, provenance=None):
        path.write_text(str(provenance))

    def check_settings(self, num_classes, num_features):
        raise ValueError(f"{num_classes} {num_features}")


@pytest.fixture
def sources():
    rng = np.random.default_rng(0)
    error = rng.uniform(0.1, 1, size=(12, 2))
    covariance = error[:, :, None] * error[:, None, :] * [[1, 0.3], [0.3, 1]]
    return Measurements(rng.normal(size=(12, 2)), error, ("a", "b"), covariance=covariance)


@pytest.fixture
def y():
    return np.tile(["bll", "psr"], 6)


def test_each_is_given_what_it_can_take(sources, y):
    for kind, expected in (
        (Values, (sources.X,)),
        (Covariances, (sources.X, None, sources.covariance)),
        (Whole, (sources,)),
    ):
        model = any_classifier.fit(kind(), sources, y)
        any_classifier.predict_proba(model, sources)
        for given in model.given:
            assert len(given) == len(expected)
            for one, other in zip(given, expected, strict=True):
                assert one is other
    with pytest.warns(UserWarning, match="Errors takes error bars but no covariance"):
        model = any_classifier.fit(Errors(), sources, y)
    assert model.given[0][1] is sources.X_err


def test_limits_that_a_classifier_has_no_argument_for_are_said(sources, y):
    X_err = np.array(sources.X_err)
    X_err[3, 1] = np.inf
    value, confidence = np.full((2, *X_err.shape), np.nan)
    value[3, 1], confidence[:] = 0.5, 0.0
    confidence[3, 1] = -0.95
    limited = Measurements(sources.X, X_err, ("a", "b"), limits=Limits(value, confidence))
    with pytest.warns(UserWarning, match="Errors takes error bars but no limits: a value of which"):
        any_classifier.fit(Errors(), limited, y)
    model = any_classifier.fit(Whole(), limited, y)
    assert model.given[0][0].limits is limited.limits


def test_what_a_classifier_can_do(sources, y, tmp_path):
    whole, plain = any_classifier.fit(Whole(), sources, y), logistic_regression()
    assert any_classifier.takes_errors(whole) and not any_classifier.takes_errors(plain)
    assert any_classifier.has_deviation(whole) and any_classifier.takes_prior(whole)
    assert not any_classifier.has_deviation(plain) and not any_classifier.takes_prior(plain)
    prior = {"bll": 0.2, "psr": 0.8}
    any_classifier.predict_proba_std(whole, sources, prior)
    assert whole.given[-1] == (sources, prior)
    any_classifier.save(whole, tmp_path / "model", {"seed": 3})
    any_classifier.save(plain, tmp_path / "nothing", {"seed": 3})
    assert [p.name for p in tmp_path.iterdir()] == ["model"]
    assert (tmp_path / "model").read_text() == "{'seed': 3}"
    with pytest.raises(ValueError, match="2 7"):
        any_classifier.check_settings(whole, 2, 7)
    any_classifier.check_settings(plain, 2, 7)


class Kept(Covariances):
    """Writes down, for all clones, which covariance each source came with."""

    kept: list = []  # noqa: RUF012  shared on purpose: cross_validate works on clones

    def _keep(self, *given):
        Kept.kept.append(given)


@pytest.mark.parametrize("whole", [True, False])
def test_cross_validation_keeps_each_covariance_with_its_source(sources, y, whole):
    Kept.kept = []
    arguments = (sources, y) if whole else (sources.X, y, None, sources.covariance)
    cross_validate({"kept": Kept()}, *arguments, n_splits=3)
    assert len(Kept.kept) == 6  # three fits, three predictions
    row = {value: i for i, value in enumerate(sources.X[:, 0])}
    for X, X_err, X_cov in Kept.kept:
        assert X_err is None
        np.testing.assert_array_equal(X_cov, sources.covariance[[row[x] for x in X[:, 0]]])


@pytest.mark.parametrize(
    "classifier",
    [
        GPClassifier(prior={"a": 0.2, "b": 0.8}),
        make_pipeline(StandardScaler(), GaussianNB(priors=[0.2, 0.8])),
    ],
)
def test_class_fractions_of_its_own_are_refused_where_a_job_sets_them(classifier, two_releases):
    with pytest.raises(InputError, match=r"class fractions of its own, .*prior"):
        any_classifier.refuse_own_fractions(classifier)
    split = prospective_split(*two_releases)
    with pytest.raises(InputError, match="class fractions of its own"):
        prospective_validation(split, {"m": (classifier, split.labelled.feature_names)})
    for plain in (GPClassifier(), GaussianNB(), logistic_regression()):
        any_classifier.refuse_own_fractions(plain)


def test_one_against_the_rest_leaves_the_classifier_as_it_was():
    classifier = GPClassifier("bernoulli_logit")
    assert one_vs_rest(classifier).estimator.packed and not classifier.packed


def test_settings_tell_kernels_likelihoods_and_treatments_apart_by_what_they_are():
    class Own:
        pass

    def text(**settings):
        return any_classifier.settings_text(GPClassifier(**settings))

    several = [
        {},
        {"kernel": gpflow.kernels.RBF()},
        {"kernel": gpflow.kernels.RBF(lengthscales=2.0)},
        {"kernel": [gpflow.kernels.RBF(lengthscales=2.0)] * 3},
        {"likelihood": make_likelihood("step", 3, delta=0.1)},
        {"likelihood": make_likelihood("step", 3, delta=0.2)},
        {"input_noise": Integrated(nodes=4)},
        {"input_noise": Integrated(nodes=5)},
    ]
    assert len({text(**each) for each in several}) == len(several)
    for each in several:
        assert text(**each) == text(**each)
    assert text(kernel=Own()) == text(kernel=Own())
    assert "at 0x" not in text(kernel=Own())


def test_a_composite_is_not_handed_values_without_their_errors():
    """One of a packed classifier would take half of the features for error bars."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2)), np.arange(40) % 2
    noisy, exact = Measurements(X, 0.1, ("a", "b")), Measurements(X, 0.0, ("a", "b"))
    inside = GPClassifier(n_inducing=5, max_rounds=1)
    grid = GridSearchCV(inside, {"max_rounds": [1]}, cv=2)
    for composite in (grid, make_pipeline(StandardScaler(), inside)):
        with pytest.raises(InputError, match=r"GPClassifier in it .* packed=True, and give \.pack"):
            any_classifier.fit(composite, noisy, y)
    with pytest.raises(InputError, match=r"without their errors: give \.pack\(\)"):
        any_classifier.fit(one_vs_rest(inside), exact, y)
    fitted = any_classifier.fit(make_pipeline(StandardScaler(), inside), exact, y)
    with pytest.raises(InputError, match="in it values without their errors"):
        any_classifier.predict_proba(fitted, noisy)
    packed = one_vs_rest(GPClassifier("bernoulli_logit", n_inducing=5, max_rounds=1))
    fitted = any_classifier.fit(packed, noisy.pack(), y)
    assert fitted.estimators_[0].offset_.shape == (2,)
