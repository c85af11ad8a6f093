"""GPClassifier as scikit-learn sees it, and what it promises about error bars."""

import astropy.units as u
import gpflow
import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from gpal import GPClassifier, InputError
from gpal.arrays import as_measurements
from gpal.likelihoods import make_likelihood
from gpal.measurements import pack
from gpal.model.reweighting import reweighted


@pytest.fixture(scope="module")
def three_classes():
    """(X, y, X_err): 150 sources, three overlapping classes, errors that differ between sources."""
    rng = np.random.default_rng(3)
    y = rng.integers(0, 3, 150)
    centres = np.array([[0.0, 0.0, 0.0], [2.0, 0.5, 0.0], [0.0, 2.0, 1.0]])
    truth = centres[y] + rng.normal(size=(150, 3)) * 0.7
    X_err = rng.uniform(0.05, 0.8, size=truth.shape)
    X_err[:, 2] = 0.0
    X = truth + rng.normal(size=truth.shape) * X_err
    return X * [1.0, 100.0, 1e-9], np.array(["a", "b", "c"])[y], X_err * [1.0, 100.0, 1e-9]


@pytest.fixture(scope="module")
def fitted(three_classes):
    X, y, X_err = three_classes
    return GPClassifier(n_inducing=30).fit(X, y, X_err)


BY_NAME = {
    "check_dataframe_column_names_consistency": "columns in another order are found by name",
}


@parametrize_with_checks([GPClassifier(max_rounds=0)], expected_failed_checks=lambda _: BY_NAME)
def test_scikit_learn_estimator_checks(estimator, check):
    check(estimator)


def test_probabilities_are_a_distribution_and_beat_the_class_fractions(fitted, three_classes):
    X, y, X_err = three_classes
    P = fitted.predict_proba(X, X_err)
    assert P.shape == (150, 3)
    assert (P >= 0).all()
    np.testing.assert_allclose(P.sum(axis=1), 1.0, atol=1e-12)
    nll = -np.log(P[np.arange(150), np.searchsorted(fitted.classes_, y)]).mean()
    assert nll < 0.7 * np.log(3)


def test_the_same_call_twice_and_the_same_fit_twice_agree(fitted, three_classes):
    X, y, X_err = three_classes
    P = fitted.predict_proba(X, X_err)
    np.testing.assert_array_equal(P, fitted.predict_proba(X, X_err))
    again = GPClassifier(n_inducing=30).fit(X, y, X_err)
    np.testing.assert_allclose(P, again.predict_proba(X, X_err), atol=1e-8)


def test_units_do_not_matter(fitted, three_classes):
    """Scaling a feature and its error bars together changes nothing but rounding."""
    X, y, X_err = three_classes
    factor = np.array([1024.0, 1 / 128, 4.0])  # powers of two: no rounding in the product
    scaled = GPClassifier(n_inducing=30).fit(X * factor, y, X_err * factor)
    np.testing.assert_allclose(
        scaled.predict_proba(X * factor, X_err * factor),
        fitted.predict_proba(X, X_err),
        atol=1e-5,
    )


def test_permuting_sources_permutes_error_bars_with_them(fitted, three_classes):
    X, _, X_err = three_classes
    order = np.random.default_rng(0).permutation(len(X))
    P = fitted.predict_proba(X, X_err)
    np.testing.assert_allclose(fitted.predict_proba(X[order], X_err[order]), P[order], atol=1e-12)
    assert np.abs(fitted.predict_proba(X, X_err[order]) - P).max() > 0.01


@pytest.mark.parametrize("input_noise", ["first_order", "integrated"])
def test_larger_error_bars_give_less_certain_probabilities(three_classes, input_noise):
    X, y, X_err = three_classes
    model = GPClassifier(n_inducing=30, input_noise=input_noise).fit(X, y, X_err)
    confidence = [
        model.predict_proba(X, scale * X_err).max(axis=1).mean() for scale in (0.0, 1.0, 3.0)
    ]
    assert confidence[0] > confidence[1] > confidence[2]


def test_zero_error_bars_are_no_error_bars(three_classes):
    X, y, _ = three_classes
    without = GPClassifier(n_inducing=30).fit(X, y).predict_proba(X)
    for input_noise in ("none", "first_order", "integrated"):
        zero = GPClassifier(n_inducing=30, input_noise=input_noise).fit(X, y, X_err=0.0)
        np.testing.assert_allclose(zero.predict_proba(X, X_err=0.0), without, atol=1e-10)


def test_a_value_not_measured_is_kept_and_ignored(fitted, three_classes):
    X, _, X_err = three_classes
    X, X_err = X[:5].copy(), X_err[:5].copy()
    X_err[:, 1] = np.inf
    X[:, 1] = np.nan
    nothing_there = fitted.predict_proba(X, X_err)
    X[:, 1] = 1e9
    np.testing.assert_array_equal(fitted.predict_proba(X, X_err), nothing_there)
    np.testing.assert_allclose(nothing_there.sum(axis=1), 1.0)


@pytest.mark.parametrize("input_noise", ["none", "first_order", "integrated"])
def test_two_sources_of_which_one_is_not_measured(input_noise):
    """One inducing point: there is a single distinct position."""
    X, X_err = [[0.0], [np.nan]], [[0.1], [np.inf]]
    model = GPClassifier(input_noise=input_noise, population="flat").fit(X, ["a", "b"], X_err)
    p = model.predict_proba(X, X_err)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert p[0, 0] >= p[1, 0] - 1e-6


def test_integrated_huge_error_equals_not_measured(three_classes):
    X, y, X_err = three_classes
    model = GPClassifier(n_inducing=30, input_noise="integrated").fit(X, y, X_err)
    huge, missing = X_err[:20].copy(), X_err[:20].copy()
    huge[:, 1], missing[:, 1] = 1e9, np.inf
    np.testing.assert_allclose(
        model.predict_proba(X[:20], huge), model.predict_proba(X[:20], missing), atol=1e-4
    )


def test_a_model_fitted_with_errors_refuses_to_predict_without(fitted, three_classes):
    X, _, _ = three_classes
    with pytest.raises(InputError, match="fitted with error bars: pass X_err, or X_err=0"):
        fitted.predict_proba(X)
    fitted.predict_proba(X, X_err=0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda X, e: (X, np.where(np.arange(450).reshape(150, 3) == 7, -1.0, e)),
            "row 2 has neg",
        ),
        (lambda X, e: (X, np.where(np.arange(450).reshape(150, 3) == 4, np.nan, e)), "error NaN"),
        (
            lambda X, e: (np.where(np.arange(450).reshape(150, 3) == 5, np.nan, X), e),
            "column '2', row 1",
        ),
        (lambda X, e: (X, e[:, :2]), "X_err has shape"),
    ],
)
def test_bad_errors_name_column_and_row(three_classes, change, message):
    X, y, X_err = three_classes
    X, X_err = change(X, X_err)
    with pytest.raises(InputError, match=message) as caught:
        GPClassifier().fit(X, y, X_err)
    assert "\n" not in str(caught.value)


def test_a_feature_nobody_measured_and_a_single_class_are_refused(three_classes):
    X, y, X_err = three_classes
    with pytest.raises(InputError, match="column '0' was not measured for any source"):
        GPClassifier().fit(X, y, np.where(np.arange(3) == 0, np.inf, X_err))
    with pytest.raises(InputError, match="one class only"):
        GPClassifier().fit(X, np.repeat("a", len(X)), X_err)


@pytest.mark.slow
def test_packed_goes_through_scikit_learns_own_tools(three_classes):
    X, y, X_err = three_classes
    packed = pack(X, X_err)
    model = GPClassifier(packed=True, n_inducing=15, max_rounds=0)
    assert cross_val_score(model, packed, y, cv=2).mean() > 0.5
    search = GridSearchCV(model, {"input_noise": ["none", "first_order"]}, cv=2).fit(packed, y)
    assert search.best_params_["input_noise"] in ("none", "first_order")
    calibrated = CalibratedClassifierCV(model, cv=2).fit(packed, y)
    np.testing.assert_allclose(calibrated.predict_proba(packed).sum(axis=1), 1.0)
    unpacked = GPClassifier(n_inducing=15, max_rounds=0).fit(X, y, X_err)
    np.testing.assert_allclose(
        model.fit(packed, y).predict_proba(packed), unpacked.predict_proba(X, X_err), atol=1e-10
    )


def test_prior_moves_probabilities_by_bayes_rule(fitted, three_classes):
    X, y, X_err = three_classes
    target = {"a": 0.2, "b": 0.2, "c": 0.6}
    P = fitted.predict_proba(X, X_err)
    shifted = GPClassifier(n_inducing=30, prior=target).fit(X, y, X_err).predict_proba(X, X_err)
    weighted = P * [target[c] / np.mean(y == c) for c in "abc"]
    np.testing.assert_allclose(shifted, weighted / weighted.sum(1, keepdims=True), atol=1e-8)
    with pytest.raises(InputError, match="prior must be 'train' or give a fraction"):
        GPClassifier(prior={"a": 1.0}).fit(X, y, X_err)


def test_deviation_of_probabilities_matches_sampling_f(fitted, three_classes):
    X, _, X_err = three_classes
    deviation = fitted.predict_proba_std(X[:10], X_err[:10])
    P, together = fitted.predict_proba_with_std(X[:10], X_err[:10])
    np.testing.assert_allclose(together, deviation, rtol=0, atol=1e-12)
    np.testing.assert_allclose(P, fitted.predict_proba(X[:10], X_err[:10]), rtol=0, atol=1e-12)
    sources, expected = fitted._scaled(as_measurements(X[:10], X_err[:10])), np.zeros((10, 3))
    rng = np.random.default_rng(0)
    for rows, block, nodes in fitted.model_.completed(sources):
        mean, variance = fitted.model_.marginals(block)
        f = mean.numpy() + np.sqrt(variance.numpy()) * rng.normal(size=(2000, *mean.shape))
        p = np.exp(f) / np.exp(f).sum(axis=-1, keepdims=True)
        # The nodes of a source are part of its spread.
        expected[rows] = p.reshape(2000, len(rows), nodes, 3).std(axis=(0, 2))
    np.testing.assert_allclose(deviation, expected, rtol=0.05, atol=8e-3)


@pytest.mark.parametrize(
    ("likelihood", "input_noise", "kernel"),
    [
        ("softmax", "first_order", "rbf"),
        ("step", "integrated", "matern52"),
        ("dirichlet", "none", "rbf+linear"),
        ("logistic_softmax", "none", "matern32"),
    ],
)
def test_saved_models_predict_the_same(three_classes, tmp_path, likelihood, input_noise, kernel):
    X, y, X_err = three_classes
    model = GPClassifier(
        likelihood, input_noise=input_noise, kernel=kernel, n_inducing=20, max_rounds=1
    ).fit(X, y, X_err)
    model.save(tmp_path / "model.npz")
    loaded = GPClassifier.load(tmp_path / "model.npz")
    np.testing.assert_allclose(
        loaded.predict_proba(X, X_err), model.predict_proba(X, X_err), atol=1e-8
    )
    assert loaded.classes_.tolist() == ["a", "b", "c"]
    assert loaded.settings_["seed"] == model.settings_["seed"]


def test_a_damaged_model_file_is_one_line(tmp_path, fitted):
    path = tmp_path / "model.npz"
    fitted.save(path)
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(InputError, match="not a gpal model file or is damaged"):
        GPClassifier.load(path)
    with pytest.raises(InputError, match="no model file"):
        GPClassifier.load(tmp_path / "absent.npz")


@pytest.mark.parametrize("name", [pytest.param("step", marks=pytest.mark.slow), "dirichlet"])
def test_a_likelihood_object_is_not_changed_by_a_fit(three_classes, name):
    """What one fit learns, δ or α_ε, does not reach the next."""
    X, y, X_err = three_classes
    classifier = GPClassifier(make_likelihood(name, 3), n_inducing=10, max_rounds=1)
    first = classifier.fit(X, y, X_err=X_err).predict_proba(X, X_err)
    again = classifier.fit(X, y, X_err=X_err).predict_proba(X, X_err)
    np.testing.assert_array_equal(first, again)


@pytest.mark.parametrize(
    ("huge", "population"),
    [
        (1e3, 1),
        (1e6, 2),
        pytest.param(1e3, 2, marks=pytest.mark.slow),
        pytest.param(1e6, 1, marks=pytest.mark.slow),
    ],
)
def test_a_huge_error_in_training_is_a_feature_not_measured(three_classes, huge, population):
    X, y, X_err = (part.copy() for part in three_classes)
    options = {"n_inducing": 15, "max_rounds": 1, "population": population}
    X_err[3, 0] = np.inf
    missing = GPClassifier(**options).fit(X, y, X_err=X_err)
    X[3, 0] = X_err[3, 0] = huge
    spoilt = GPClassifier(**options).fit(X, y, X_err=X_err)
    np.testing.assert_allclose(spoilt.width_, missing.width_)
    rows = np.arange(len(X)) != 3
    got, want = (c.predict_proba(X[rows], X_err[rows]) for c in (spoilt, missing))
    np.testing.assert_allclose(got, want, atol=0.02)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"population": 500}, "needs as many sources"),
        ({"error_scale": 0.0, "learn_errors": "scale"}, "give it more than 0"),
    ],
)
def test_impossible_error_models_are_refused(three_classes, options, message):
    X, y, X_err = three_classes
    with pytest.raises(InputError, match=message):
        GPClassifier(**options).fit(X, y, X_err=X_err)


@pytest.mark.parametrize("scale", [1e200, 1e-300, 3.7])
def test_the_units_of_a_feature_do_not_matter(scale):
    """However far from one: the squares of these are no numbers."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 30)
    X = rng.normal(size=(60, 2)) + np.array([2.0, 0.0]) * y[:, None]
    X_err = np.full(X.shape, 0.1)
    units = np.array([scale, 1.0])
    settings = {"n_inducing": 10, "max_rounds": 2}
    expected = GPClassifier(**settings).fit(X, y, X_err=X_err).predict_proba(X, X_err)
    other = GPClassifier(**settings).fit(X * units, y, X_err=X_err * units)
    got = other.predict_proba(X * units, X_err * units)
    np.testing.assert_allclose(got, expected, atol=1e-6)


def test_errors_of_a_data_frame_are_found_by_name(fitted, three_classes):
    X, y, X_err = three_classes
    names = ["u", "v", "w"]
    values, errors = (pd.DataFrame(a, columns=names) for a in (X, X_err))
    shuffled = errors[["w", "u", "v"]]
    expected = GPClassifier(n_inducing=5, max_rounds=0).fit(values, y, X_err=errors)
    found = GPClassifier(n_inducing=5, max_rounds=0).fit(values, y, X_err=shuffled)
    np.testing.assert_array_equal(
        expected.predict_proba(values, X_err=errors), found.predict_proba(values, X_err=shuffled)
    )
    with pytest.raises(InputError, match="give an error for each, under the same name"):
        found.predict_proba(values, X_err=errors.rename(columns={"w": "q"}))


def test_masked_values_and_units_do_not_get_lost(fitted, three_classes):
    X, y, X_err = three_classes
    mask = np.zeros(X.shape, dtype=bool)
    mask[0, 0] = True
    with pytest.raises(InputError, match="row 0 is nan"):
        fitted.predict_proba(np.ma.array(X, mask=mask), X_err)
    with pytest.raises(InputError, match="row 0 has error NaN"):
        fitted.predict_proba(X, np.ma.array(X_err, mask=mask))
    with pytest.raises(InputError, match="of y is masked"):
        GPClassifier().fit(X, np.ma.array(y, mask=mask[:, 0]), X_err)
    with pytest.raises(InputError, match="X_err has the unit 'mJy'"):
        fitted.predict_proba(X, X_err * u.mJy)
    with pytest.raises(InputError, match="X has the unit 'Jy'"):
        fitted.predict_proba(X * u.Jy, X_err)


def test_refits_of_labels_that_do_not_fit_are_refused(fitted, three_classes):
    X, y, X_err = three_classes
    for labels in (y[:5], y[:, None], "a"):
        with pytest.raises(InputError, match="one label for each of 150 sources"):
            fitted.refit(X, labels, X_err)
    labels = y.astype(object)
    labels[0] = None
    assert not fitted.can_refit(X, labels, X_err)
    with pytest.raises(InputError, match=r"y contains NaN: row 0 \(1 such"):
        fitted.refit(X, labels, X_err)
    labels[0] = "quasar"
    with pytest.raises(InputError, match="class 'quasar' is not one of"):
        fitted.refit(X, labels, X_err)


@pytest.mark.parametrize("kinds", [(7, 12, 3), (True, False, True)])
def test_whole_numbers_held_as_objects_are_classes(three_classes, kinds):
    """As a column of a data frame may hold them."""
    X, y, X_err = three_classes
    labels = np.array(kinds)[np.searchsorted(["a", "b", "c"], y)]
    options = {"n_inducing": 5, "max_rounds": 0}
    plain = GPClassifier(**options).fit(X, labels, X_err)
    for objects in (labels.astype(object), pd.Series(labels, dtype=object)):
        model = GPClassifier(**options).fit(X, objects, X_err)
        assert model.classes_.dtype == plain.classes_.dtype
        np.testing.assert_array_equal(model.classes_, plain.classes_)
        np.testing.assert_array_equal(model.predict_proba(X, X_err), plain.predict_proba(X, X_err))
        sources = as_measurements(X, X_err)
        assert model.score(sources, objects) == plain.score(sources, labels)


def test_a_class_without_sources_has_no_weight_in_a_prior(fitted, three_classes):
    X, y, X_err = three_classes
    known = y != "c"
    without = fitted.refit(X[known], y[known], X_err[known])
    with pytest.raises(InputError, match="no source of class 'c' was learned from"):
        without.predict_proba(X, X_err, prior={"a": 0.4, "b": 0.3, "c": 0.3})
    p = without.predict_proba(X, X_err, prior={"a": 0.4, "b": 0.6, "c": 0.0})
    assert (p[:, 2] == 0).all()
    np.testing.assert_allclose(p.sum(axis=1), 1.0)


@pytest.mark.parametrize("fraction", [None, "x", [1, 2], 1e308, np.nan])
def test_fractions_that_are_none(fitted, three_classes, fraction):
    X, _, X_err = three_classes
    with pytest.raises(InputError, match="prior fractions must be"):
        fitted.predict_proba(X, X_err, prior=dict.fromkeys("abc", fraction))


class OfItsOwn(GPClassifier):
    """Has an argument that it needs."""

    def __init__(self, likelihood="auto", *, need, max_rounds=1):
        super().__init__(likelihood, max_rounds=max_rounds)
        self.need = need


def test_a_subclass_may_need_an_argument(three_classes):
    X, y, X_err = three_classes
    assert np.isfinite(OfItsOwn(need=1, max_rounds=0).fit(X, y, X_err).bound_)


def test_an_outlier_that_no_class_left_is_likely_to_be_has_a_deviation():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = np.where(X[:, 0] > 0, "b", "a")
    model = GPClassifier(max_rounds=3).fit(X, y)
    far, none_left = np.array([[300.0, 0.0]]), {"a": 1.0, "b": 0.0}
    with np.errstate(invalid="raise"):
        P, deviation = model.set_params(prior=none_left).predict_proba_with_std(far)
        drawn = model.sample_proba(far, num_samples=4)
    np.testing.assert_allclose(P, [[1, 0]])
    assert np.isfinite(deviation).all() and np.isfinite(drawn).all()


def test_samples_of_what_no_class_left_is_likely_to_be_are_probabilities():
    P, ratio = np.array([[[0.0, 1.0]], [[1e-320, 1.0]]]), np.array([2.0, 0.0])
    np.testing.assert_array_equal(reweighted(P, ratio)[:, 0], [[1, 0], [1, 0]])


def test_masked_weights_are_refused(three_classes):
    X, y, X_err = three_classes
    weight = np.ma.array(np.ones(len(y)), mask=np.arange(len(y)) < 3)
    with pytest.raises(InputError, match="of sample_weight is masked"):
        GPClassifier(n_inducing=5, max_rounds=0).fit(X, y, X_err, sample_weight=weight)


def test_what_learns_in_steps_keeps_a_kernel_that_is_not_trainable(three_classes):
    X, y, X_err = three_classes
    options = {"n_inducing": 5, "inference": "svgp", "inference_options": {"steps": 20}}
    with pytest.raises(InputError, match="not in rounds, and max_rounds=0 would not keep it"):
        GPClassifier(max_rounds=0, **options).fit(X, y, X_err)
    kernel = gpflow.kernels.SquaredExponential(2.0, lengthscales=[1.0] * X.shape[1])
    gpflow.set_trainable(kernel, False)
    (found,) = GPClassifier("softmax", kernel=kernel, **options).fit(X, y, X_err).model_.gp.kernels
    assert found.variance.numpy() == 2.0 and (found.lengthscales.numpy() == 1).all()


def test_a_parameter_of_two_kernels_is_refused(three_classes):
    X, y, X_err = three_classes
    kernels = [gpflow.kernels.RBF() for _ in range(3)]
    kernels[2].lengthscales = kernels[0].lengthscales
    with pytest.raises(InputError, match="'lengthscales' of kernel 2 in the list is also kernel 0"):
        GPClassifier("softmax", kernel=kernels, n_inducing=5).fit(X, y, X_err)


def test_probabilities_too_small_for_a_number_have_a_prior_too():
    P = np.array([[1.0, 0.0, 0.0], [0.2, 0.3, 0.5]])
    found = reweighted(P, np.array([0.0, 2.0, 1.0]))
    np.testing.assert_allclose(found, [[0, 2 / 3, 1 / 3], [0, 0.6 / 1.1, 0.5 / 1.1]])


def test_class_fractions_that_do_not_sum_to_one_are_said():
    X = np.random.default_rng(0).normal(size=(40, 1))
    y = np.where(X[:, 0] > 0, "a", "b")
    model = GPClassifier(max_rounds=0, n_inducing=5).fit(X, y)
    with pytest.warns(UserWarning, match="sum to 0.7; they are divided by that"):
        model.predict_proba(X, prior={"a": 0.5, "b": 0.2})
    model.predict_proba(X, prior={"a": 300, "b": 200})  # counts, in silence


def test_learned_errors_leave_what_was_completed_alone():
    """Under a flat population a missing value has the population's spread, in training too: a refit
    to the same data has the same bound."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 2))
    y = (X @ [1.0, 1.5] > 0).astype(int)
    errors = np.full(X.shape, 0.3)
    X = X + errors * rng.normal(size=X.shape)
    missing = rng.random(150) < 0.4
    errors[missing, 1], X[missing, 1] = np.inf, np.nan
    settings = {"population": "flat", "learn_errors": "scale", "input_noise": "first_order"}
    model = GPClassifier("bernoulli_logit", n_inducing=15, max_rounds=6, **settings)
    model.fit(X, y, errors)
    again = model.refit(X, y, errors)
    assert again.bound_ == pytest.approx(model.bound_, abs=2e-3)
    P, Q = model.predict_proba(X, errors), again.predict_proba(X, errors)
    assert np.abs(P - Q).max() < 0.02


def test_a_floor_is_not_added_to_what_was_completed(tmp_path):
    """Given, learned or loaded: the same bound of a refit."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(120, 1))
    X = np.hstack([x, x + 0.1 * rng.normal(size=x.shape)])
    y = (x[:, 0] > 0).astype(int)
    errors = np.full(X.shape, 0.05)
    errors[::2, 1], X[::2, 1] = np.inf, np.nan
    settings = {"population": "flat", "input_noise": "first_order", "learn_errors": "floor"}
    model = GPClassifier(
        "bernoulli_logit", n_inducing=15, max_rounds=4, error_floor=[0.02, 0.9], **settings
    ).fit(X, y, errors)
    model.save(tmp_path / "model.npz")
    loaded = GPClassifier.load(tmp_path / "model.npz")
    bounds = [one.refit(X, y, errors).bound_ for one in (model, loaded)]
    assert bounds[0] == pytest.approx(bounds[1], abs=1e-6)
    assert bounds[0] == pytest.approx(model.bound_, abs=2e-3)


def test_an_error_scale_of_0_leaves_what_was_not_measured_open():
    """Under a flat population too: the model is that of errors of 0."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = (X @ [1.0, 1.0] > 0).astype(int)
    errors = np.full(X.shape, 0.3)
    errors[::3, 1], X[::3, 1] = np.inf, np.nan
    exact = np.where(np.isinf(errors), np.inf, 0.0)
    settings = {"population": "flat", "input_noise": "first_order", "n_inducing": 10}
    P, Q = (
        GPClassifier("bernoulli_logit", kernel="rbf", max_rounds=1, **options, **settings)
        .fit(X, y, given)
        .predict_proba(X, given)
        for options, given in (({"error_scale": 0.0}, errors), ({}, exact))
    )
    # The population is the same but for what the errors say of it.
    np.testing.assert_allclose(P, Q, atol=0.02)
    assert P[::3].min() > 0.01
