"""A saved model predicts the same, and can be cloned and fitted again, whatever its settings."""

from __future__ import annotations

import copy
import json
import os
import zipfile

import gpflow
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp
from gpflow.quadrature import NDiagGHQuadrature
from sklearn.base import clone

from gpal import GPClassifier, InputError, Measurements, NoisyInputGP
from gpal.input_noise.integrated import Integrated
from gpal.likelihoods import make_likelihood
from gpal.model.file import FORMAT


@pytest.fixture(scope="module")
def sources():
    """60 sources with units, a covariance, and two classes that are numbers."""
    rng = np.random.default_rng(0)
    y = np.repeat([3, 7], 30)
    X = rng.normal(size=(60, 2)) + 2.0 * (y == 7)[:, None] * [1.0, 0.3]
    factor = rng.normal(size=(60, 2, 2)) * 0.2
    covariance = factor @ factor.transpose(0, 2, 1)
    X_err = np.sqrt(np.einsum("ndd->nd", covariance))
    return Measurements(X, X_err, ("colour", "flux"), ("mag", ""), covariance=covariance), y


def kernel() -> gpflow.kernels.Kernel:
    part = gpflow.kernels.Matern32(variance=2.0, lengthscales=[0.8, 1.5])
    gpflow.set_trainable(part.variance, False)
    return part + gpflow.kernels.Constant(0.5)


class OwnKernel(gpflow.kernels.SquaredExponential):
    """Of which no file knows."""


SETTINGS = {
    "defaults": {},
    "a kernel per class": {
        "kernel": ["linear", gpflow.kernels.Periodic(gpflow.kernels.RBF()) + kernel()],
        "inducing_points": np.array([[0.0, 0.0], [1.0, 0.3], [2.0, 0.6]]),
        "n_inducing": None,
    },
    "per-feature errors": {
        "error_scale": np.array([1.0, 2.0]),
        "error_floor": np.array([0.0, 0.3]),
    },
    "numbers in arrays without an axis": {
        **{"error_floor": np.array(0.1), "error_scale": np.array(1.3), "max_rounds": 0},
        "prior": {3: np.array(0.4), 7: np.array(0.6)},
    },
    "a likelihood of GPflow's": {
        "likelihood": gpflow.likelihoods.Bernoulli(tf.sigmoid),
        "max_rounds": 0,
    },
    "learned errors": {"learn_errors": "both"},
    "a likelihood object": {"likelihood": make_likelihood("step", 2, delta=0.05)},
    "an open concentration": {"likelihood": make_likelihood("dirichlet", 2), "input_noise": "none"},
    "a kernel object": {"kernel": kernel(), "max_rounds": 2},
    "a treatment object": {"input_noise": Integrated(nodes=4, seed=3), "population": 2},
    "closed-form moments": {"input_noise": "analytic", "population": "flat"},
    "class fractions": {"prior": {3: 0.9, 7: 0.1}},
    "options": {"inference_options": {"final_sweeps": 3}, "random_state": np.int64(4)},
    "binary logit by cavi": {"likelihood": "bernoulli_logit", "inference": "jaakkola_jordan"},
    "single precision": {"dtype": "float32", "n_inducing": 10},
}


ALIKE = (
    "per-feature errors",
    "a treatment object",
    "closed-form moments",
    "class fractions",
    "options",
    "single precision",
)


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] * (n in ALIKE)) for n in SETTINGS]
)
def test_a_loaded_model_predicts_the_same_and_fits_the_same(sources, tmp_path, name):
    X, y = sources
    options = {"n_inducing": 12, "max_rounds": 1, **SETTINGS[name]}
    model = GPClassifier(**options).fit(X, y)
    model.save(tmp_path / "model.npz")
    loaded = GPClassifier.load(tmp_path / "model.npz")
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(loaded.predict_proba_std(X), model.predict_proba_std(X))
    assert loaded.settings_ == model.settings_
    assert loaded.bound_ == model.bound_ and loaded.classes_.tolist() == [3, 7]
    assert loaded.units_in_ == ("mag", "")
    again = clone(loaded).fit(X, y)
    np.testing.assert_allclose(again.predict_proba(X), model.predict_proba(X), atol=1e-8)


def test_a_loaded_model_refits_as_the_saved_one(sources, tmp_path):
    X, y = sources
    model = GPClassifier(max_rounds=1).fit(X[::2], y[::2])
    model.save(tmp_path / "model.npz")
    loaded = GPClassifier.load(tmp_path / "model.npz")
    assert loaded.can_refit(X, y)
    np.testing.assert_array_equal(
        loaded.refit(X, y).predict_proba(X), model.refit(X, y).predict_proba(X)
    )


@pytest.mark.parametrize(
    "likelihood",
    [
        "gaussian",
        gpflow.likelihoods.StudentT(scale=0.3, df=4.0),
        gpflow.likelihoods.Poisson(binsize=0.5),
        gpflow.likelihoods.Ordinal(np.array([0.5, 1.5, 3.5])),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_a_response_model_is_kept_too(sources, tmp_path, likelihood):
    X, _ = sources
    y = np.minimum(np.random.default_rng(1).poisson(1.5, size=60), 3).astype(float)
    model = NoisyInputGP(likelihood, max_rounds=1, n_inducing=10).fit(X, y)
    model.save(tmp_path / "model.npz")
    loaded = NoisyInputGP.load(tmp_path / "model.npz")
    for got, want in zip(loaded.predict_y(X), model.predict_y(X), strict=True):
        np.testing.assert_allclose(got, want, atol=1e-10)
    np.testing.assert_allclose(loaded.score(X, y), model.score(X, y), atol=1e-10)
    again = clone(loaded).fit(X, y)
    np.testing.assert_allclose(again.predict(X), model.predict(X), atol=1e-8)
    with pytest.raises(InputError, match="holds a NoisyInputGP"):
        GPClassifier.load(tmp_path / "model.npz")


def test_provenance_stands_in_the_file_and_nothing_is_pickled(sources, tmp_path):
    X, y = sources
    path = tmp_path / "model.npz"
    GPClassifier(max_rounds=0).fit(X, y).save(path, provenance={"catalog": "a", "seed": 0})
    with zipfile.ZipFile(path) as archive:
        assert json.loads(archive.read("provenance.json")) == {"catalog": "a", "seed": 0}
        for name in set(archive.namelist()) - {"provenance.json"}:
            header = archive.read(name)[:200]
            assert b"'descr': '|O'" not in header
    again = GPClassifier.load(path)
    again.predict_proba(X)
    again.save(tmp_path / "again.npz")
    kept = GPClassifier.load(tmp_path / "again.npz").provenance_
    assert (kept["catalog"], kept["seed"]) == ("a", 0)


def test_packed_columns_are_saved_and_summarised(sources, tmp_path):
    """d values and d errors in one array, as scikit-learn's tools want it."""
    X, y = sources
    packed = np.hstack([X.X, X.X_err])
    model = GPClassifier(max_rounds=0, packed=True).fit(packed, y)
    model.save(tmp_path / "model.npz")
    loaded = GPClassifier.load(tmp_path / "model.npz")
    assert loaded.n_features_in_ == model.n_features_in_ == 4
    np.testing.assert_array_equal(loaded.predict_proba(packed), model.predict_proba(packed))
    assert len(loaded.summary().rows) == 2
    with pytest.raises(ValueError, match="features"):
        loaded.predict_proba(X.X)
    with pytest.raises(InputError, match="fitted with packed=True, and has packed=False now"):
        loaded.set_params(packed=False).predict_proba(packed, X_err=0)
    kept = tmp_path / "checkpoint.npz"
    batches = [(packed[::2], y[::2]), (packed[1::2], y[1::2])]
    first = GPClassifier(max_rounds=0, packed=True).fit_batches(batches, checkpoint=kept)
    again = GPClassifier(max_rounds=0, packed=True).fit_batches(batches, checkpoint=kept)
    np.testing.assert_allclose(again.predict_proba(packed), first.predict_proba(packed), atol=1e-4)


def test_settings_are_those_of_the_fit_and_impossible_ones_are_not_saved(sources, tmp_path):
    X, y = sources
    model = GPClassifier(max_rounds=0).fit(X, y).set_params(kernel="linear", prior={3: 0.2, 7: 0.8})
    model.save(tmp_path / "model.npz")
    loaded = GPClassifier.load(tmp_path / "model.npz")
    assert loaded.settings_["kernel"] == model.settings_["kernel"] == "auto"
    assert loaded.get_params()["kernel"] == "linear"  # of the next fit
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    model.set_params(likelihood="softmax", inference="jaakkola_jordan")
    with pytest.raises(InputError, match="jaakkola_jordan"):
        model.save(tmp_path / "other.npz")
    assert not (tmp_path / "other.npz").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"inference_options": {"callback": print}}, "inference_options holds a builtin"),
        ({"kernel": OwnKernel()}, "kernel class 'OwnKernel' cannot be saved"),
    ],
)
def test_what_no_file_can_hold_is_refused_and_nothing_is_written(
    sources, tmp_path, options, message
):
    X, y = sources
    model = GPClassifier(max_rounds=0, input_noise="none", **options).fit(X, y)
    with pytest.raises(InputError, match=message):
        model.save(tmp_path / "model.npz")
    assert not list(tmp_path.iterdir())


@pytest.fixture(scope="module")
def kept(sources, tmp_path_factory):
    """(description, arrays) of a model's file."""
    path = tmp_path_factory.mktemp("kept") / "model.npz"
    GPClassifier("softmax", n_inducing=12, max_rounds=0).fit(*sources).save(path)
    with np.load(path) as archive:
        arrays = dict(archive)
    return json.loads(str(arrays.pop("description"))), arrays


def test_files_of_other_formats_are_named(sources, tmp_path):
    X, y = sources
    path = tmp_path / "model.npz"
    GPClassifier(max_rounds=0).fit(X, y).save(path)
    with np.load(path) as archive:
        arrays = dict(archive)
    description = json.loads(str(arrays.pop("description")))
    for change, message in (
        ({"format": FORMAT + 1}, "upgrade gpal"),
        ({"format": 1}, "fit the model again"),
        ({"format": FORMAT + 0.5}, "'format' is no whole number"),
        ({"format": str(FORMAT)}, "'format' is no whole number"),
        ({"model": {}}, "is damaged"),
    ):
        text = np.array(json.dumps({**description, **change}))
        np.savez(path, description=text, **arrays)
        with pytest.raises(InputError, match=message):
            GPClassifier.load(path)


def nested(data, path, change):
    """JSON with `change` made at the end of a path of keys."""
    data = copy.deepcopy(data)
    place = data
    for key in path[:-1]:
        place = place[key]
    change(place, path[-1])
    return data


def dropped(place, key):
    del place[key]


def put(value):
    return lambda place, key: place.__setitem__(key, value)


@pytest.mark.parametrize(
    ("path", "change", "message"),
    [
        (("units",), dropped, "the file lacks 'units'"),
        (("classes",), lambda place, key: place[key].reverse(), "not distinct .*, sorted"),
        (("more",), put(1), "the file has 'more', which is unknown"),
        (("X_err_given",), put("yes"), "'X_err_given' of the file is 'yes', not true or false"),
        (("parameters", "packed"), put(1), "packed must be True or False, got 1"),
        (("parameters", "prior"), put({"type": "mapping", "items": [[3, 1.0]]}), "prior must be"),
        (("parameters", "kernel"), dropped, "the list of parameters lacks 'kernel'"),
        (("classes",), put([3, 3]), "'classes' of the file are not distinct"),
        (("classes",), put([3, 4, 5]), "not one of 3 classes"),
        (("classes_dtype",), put("<U9999999"), "which classes are not"),
        (("model", "inference"), put("magic"), "no inference 'magic'; there are: "),
        (("model", "likelihood", "name"), put("magic"), "no likelihood 'magic'; there are: "),
        (("model", "likelihood", "num_classes"), put(10**9), "num_classes must be a whole number"),
        (("model", "likelihood", "num_points"), put(10**9), "num_points must be a whole number"),
        (("model", "likelihood", "seed"), dropped, "the likelihood lacks 'seed'"),
        (("model", "input_noise", "name"), put("magic"), "no input noise 'magic'; there are: "),
        (("model", "input_noise", "nodes"), put(10**9), "nodes must be a whole number"),
        (("model", "gp", "kind"), put("magic"), "is 'magic', not one of kernel, psi"),
        (("model", "gp", "dtype"), put("object"), "is 'object', not one of float32, float64"),
        (("model", "gp", "noisy"), put([7]), "'noisy' of the Gaussian process is"),
        (("model", "gp", "num_latent"), put(5), "the array|disagree"),
        (("model", "gp", "kernels", 0, "class"), put("Parameter"), "not one of"),
        (("model", "gp", "kernels", 0, "parts", 0, "class"), put("np"), "'class' of the kernel"),
        (
            ("model", "gp", "kernels", 0, "parts", 0, "parameters", "variance"),
            put(-1.0),
            "'variance' of the kernel is -1.0",
        ),
        (
            ("model", "gp", "kernels", 0, "parts", 0, "parameters", "lengthscales"),
            put([1.0, 1.0, 1.0]),
            "'lengthscales' of the kernel is",
        ),
    ],
)
def test_a_file_with_other_content_is_refused_when_opened(kept, tmp_path, path, change, message):
    description, arrays = kept
    text = np.array(json.dumps(nested(description, path, change)))
    np.savez(tmp_path / "model.npz", description=text, **arrays)
    with pytest.raises(InputError, match=message):
        GPClassifier.load(tmp_path / "model.npz")


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("alpha", None, "the file lacks 'alpha'"),
        ("more", lambda arrays: arrays["alpha"], "the file has 'more', which is unknown"),
        ("alpha", lambda arrays: arrays["alpha"].T, r"'alpha' is float64 of shape \(12, 2\)"),
        ("Z", lambda arrays: arrays["Z"][:, :1], r"'population_means' is .* with J = 1, d = 1|d"),
        ("M", lambda arrays: arrays["M"].astype("f4"), "'M' is float32 of shape"),
        ("alpha", lambda arrays: arrays["alpha"] * np.nan, "'alpha' holds a value that is not fin"),
        ("width", lambda arrays: 0 * arrays["width"], "'width' holds a value that is not above 0"),
        ("class_fractions", lambda _: np.ones(2), "'class_fractions' does not hold fractions"),
        ("population_weights", lambda _: np.full(1, 0.5), "'population_weights' does not hold fr"),
        ("population_covariances", lambda _: -np.eye(2)[None], "not finite"),
    ],
)
def test_a_file_with_other_arrays_is_refused_when_opened(kept, tmp_path, name, change, message):
    description, arrays = kept
    others = {key: array for key, array in arrays.items() if key != name}
    if change is not None:
        others[name] = change(arrays)
    np.savez(tmp_path / "model.npz", description=np.array(json.dumps(description)), **others)
    with pytest.raises(InputError, match=message):
        GPClassifier.load(tmp_path / "model.npz")


def test_a_class_that_is_not_registered_is_refused_at_saving(sources, tmp_path):
    from gpal.likelihoods.softmax import Softmax

    class Mine(Softmax):
        pass

    X, y = sources
    model = GPClassifier(Mine(2), max_rounds=0, input_noise="none").fit(X, y)
    with pytest.raises(InputError, match="is not registered as a likelihood"):
        model.save(tmp_path / "model.npz")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
def test_a_model_that_is_no_file_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "model.npz")
    with pytest.raises(InputError, match="it is no file"):
        GPClassifier.load(tmp_path / "model.npz")


def test_classes_that_a_file_cannot_hold_are_not_saved(tmp_path):
    y = np.array([np.datetime64("2020"), np.datetime64("2021")] * 5)
    classifier = GPClassifier(max_rounds=0).fit(np.arange(10.0)[:, None], y)
    with pytest.raises(InputError, match="classes that are text, numbers, or truth values"):
        classifier.save(tmp_path / "model.npz")
    assert not any(tmp_path.iterdir())


def test_what_a_file_does_not_keep_of_a_likelihood_is_said(tmp_path, recwarn):
    x = np.linspace(-2, 2, 25)[:, None]
    options = {"kernel": "rbf", "max_rounds": 0, "n_inducing": 5}
    y, counts = np.sin(x[:, 0]), np.arange(25) % 3
    NoisyInputGP("gaussian", **options).fit(x, y).save(tmp_path / "plain.npz")
    GPClassifier("step", **options).fit(x, counts).save(tmp_path / "step.npz")
    assert not recwarn.list
    bounded = gpflow.likelihoods.Gaussian(0.3, variance_lower_bound=0.2)
    bounded.variance.prior = tfp.distributions.LogNormal(np.float64(0.0), np.float64(1.0))
    model = NoisyInputGP(bounded, **options).fit(x, y)
    with pytest.warns(UserWarning, match=r"the prior on 'variance', the bounds of 'variance'"):
        model.save(tmp_path / "model.npz")
    with pytest.warns(UserWarning, match="quadrature points"):
        likelihood = gpflow.likelihoods.StudentT()
        likelihood.quadrature = NDiagGHQuadrature(1, 60)
        NoisyInputGP(likelihood, **options).fit(x, y).save(tmp_path / "model.npz")
