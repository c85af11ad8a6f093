"""A fit that is refused leaves the estimator what it was, and a fit leaves nothing of another."""

from __future__ import annotations

import gpflow
import numpy as np
import pandas as pd
import pytest

from gpal import GPClassifier, InputError, NoisyInputGP
from gpal.inference.single_latent import make_single_latent
from gpal.likelihoods import make_likelihood

rng = np.random.default_rng(0)
FRAME = pd.DataFrame({"u": rng.normal(5.0, 1.0, 60), "v": rng.normal(-2.0, 3.0, 60)})
Y = np.array(["a", "b", "c"])[np.digitize(FRAME["u"] + 0.3 * rng.normal(size=60), [4.6, 5.4])]
ERRORS = np.full(FRAME.shape, 0.2)


def quick(**options):
    return GPClassifier("softmax", max_rounds=0, **options)


TURNED = FRAME[["v", "u"]], np.repeat("z", 60)
REFUSED = [
    ("one class", lambda model: model.fit(*TURNED)),
    ("one class", lambda model: model.fit_batches([TURNED, TURNED])),
    ("prior", lambda model: model.set_params(prior={"a": 1.0}).fit(FRAME, np.char.add(Y, "2"))),
    ("jaakkola", lambda model: model.set_params(inference="jaakkola_jordan").fit(10 * FRAME, Y)),
]


@pytest.mark.parametrize(("match", "fit"), REFUSED)
def test_a_refused_fit_changes_nothing(match, fit):
    model = quick().fit(FRAME, Y, X_err=ERRORS)
    parameters = model.get_params(deep=False)
    before, P = set(vars(model)), model.predict_proba(FRAME[:3], X_err=0.1)
    with pytest.raises(InputError, match=match):
        fit(model)
    model.set_params(**parameters)
    assert set(vars(model)) == before and model.classes_.tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(model.predict_proba(FRAME[:3], X_err=0.1), P)
    with pytest.raises(InputError, match="X_err"):  # fitted with errors, still
        model.predict_proba(FRAME[:3])


def test_a_refused_response_changes_nothing():
    process = NoisyInputGP("poisson", max_rounds=0).fit(FRAME, np.arange(60) % 3)
    mean = process.predict(FRAME[:3])
    with pytest.raises(InputError):
        process.fit(100.0 * FRAME, -np.ones(60))
    np.testing.assert_array_equal(process.predict(FRAME[:3]), mean)


def test_a_refused_first_batch_is_no_fit():
    model = quick()
    with pytest.raises(InputError, match="class 'd' must be"):
        model.partial_fit(FRAME, Y, classes=["a", "b", "c", "d"])
    assert not hasattr(model, "model_")


def test_batches_of_arrays_have_no_names_of_an_earlier_fit():
    model = quick(learn_from=100).fit(FRAME, Y)
    swapped = FRAME[["v", "u"]].to_numpy()
    model.fit_batches([(swapped[:30], Y[:30]), (swapped[30:], Y[30:])])
    assert not hasattr(model, "feature_names_in_")
    P = model.predict_proba(swapped[:3])
    with pytest.warns(UserWarning, match="feature names"):
        np.testing.assert_array_equal(model.predict_proba(FRAME[["v", "u"]][:3]), P)


def test_later_batches_have_the_same_classes_and_warn_of_other_rows():
    model = quick().fit(FRAME, Y)
    with pytest.raises(InputError, match="class 'd' must be"):
        model.partial_fit(FRAME[:20], Y[:20], classes=["a", "b", "c", "d"])
    weight = pd.Series(1.0, index=range(19, -1, -1))
    with pytest.warns(UserWarning, match="row 0 of X"):
        model.partial_fit(FRAME[:20], Y[:20], classes=["a", "b", "c"], sample_weight=weight)


@pytest.mark.parametrize("each", [1e308, 1e-320])
def test_weights_whose_sum_is_no_number_are_refused(each):
    with pytest.raises(InputError, match="divide it by its mean"):
        quick().fit(FRAME, Y, sample_weight=np.full(len(Y), each))


def test_a_first_batch_with_a_class_of_no_weight_is_one_without_it():
    counts = Y != "c"
    first = quick().partial_fit(FRAME, Y, sample_weight=counts.astype(float))
    without = quick().partial_fit(FRAME[counts], Y[counts])
    assert first.classes_.tolist() == ["a", "b"]
    np.testing.assert_allclose(
        first.predict_proba(FRAME), without.predict_proba(FRAME), rtol=0, atol=1e-9
    )


@pytest.mark.parametrize("name", ["error_floor", "error_scale"])
def test_errors_of_named_features_are_in_their_order(name):
    said = pd.Series({"v": 2.0, "u": 0.5})
    with pytest.raises(InputError, match=f"{name} has the columns v, u"):
        quick(**{name: said}).fit(FRAME, Y, X_err=0.1)
    model = quick(**{name: said[["u", "v"]]}).fit(FRAME, Y, X_err=0.1)
    plain = quick(**{name: [0.5, 2.0]}).fit(FRAME, Y, X_err=0.1)
    np.testing.assert_array_equal(
        model.predict_proba(FRAME, X_err=0.1), plain.predict_proba(FRAME, X_err=0.1)
    )
    masked = np.ma.array([1.0, 2.0], mask=[False, True])
    with pytest.raises(InputError, match=name):
        quick(**{name: masked}).fit(FRAME, Y, X_err=0.1)


def test_inducing_points_of_named_features_are_in_their_order():
    with pytest.raises(InputError, match="inducing_points has the columns v, u"):
        quick(inducing_points=FRAME[["v", "u"]][:20]).fit(FRAME, Y, X_err=0.1)
    quick(inducing_points=FRAME[:20]).fit(FRAME, Y, X_err=0.1)


@pytest.mark.parametrize(
    ("inference", "options", "match"),
    [
        ("svgp", {"optimizer": "natgrad"}, "by adam: choose another inference"),
        ("svgp_natgrad", {"optimizer": "adam"}, "by natgrad: choose another inference"),
        ("svgp", {"learning_rate": -0.1}, "'learning_rate' is from 0, got -0.1"),
        ("svgp", {"learning_rate": np.inf}, "'learning_rate' is from 0, got inf"),
        ("svgp_natgrad", {"natural_step": 5.0}, "'natural_step' is above 0 to 1, got 5"),
        ("stochastic_sites", {"forgetting": 0.5}, "'forgetting' is above 0.5 to 1, got 0.5"),
        ("stochastic_sites", {"delay": -2.0}, "'delay' is from 1, got -2"),
        ("stochastic_sites", {"learning_rate": -1.0}, "'learning_rate' is from 0"),
        ("sites", {"mixed_precision": "no"}, "'mixed_precision' is True or False, got 'no'"),
        ("svgp", {"callback": 3}, "'callback' is a function, got 3"),
    ],
)
def test_options_that_no_schedule_can_have(inference, options, match):
    model = GPClassifier(
        "softmax", inference=inference, inference_options=options, n_inducing=5, max_rounds=1
    )
    with pytest.raises(InputError, match=match):
        model.fit(FRAME, Y)


@pytest.mark.parametrize(
    "options",
    [
        {"inference": "svgp", "inference_options": {"steps": 20}, "n_inducing": 10},
        {"kernel": gpflow.kernels.SquaredExponential() + gpflow.kernels.White(0.5)},
    ],
)
def test_the_first_call_of_partial_fit_is_fit(options):
    """Of what no later call can go on from, it became another model."""
    one, two = (GPClassifier("softmax", max_rounds=1, **options) for _ in range(2))
    one.fit(FRAME, Y), two.partial_fit(FRAME, Y, classes=list("abc"))
    np.testing.assert_array_equal(one.predict_proba(FRAME), two.predict_proba(FRAME))
    with pytest.raises(InputError, match="refit"):
        two.partial_fit(FRAME, Y)


def test_what_a_kernel_or_likelihood_cannot_have():
    part = gpflow.kernels.SquaredExponential(active_dims=[0])
    points = gpflow.kernels.ChangePoints([part, part], [0.1])
    with pytest.raises(InputError, match="ChangePoints is of one feature, and X has 2"):
        quick(kernel=points).fit(FRAME, Y)
    for name, options in (("dirichlet", {"alpha_eps": "x"}), ("step", {"delta": "a"})):
        with pytest.raises(InputError, match=f"{next(iter(options))} must be"):
            make_likelihood(name, 3, **options)
    with pytest.raises(InputError, match="has no option 'points'; it has: num_points, seed"):
        make_likelihood("softmax", 3, points=3)


def test_an_ordinal_likelihood_keeps_its_quadrature():
    given = gpflow.likelihoods.Ordinal(
        np.array([0.0, 1.0]), quadrature=gpflow.quadrature.NDiagGHQuadrature(1, 77)
    )
    assert make_single_latent(given).quadrature.n_gh == 77
