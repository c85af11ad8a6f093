"""Limits become measurements with the same effect."""

from dataclasses import replace

import numpy as np
import pytest
from astropy.table import Table
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.stats import norm, qmc

from gpal import GPClassifier, InputError, load_catalog
from gpal.input_noise import INPUT_NOISES
from gpal.input_noise.censored import (
    as_measured,
    drawn_below,
    fit_population,
    met,
    moments_below,
    with_limits_drawn,
)
from gpal.input_noise.integrated import Integrated
from gpal.input_noise.population import Population
from gpal.limits import Limits
from gpal.measurements import Measurements

NAN, INF = np.nan, np.inf


@pytest.mark.parametrize("confidence", [1.0, 0.95, 0.7])
@pytest.mark.parametrize("L", [-6.0, -1.0, 0.3, 2.0, 9.0])
def test_moments_are_those_of_quadrature(L, confidence):
    m, v = 0.4, 1.7

    def moment(power):
        def f(x):
            side = confidence if x < L else 1 - confidence
            return side * x**power * norm.pdf(x, m, np.sqrt(v))

        parts = [(-25.0, L), (L, 25.0)]
        return sum(quad(f, *part, epsabs=0, epsrel=1e-12, limit=400)[0] for part in parts)

    mean = moment(1) / moment(0)
    variance = moment(2) / moment(0) - mean**2
    got = moments_below(np.array([L]), np.array([confidence]), np.array([m]), np.array([v]))
    np.testing.assert_allclose(np.ravel(got), [mean, variance], rtol=2e-6)


@pytest.mark.parametrize("confidence", [1.0, 0.8])
@pytest.mark.parametrize("error", [0.1, 0.9, 3.0])
def test_moments_below_an_uncertain_limit(confidence, error):
    """p(limit | x) = (1 − c) + (2c − 1) Φ((L − x)/s): the limit with an error is averaged over."""
    L, m, v = -0.7, 0.4, 1.7

    def moment(power):
        def f(x):
            side = 1 - confidence + (2 * confidence - 1) * norm.cdf((L - x) / error)
            return side * x**power * norm.pdf(x, m, np.sqrt(v))

        return quad(f, -25.0, 25.0, epsabs=0, epsrel=1e-12, limit=400)[0]

    mean = moment(1) / moment(0)
    variance = moment(2) / moment(0) - mean**2
    args = (np.array([part]) for part in (L, confidence, m, v, error))
    np.testing.assert_allclose(np.ravel(moments_below(*args)), [mean, variance], rtol=1e-6)


def test_moments_far_below():
    """Of x below −z deviations the variance tends to 1/z²."""
    L = np.array([-20.0, -900.0, -2000.0, -1e6])
    mean, variance = moments_below(L, np.ones(4), np.zeros(4), np.ones(4))
    np.testing.assert_allclose(mean, L + 1 / L, rtol=1e-4)
    np.testing.assert_allclose(variance, np.maximum(1 / L**2 - 6 / L**4, 1e-8), rtol=1e-3)


POPULATION = Population(
    np.ones(1),
    np.array([[0.5, -1.0, 2.0]]),
    np.array([[[1.0, 0.6, 0.2], [0.6, 2.0, -0.5], [0.2, -0.5, 1.5]]]),
)


def truth(X, X_err, limits, number=4_000_000):
    """Mean and deviation of x by importance sampling from the population."""
    rng = np.random.default_rng(0)
    x = rng.multivariate_normal(POPULATION.means[0], POPULATION.covariances[0], number)
    measured = np.isfinite(X_err)
    log_weight = -0.5 * (((x - X) / X_err)[:, measured] ** 2).sum(axis=1)
    for j in np.flatnonzero(limits.given[0]):
        c, L = limits.confidence[0, j], limits.value[0, j]
        inside = x[:, j] < L if c < 0 else x[:, j] > L
        with np.errstate(divide="ignore"):
            log_weight += np.log(np.where(inside, abs(c), 1 - abs(c)))
    weight = np.exp(log_weight - log_weight.max())
    mean = weight @ x / weight.sum()
    return mean, np.sqrt(weight @ (x - mean) ** 2 / weight.sum())


@pytest.mark.parametrize("confidence", [-1.0, 1.0, -0.9])
def test_a_limit_beside_measurements_has_its_exact_effect(confidence):
    """On every feature, by the correlations: with one Gaussian and one limit to two moments."""
    X, X_err = np.array([[0.9, NAN, 1.1]]), np.array([[0.3, INF, 0.5]])
    limits = Limits(np.array([[NAN, -1.4, NAN]]), np.array([[0, confidence, 0]]))
    mean, deviation = truth(X[0], X_err[0], limits)
    x, error = met(X, X_err, None, limits, POPULATION)
    got, root = (part.numpy() for part in POPULATION.condition(x, error).moments())
    np.testing.assert_allclose(got[0], mean, atol=0.005)
    np.testing.assert_allclose(np.sqrt((root[0] ** 2).sum(axis=1)), deviation, atol=0.005)
    x, error = met(X, X_err, None, limits, POPULATION, marginal=True)
    np.testing.assert_allclose([x[0, 1], error[0, 1]], [mean[1], deviation[1]], atol=0.005)
    np.testing.assert_array_equal(x[0, [0, 2]], X[0, [0, 2]])


@pytest.mark.parametrize("lower", [["depth", ""], ["", "depth"]])
def test_a_colour_with_the_error_of_its_measured_band_against_monte_carlo(tmp_path, lower):
    """Colours of a population, one band measured with an error, the other fainter than a depth."""
    blue, red = (NAN, 21.0) if lower[0] else (21.0, NAN)
    depth = 23.0
    columns = {"u": [blue], "g": [red], "u_err": [0.8], "g_err": [0.8], "depth": [depth]}
    Table(columns).write(tmp_path / "own.fits")
    feature = {"difference": ["u", "g"], "lower_limit": lower, "limit_confidence": 0.9}
    catalog = load_catalog(str(tmp_path / "own.fits"), mapping={"features": {"u-g": feature}})
    limits = catalog.measurements.limits
    assert limits.error.tolist() == [[0.8]]

    rng = np.random.default_rng(0)
    colour, band = rng.normal(0.7, 1.1, 2_000_000), rng.normal(21.0, 0.8, 2_000_000)
    fainter = colour + band > depth if lower[0] else band - colour > depth
    weight = np.where(fainter, 0.9, 0.1)
    mean = weight @ colour / weight.sum()
    deviation = np.sqrt(weight @ (colour - mean) ** 2 / weight.sum())
    population = Population(np.ones(1), np.array([[0.7]]), np.array([[[1.1**2]]]))
    X, X_err = np.array([[[NAN]], [[INF]]])
    x, error = met(X, X_err, None, limits, population, marginal=True)
    np.testing.assert_allclose([x[0, 0], error[0, 0]], [mean, deviation], atol=0.004)
    exact, _ = met(X, X_err, None, replace(limits, error=None), population, marginal=True)
    assert abs(exact[0, 0] - mean) > 0.1  # what leaving the error out amounts to


DRAWS = norm.ppf(qmc.Sobol(9, seed=1).random(4096))


@pytest.mark.parametrize("given", [[-1.0, 0.0], [1.0, 0.0], [-0.9, 0.0], [-1.0, 1.0], [-0.8, 0.9]])
def test_draws_below_limits_have_the_exact_moments(given):
    """One limit or two, certain or doubtful, beside what was measured."""
    second = NAN if given[1] else 1.1
    X, X_err = np.array([[0.9, NAN, second]]), np.array([[0.3, INF, INF if given[1] else 0.5]])
    limits = Limits(
        np.array([[NAN, -1.4, 2.5 if given[1] else NAN]]), np.array([[0, *given]], dtype=float)
    )
    sources = Measurements(X, X_err, ("a", "b", "c"), limits=limits)
    copies = with_limits_drawn(sources, POPULATION, DRAWS, scale=np.ones(3), floor=np.zeros(3))
    assert copies.limits is None and len(copies) == 4096
    mean, deviation = truth(X[0], X_err[0], limits)
    drawn = copies.X[:, limits.given[0]]
    np.testing.assert_allclose(drawn.mean(axis=0), mean[limits.given[0]], atol=0.02)
    np.testing.assert_allclose(drawn.std(axis=0), deviation[limits.given[0]], atol=0.02)
    if given[0] == -1.0:
        assert (copies.X[:, 1] <= -1.4).all()
    np.testing.assert_array_equal(copies.X_err[:, 0], 0.3)


def test_few_draws_below_an_uncertain_limit():
    """64, as a prediction takes them: deviations to a few per cent."""
    population = Population(np.ones(1), np.zeros((1, 1)), np.ones((1, 1, 1)))
    normal = Integrated(64).points(4)[1][:, 1:]
    for L, c, s in ((-1.0, 0.9, 0.3), (0.0, 1.0, 0.5), (-0.5, 1.0, 1.0)):
        limits = Limits([[L]], [[-c]], [[s]])
        sources = Measurements([[NAN]], [[INF]], ("a",), limits=limits)
        one = np.ones(1)
        x = with_limits_drawn(sources, population, normal, scale=one, floor=0 * one).X
        mean, variance = moments_below(*np.array([[L], [c], [0.0], [1.0], [s]]))
        assert x.mean() == pytest.approx(mean[0], abs=0.07)
        assert x.std() == pytest.approx(np.sqrt(variance[0]), rel=0.02)


@pytest.mark.parametrize("L, right", [(4.0, 0.5), (0.0, 0.0), (3.0, 1 / 3)])
def test_draws_below_a_limit_are_of_the_components_of_a_population(L, right):
    """Two of them, and nothing in between; of the right one the share below the limit."""
    centres, narrow = np.array([[-3.0, 0.0], [3.0, 0.0]]), np.array([0.1 * np.eye(2)] * 2)
    population = Population(np.array([0.5, 0.5]), centres, narrow)
    limits = Limits(np.array([[L, NAN]]), np.array([[-1.0, 0]]))
    sources = Measurements([[NAN, 0.0]], [[INF, 0.5]], ("a", "b"), limits=limits)
    normal = norm.ppf(qmc.Sobol(6, seed=2).random(1024))
    x = with_limits_drawn(sources, population, normal, scale=np.ones(2), floor=np.zeros(2)).X[:, 0]
    assert (x <= L).all() and (np.abs(x) > 1.5).all()
    assert (x > 0).mean() == pytest.approx(right, abs=0.01)
    assert x[x < 0].std() == pytest.approx(np.sqrt(0.1), rel=0.05)


def test_draws_below_an_uncertain_or_a_far_limit():
    """Against Monte Carlo, and fifty deviations below the mean against the exponential tail."""
    rng = np.random.default_rng(0)
    L, m, v, s, c = 0.4, 0.7, 1.1**2, 0.8, 0.9
    x = rng.normal(m, np.sqrt(v), 1_000_000)
    weight = np.where(x + s * rng.normal(size=len(x)) < L, c, 1 - c)
    mean = weight @ x / weight.sum()
    u, normal = rng.random(200_000), rng.normal(size=200_000)
    drawn = drawn_below(*(np.full(200_000, part) for part in (L, c, m, v, s)), u, normal)
    assert drawn.mean() == pytest.approx(mean, abs=0.01)
    assert drawn.std() == pytest.approx(np.sqrt(weight @ (x - mean) ** 2 / weight.sum()), abs=0.01)
    one = np.ones(200_000)
    far = drawn_below(-50.0 * one, one, 0 * one, one, 0.0, u, normal)
    assert (far <= -50).all() and (-50 - far).mean() == pytest.approx(1 / 50, rel=0.02)


def test_a_limit_beside_what_is_known_exactly():
    limits = Limits(np.array([[NAN, -1.4, NAN]]), np.array([[0, -1.0, 0]]))
    found = [
        met(np.array([[0.9, NAN, 1.1]]), np.array([[known, INF, 0.5]]), None, limits, POPULATION)
        for known in (0.0, 1e-6)
    ]
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-4)
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-4, atol=1e-5)


def test_several_limits_of_a_source():
    """Expectation propagation is near the truth there."""
    X, X_err = np.array([[0.9, NAN, NAN]]), np.array([[0.3, INF, INF]])
    limits = Limits(np.array([[NAN, -1.0, 2.5]]), np.array([[0, -1.0, 1.0]]))
    mean, deviation = truth(X[0], X_err[0], limits)
    x, error = met(X, X_err, None, limits, POPULATION)
    got, root = (part.numpy() for part in POPULATION.condition(x, error).moments())
    np.testing.assert_allclose(got[0], mean, atol=0.02)
    np.testing.assert_allclose(np.sqrt((root[0] ** 2).sum(axis=1)), deviation, atol=0.02)


def test_a_limit_that_says_nothing_is_none():
    limits = Limits(np.array([[NAN, 60.0, NAN]]), np.array([[0, -1.0, 0]]))
    x, error = met(*np.array([[[0.9, NAN, 1.1]], [[0.3, INF, 0.5]]]), None, limits, POPULATION)
    assert np.isnan(x[0, 1]) and np.isinf(error[0, 1])


def test_scale_and_floor_of_the_errors_give_the_new_measurement_back():
    X, X_err = np.array([[0.9, NAN, 1.1]]), np.array([[0.3, INF, 0.5]])
    limits = Limits(np.array([[NAN, -1.4, NAN]]), np.array([[0, -1.0, 0]]))
    scale, floor = np.array([1.2, 2.0, 1.0]), np.array([0.0, 0.1, 0.2])
    sources = Measurements(X, X_err, ("a", "b", "c"), limits=limits)
    got = as_measured(sources, POPULATION, marginal=False, scale=scale, floor=floor)
    want = met(X, np.hypot(scale * X_err, floor), None, limits, POPULATION)
    assert got.limits is None
    np.testing.assert_allclose(got.X, want[0])
    np.testing.assert_allclose(np.hypot(scale * got.X_err, floor)[0, 1], want[1][0, 1])
    np.testing.assert_array_equal(got.X_err[0, [0, 2]], X_err[0, [0, 2]])


def test_a_limit_beside_correlated_measurements():
    X, X_err = np.array([[0.9, NAN, 1.1]]), np.array([[0.3, INF, 0.5]])
    cov = np.array([[[0.09, 0, 0.1], [0, INF, 0], [0.1, 0, 0.25]]])
    limits = Limits(np.array([[NAN, -1.4, NAN]]), np.array([[0, -1.0, 0]]))
    sources = Measurements(X, X_err, ("a", "b", "c"), covariance=cov, limits=limits)
    one = np.ones(3)
    got = as_measured(sources, POPULATION, marginal=False, scale=one, floor=0 * one)
    x, error = met(X, X_err, cov, limits, POPULATION)
    np.testing.assert_allclose([got.X[0], got.X_err[0]], [x[0], error[0]])
    np.testing.assert_allclose(got.covariance[0, 1], [0, error[0, 1] ** 2, 0])
    alone = met(X, X_err, None, limits, POPULATION)[0]
    assert abs(x[0, 1] - alone[0, 1]) > 0.001


def censored(n, seed):
    """(labels, sources): a third of one band lies below what was detected, and says of which class
    a source is."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    root = np.array([[0.8, 0, 0], [0.4, 0.7, 0], [0.2, 0.2, 0.6]])
    x = np.array([[0, 0, 0], [0.7, 1.1, -0.3]])[y] + rng.normal(size=(n, 3)) @ root.T
    X_err = np.exp(rng.uniform(np.log(0.05), np.log(0.4), (n, 3)))
    X = x + X_err * rng.normal(size=(n, 3))
    depth = np.quantile(X[:, 1], 1 / 3) + 0.2 * rng.normal(size=n)
    faint = X[:, 1] < depth
    value, confidence = np.full(X.shape, NAN), np.zeros(X.shape)
    value[faint, 1], confidence[faint, 1] = depth[faint], -1.0
    X[faint, 1], X_err[faint, 1] = NAN, INF
    return y, Measurements(X, X_err, ("i", "g", "z"), limits=Limits(value, confidence))


def test_the_population_knows_what_lies_below():
    sources = censored(4000, 0)[1]
    args = sources.X, sources.X_err, None
    with_limits = fit_population(*args, sources.limits)
    without = fit_population(*args, None)
    # Of the mixture of both classes.
    half = np.array([0.7, 1.1, -0.3]) / 2
    root = np.array([[0.8, 0, 0], [0.4, 0.7, 0], [0.2, 0.2, 0.6]])
    np.testing.assert_allclose(with_limits.means[0], half, atol=0.06)
    np.testing.assert_allclose(
        with_limits.covariances[0], root @ root.T + np.outer(half, half), atol=0.1
    )
    assert without.means[0, 1] > half[1] + 0.15


@pytest.mark.parametrize("depth", [0.5, -0.5, -1.3])
@pytest.mark.parametrize("confidence", [0.84, 0.95, 1.0])
def test_a_population_with_limits_is_the_likeliest(depth, confidence):
    """None is dropped, also where it lies far from what the others say."""
    x, error = np.random.default_rng(0).normal(size=(2000, 1)), 0.05
    below = x < depth
    X, X_err = np.where(below, NAN, x), np.where(below, INF, error)
    limits = Limits(np.where(below, depth, NAN), np.where(below, -confidence, 0.0))
    found = fit_population(X, X_err, None, limits)

    def minus_log_likelihood(q):
        mean, width = q[0], np.exp(q[1])
        Z = 1 - confidence + (2 * confidence - 1) * norm.cdf((depth - mean) / width)
        measured = norm.logpdf(x[~below], mean, np.hypot(width, error))
        return -measured.sum() - below.sum() * np.log(Z)

    best = minimize(minus_log_likelihood, [0.0, 0.0], method="Nelder-Mead").x
    assert found.means.item() == pytest.approx(best[0], abs=0.03)
    assert np.sqrt(found.covariances.item()) == pytest.approx(np.exp(best[1]), abs=0.07)


@pytest.mark.parametrize("L", [-3.0, -1.5, -0.5])
@pytest.mark.parametrize("confidence", [0.6, 0.95, 0.999])
def test_a_limit_that_may_be_wrong_still_has_its_mean(L, confidence):
    """Its variance may be larger than without it, which no measurement gives."""
    population = Population(np.ones(1), np.array([[0.4]]), np.array([[[1.7]]]))
    limits = Limits(np.array([[L]]), np.array([[-confidence]]))
    x, error = met(np.array([[NAN]]), np.array([[INF]]), None, limits, population)
    mean, root = (part.numpy() for part in population.condition(x, error).moments())
    wanted, variance = moments_below(*(np.array([part]) for part in (L, confidence, 0.4, 1.7)))
    assert mean.item() == pytest.approx(wanted.item(), rel=1e-6)
    if variance < 0.98 * 1.7:
        assert root.item() ** 2 == pytest.approx(variance.item(), rel=1e-6)
    else:
        assert 0.97 * 1.7 < root.item() ** 2 < 1.7


def test_limits_of_the_usual_confidence_help_the_sources_that_have_them():
    """They were taken for nothing, as they lie far from what the sources without one say."""
    (y, sources), (new_y, new) = censored(300, 1), censored(800, 2)
    both = [
        replace(part, limits=Limits(part.limits.value, 0.95 * part.limits.confidence))
        for part in (sources, new)
    ]
    limited = new.limits.given.any(axis=1)
    with_limits = nll(fitted("integrated", both[0], y), both[1], new_y)[limited]
    sources, new = (replace(part, limits=None) for part in (sources, new))
    without = nll(fitted("integrated", sources, y), new, new_y)[limited]
    difference = with_limits - without
    assert difference.mean() < -4 * difference.std() / np.sqrt(len(difference))


def fitted(name, sources, y, **options):
    svgp = {"inference": "svgp", "inference_options": {"steps": 100, "learning_rate": 0.05}}
    options = {**(svgp if INPUT_NOISES[name].gradient_only else {}), **options}
    model = GPClassifier(
        "bernoulli_logit", input_noise=name, kernel="rbf", n_inducing=12, max_rounds=1, **options
    )
    return model.fit(sources, y)


def nll(model, sources, y):
    return -np.log(model.predict_proba(sources)[np.arange(len(y)), y])


@pytest.mark.parametrize(
    "name, population", [*((name, 1) for name in sorted(INPUT_NOISES)), ("first_order", "flat")]
)
def test_limits_help_under_every_treatment(name, population):
    (y, sources), (new_y, new) = censored(150, 1), censored(400, 2)
    options = {"population": population}
    with_limits = nll(fitted(name, sources, y, **options), new, new_y)
    sources, new = (replace(part, limits=None) for part in (sources, new))
    difference = with_limits - nll(fitted(name, sources, y, **options), new, new_y)
    assert difference.mean() < -2 * difference.std() / np.sqrt(len(new_y))


def test_a_saved_model_makes_the_same_of_limits(tmp_path):
    y, sources = censored(100, 1)
    model = fitted("first_order", sources, y)
    model.save(tmp_path / "model.npz")
    loaded = GPClassifier.load(tmp_path / "model.npz")
    P = model.predict_proba(sources)
    np.testing.assert_array_equal(loaded.predict_proba(sources), P)
    with_deviation = loaded.predict_proba_std(sources)
    assert np.isfinite(with_deviation).all()
    # One source at a time: what is made of a limit depends on nothing else.
    np.testing.assert_allclose(model.predict_proba(sources[3:4])[0], P[3], rtol=1e-6)


def test_learned_errors_are_refused_with_limits():
    y, sources = censored(60, 1)
    with pytest.raises(InputError, match="learn_errors together with limits"):
        fitted("first_order", sources, y, learn_errors="scale")


@pytest.mark.parametrize(
    ("limit", "confidence", "error"),
    [(0.0, -1.0, 0.0), (0.0, 1.0, 0.0), (-2.0, -0.9, 0.0), (1.5, -1.0, 0.5), (-2.0, 0.8, 0.3)],
)
def test_moments_of_a_mixture_below_a_limit_are_those_of_quadrature(limit, confidence, error):
    weights, centres, deviations = np.array([0.4, 0.6]), np.array([-2.0, 2.0]), np.array([0.5, 0.7])
    x = np.linspace(-8, 8, 200_001)
    density = sum(w * norm.pdf(x, m, s) for w, m, s in zip(weights, centres, deviations))
    side = norm.cdf(np.sign(-confidence) * (limit - x) / max(error, 1e-9))
    weight = density * (1 - abs(confidence) + (2 * abs(confidence) - 1) * side)
    mean = np.average(x, weights=weight)
    deviation = np.sqrt(np.average((x - mean) ** 2, weights=weight))

    population = Population(weights, centres[:, None], deviations[:, None, None] ** 2)
    limits = Limits(np.array([[limit]]), np.array([[confidence]]), np.array([[error]]))
    sources = Measurements([[NAN]], [[INF]], ("a",), limits=limits)
    got = as_measured(sources, population, marginal=True, scale=np.ones(1), floor=np.zeros(1))
    np.testing.assert_allclose([got.X[0, 0], got.X_err[0, 0]], [mean, deviation], rtol=2e-4)
