"""Powers of features with heavy tails: which they are, and when the labels ask for them."""

from __future__ import annotations

import numpy as np
import pytest
from gpflow.kernels import Linear
from scipy.stats import gmean, yeojohnson_llf, yeojohnson_normmax
from sklearn.cluster import KMeans

from gpal import GPClassifier
from gpal.inference.power_input import PowerInput
from gpal.model.heavy_tails import powers_of_heavy_tails

rng = np.random.default_rng(0)
LOG = rng.normal(size=(240, 2))
FLUX = np.exp(2.0 * LOG)  # heavy tails
TOLD_BY_LOG = (np.sin(3.0 * LOG[:, 0]) + LOG[:, 1] + 0.3 * rng.normal(size=240) > 0).astype(int)


def powers(X: np.ndarray, weight: np.ndarray | None = None) -> dict[str, np.ndarray]:
    """In standardised units, as a fit takes them."""
    mean, width = X.mean(axis=0), X.std(axis=0)
    width[width == 0] = 1.0
    return powers_of_heavy_tails((X - mean) / width, -mean / width, weight)


def kernel_class(model: GPClassifier) -> str:
    return model.settings_["kernels"][0]["class"]


def has_powers(model: GPClassifier) -> bool:
    parameters = model.settings_["kernels"][0]["parameters"]
    return kernel_class(model) == "PowerInput" and bool(np.any(np.array(parameters["power"]) != 1))


@pytest.fixture(scope="module")
def of_powers() -> GPClassifier:
    return GPClassifier(random_state=0).fit(FLUX, TOLD_BY_LOG)


def test_units_and_powers_are_the_most_nearly_normal_ones():
    """Of all units between a tenth of the geometric mean and the width."""
    found = powers(FLUX)
    for j in range(2):
        x = FLUX[:, j] / FLUX[:, j].std()

        def log_likelihood(unit: float, power: float, x: np.ndarray = x) -> float:
            return yeojohnson_llf(power, x / unit) / len(x) - np.log(unit)

        best = max(
            log_likelihood(unit, yeojohnson_normmax(x / unit))
            for unit in np.geomspace(0.1 * gmean(x), 1.0, 100)
        )
        assert log_likelihood(found["unit"][j], found["power"][j]) > best - 0.005


def test_powers_of_fluxes_are_nearly_their_logarithms():
    kernel = PowerInput(Linear(), **powers(FLUX))
    inner = kernel.inner((FLUX - FLUX.mean(axis=0)) / FLUX.std(axis=0)).numpy()
    for j in range(2):
        assert np.corrcoef(inner[:, j], LOG[:, j])[0, 1] > 0.98
    np.testing.assert_allclose(inner.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(inner.std(axis=0), 1.0, rtol=1e-12)


def test_features_without_tails_stay_as_they_are():
    X = np.column_stack([LOG, np.full(240, 3.0), FLUX[:, 0]])
    found = powers(X)
    assert np.flatnonzero(found["power"] != 1).tolist() == [3]
    for name, neutral in {"shift": 0.0, "unit": 1.0, "offset": 0.0, "width": 1.0}.items():
        assert (found[name][:3] == neutral).all() and found[name][3] != neutral


@pytest.mark.parametrize("far", [1e4, 1e6, 1e9, 1e12, -1e5])
def test_values_stay_apart_where_zero_is_far_from_them(far):
    """Days, frequencies, numbers of rows."""
    x = FLUX[:, :1] * np.sign(far) + far
    scaled = (x - x.mean()) / x.std()
    kernel = PowerInput(Linear(), **powers(x))
    inner = kernel.inner(scaled).numpy()
    assert len(np.unique(inner)) == len(np.unique(scaled))
    np.testing.assert_allclose(kernel.outer(inner), scaled, atol=1e-4)


@pytest.mark.parametrize(
    "x",
    [
        rng.random((300, 1)) < 0.02,
        np.arange(300)[:, None] == 7,
        np.where(rng.random((300, 1)) < 0.1, 5.0, 2.0),
    ],
    ids=["flags", "one of all", "two values"],
)
def test_two_values_have_no_tail(x):
    assert (powers(x.astype(float))["power"] == 1).all()


@pytest.mark.parametrize("spread", [6.0, 12.0, 30.0])
@pytest.mark.parametrize("zeros", [0.0, 0.9])
def test_tails_over_hundreds_of_decades_come_back(spread, zeros):
    own = np.random.default_rng(2)
    x = np.exp(spread * own.normal(size=(400, 1))) * (own.random((400, 1)) >= zeros)
    scaled = (x - x.mean()) / x.std()
    kernel = PowerInput(Linear(), **powers(x))
    np.testing.assert_allclose(kernel.outer(kernel.inner(scaled).numpy()), scaled, rtol=1e-5)


def test_a_feature_that_is_mostly_zero_is_fitted():
    own = np.random.default_rng(0)
    other = own.normal(size=300)
    x = np.where(own.random(300) < 0.9, 0.0, np.exp(6.0 * own.normal(size=300)))
    y = ((other > 0) ^ (x > 1)).astype(int)
    model = GPClassifier(n_inducing=30, max_rounds=1, random_state=0).fit(
        np.column_stack([x, other]), y
    )
    assert has_powers(model) and np.isfinite(model.model_.gp.Z.numpy()).all()


def test_a_trial_of_powers_that_fails_leaves_the_values(monkeypatch):
    from gpal.inference.sites import SiteEngine

    fit = SiteEngine.fit

    def failing(self, problem, *args, **kwargs):
        if (problem.gp.kernels[0].power.numpy() != 1).any():
            raise FloatingPointError("no factor")
        return fit(self, problem, *args, **kwargs)

    monkeypatch.setattr(SiteEngine, "fit", failing)
    assert not has_powers(GPClassifier(random_state=0).fit(FLUX, TOLD_BY_LOG))


def test_a_unit_changes_nothing_and_a_weight_counts_as_so_many_sources():
    for name, of_others in powers(FLUX * 1e-9).items():
        np.testing.assert_allclose(of_others, powers(FLUX)[name], rtol=1e-6, err_msg=name)
    weight = rng.integers(1, 4, size=240)
    mean, width = FLUX.mean(axis=0), FLUX.std(axis=0)
    X, zero = (FLUX - mean) / width, -mean / width
    repeated = powers_of_heavy_tails(np.repeat(X, weight, axis=0), zero)
    for name, of_weights in powers_of_heavy_tails(X, zero, weight).items():
        np.testing.assert_allclose(of_weights, repeated[name], rtol=1e-5, err_msg=name)


def test_labels_that_logarithms_tell_ask_for_powers(of_powers):
    assert has_powers(of_powers)
    new = np.random.default_rng(1).normal(size=(2000, 2))
    y = (np.sin(3.0 * new[:, 0]) + new[:, 1] > 0).astype(int)
    plain = GPClassifier(kernel="rbf+linear", random_state=0).fit(FLUX, TOLD_BY_LOG)
    p, p_plain = (model.predict_proba(np.exp(2.0 * new)) for model in (of_powers, plain))
    rows = np.arange(len(y))
    assert np.log(p[rows, y]).mean() > np.log(p_plain[rows, y]).mean() + 0.05


def test_labels_that_values_tell_do_not():
    """Boundaries that are fine in the tail alone."""
    tail = rng.standard_t(3, size=(240, 1)) * 3.0
    labels = (np.sin(1.5 * tail[:, 0]) > 0).astype(int)
    assert (powers(tail)["power"] != 1).all()
    model = GPClassifier(random_state=0).fit(tail, labels)
    assert kernel_class(model) == "PowerInput" and not has_powers(model)
    np.testing.assert_array_equal(
        model.model_.gp.kernels[0](tail), model.model_.gp.kernels[0].base_kernel(tail)
    )
    assert "power" not in repr(model.summary())


@pytest.mark.parametrize(
    "options", [{"kernel": "rbf+linear"}, {"likelihood": "bernoulli_logit"}, {"max_rounds": 0}]
)
def test_what_is_given_is_taken(options):
    assert kernel_class(GPClassifier(**options).fit(FLUX, TOLD_BY_LOG)) == "Sum"


def test_inputs_with_errors_stay_as_they_are():
    model = GPClassifier(input_noise="first_order", max_rounds=1)
    assert kernel_class(model.fit(FLUX, TOLD_BY_LOG, X_err=0.1 * FLUX)) == "Sum"


def test_many_sources_are_tried_by_some_of_them(monkeypatch):
    from gpal.model import fit

    monkeypatch.setattr(fit, "TRIAL_SOURCES", 200)
    model = GPClassifier(random_state=0).fit(FLUX, TOLD_BY_LOG)
    assert has_powers(model) and model.model_.gp.Z.shape[0] == 240


def test_inducing_points_are_chosen_among_the_powers():
    """K-means of values is led by the tail."""
    options = {"n_inducing": 12, "learn_inducing": False, "random_state": 0}
    model = GPClassifier(**options).fit(FLUX, TOLD_BY_LOG)
    assert has_powers(model)
    Z = model.model_.gp.Z.numpy() * model.width_ + model.offset_
    inside = (FLUX.min(axis=0) < Z) & (FLUX.max(axis=0) > Z)
    assert inside.all()
    of_values = KMeans(12, n_init=1, random_state=0).fit(FLUX).cluster_centers_
    assert (np.median(Z, axis=0) < 0.3 * np.median(of_values, axis=0)).all()


def test_probabilities_are_the_same_again_and_from_a_file_and_by_gpflow(of_powers, tmp_path):
    p = of_powers.predict_proba(FLUX)
    again = GPClassifier(random_state=0).fit(FLUX, TOLD_BY_LOG)
    np.testing.assert_array_equal(again.predict_proba(FLUX), p)
    of_powers.save(tmp_path / "model.npz")
    loaded = GPClassifier.load(tmp_path / "model.npz")
    np.testing.assert_array_equal(loaded.predict_proba(FLUX), p)
    np.testing.assert_array_equal(
        loaded.refit(FLUX, TOLD_BY_LOG).predict_proba(FLUX),
        of_powers.refit(FLUX, TOLD_BY_LOG).predict_proba(FLUX),
    )
    svgp = of_powers.posterior_.to_gpflow()
    for theirs, mine in zip(svgp.predict_f(FLUX), of_powers.posterior_.predict_f(FLUX)):
        np.testing.assert_allclose(theirs, mine, atol=1e-5)
    back = GPClassifier.from_gpflow(svgp, FLUX, TOLD_BY_LOG, temperature=of_powers.temperature_)
    np.testing.assert_allclose(back.predict_proba(FLUX), p, atol=1e-6)
    assert kernel_class(back) == "PowerInput"


def test_a_damaged_power_is_refused(of_powers):
    from gpal.errors import InputError

    data, arrays = of_powers.to_data()
    parameters = data["model"]["gp"]["kernels"][0]["parameters"]
    for name, value in {
        "width": [1.0, 0.0],
        "power": [1.0, float("nan")],
        "shift": [1.0] * 3,
    }.items():
        kept, parameters[name] = parameters[name], value
        with pytest.raises(InputError, match=name):
            GPClassifier.from_data(data, arrays)
        parameters[name] = kept


def test_gradients_are_those_of_finite_differences(of_powers):
    posterior, at = of_powers.posterior_, FLUX[:20]
    gradient = posterior.predict_f_gradient(at)[0]
    for j in range(2):
        step = 1e-5 * at * np.eye(2)[j]
        apart = posterior.predict_f(at + step)[0] - posterior.predict_f(at - step)[0]
        slope = apart / (2 * step[:, j : j + 1])
        np.testing.assert_allclose(gradient[:, :, j], slope, rtol=1e-3, atol=1e-6)


def test_the_summary_names_the_power(of_powers):
    text = repr(of_powers.summary())
    assert f"deviations of its power {of_powers.model_.gp.kernels[0].power.numpy()[0]:.2g}" in text
