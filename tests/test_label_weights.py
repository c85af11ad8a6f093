"""A classifier that is told how likely what was seen of a source is under each class."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize
from scipy.special import log_softmax, logsumexp, softmax

from gpal import GPClassifier, InputError
from gpal.active.loop import LearningLoop
from gpal.inference import shared_graph
from gpal.metrics import coarser, negative_log_predictive_density
from gpal.model.labels import as_labels, class_counts
from gpal.model.reference import reference_posterior

FIXED = {"kernel": "rbf", "max_rounds": 0}
ABC = np.array(["a", "b", "c"])


@pytest.fixture(scope="module")
def sky():
    """150 sources of three overlapping classes in a plane."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 2))
    scores = 2.0 * X @ rng.normal(size=(2, 3)) + rng.gumbel(size=(150, 3))
    return X, ABC[np.argmax(scores, axis=1)]


def doubtful(y, rows, right=0.8):
    """`y` as told by an observer who is right with this probability, in these rows."""
    told = y.astype(object)
    wrong = (1 - right) / 2
    told[rows] = [{c: right if c == label else wrong for c in "abc"} for label in y[rows]]
    return told


# ---- what an entry means -------------------------------------------------------------------------


@given(
    arrays(float, (5, 3), elements=st.sampled_from([0.0, 0.1, 0.3, 1.0, 7.0])), st.floats(1e-3, 1e3)
)
def test_only_ratios_of_weights_matter(weights, factor):
    weights[~weights.any(axis=1), 0] = 1.0
    y = np.array([dict(zip("abc", row)) for row in weights.tolist()], object)
    labels = as_labels(y, ABC)
    truth = weights / weights.max(axis=1, keepdims=True)
    if (np.count_nonzero(weights, axis=1) == 1).all():
        truth = np.argmax(weights, axis=1)
    np.testing.assert_array_equal(labels, truth)
    scaled = [{name: w * factor for name, w in entry.items() if w} for entry in y]
    np.testing.assert_allclose(as_labels(np.array(scaled, object), ABC), truth)


@pytest.mark.parametrize("options", [{}, pytest.param({"X_err": 0.3}, marks=pytest.mark.slow)])
def test_classes_sets_and_what_says_nothing_are_special_weights(sky, options):
    X, y = sky
    told = y.astype(object)
    told[:10] = [{label: 0.3, "z": 0.0} for label in y[:10]]
    told[10:14] = [dict.fromkeys("abc", 0.2)] * 4
    told[20:40] = [{label: 2.0, other: 2} for label, other in zip(y[20:40], np.roll(y, 1)[20:40])]
    of_sets = y.astype(object)
    of_sets[20:40] = [frozenset(label) for label in told[20:40]]
    rest = np.r_[0:10, 14:150]
    ours = GPClassifier(max_rounds=2).fit(X, told, **options)
    theirs = GPClassifier(max_rounds=2).fit(X[rest], of_sets[rest], **options)
    np.testing.assert_array_equal(
        ours.predict_proba(X, **options), theirs.predict_proba(X, **options)
    )
    assert ours.bound_ == theirs.bound_ and ours.classes_.tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(ours.class_fractions_, theirs.class_fractions_)


@pytest.mark.parametrize("right", [0.2, 0.5, 0.7, 0.95])
def test_at_the_symmetric_point(right):
    """Halfway between two classes p is a half if both weigh alike, and exchanging the weights
    exchanges the classes."""
    X, y = np.array([[-1.0], [-2.0], [1.0], [2.0], [0.0]]), ["a", "a", "b", "b"]

    def p(weight):
        told = np.array([*y, {"a": weight, "b": 1 - weight}], object)
        model = GPClassifier(**FIXED).fit(X, told)
        return model.predict_proba(X)[:, 0], model.bound_

    (ours, bound), (theirs, mirrored) = p(right), p(1 - right)
    np.testing.assert_allclose(ours[[0, 2, 4]], 1 - theirs[[2, 0, 4]], atol=1e-5)
    assert bound == pytest.approx(mirrored, abs=1e-6)
    assert np.sign(round(ours[4] - 0.5, 5)) == np.sign(right - 0.5)


# ---- the bound -----------------------------------------------------------------------------------


def test_the_bound_is_below_the_evidence_and_near_it():
    """log ∫ Π_i Σ_c w_ic p(c | f_i) dN(f | 0, K) of four sources, by draws from the prior."""
    X = np.array([[-1.0], [-0.4], [0.3], [1.2]])
    weights = np.array([[1, 0, 0], [0.2, 1, 0.05], [0, 1, 0.5], [0.3, 0.3, 1]])
    told = np.array([dict(zip("abc", row)) for row in weights.tolist()], object)
    model = GPClassifier(**FIXED).fit(X, told)
    sources = model._scaled(model.as_fitted(X))
    K = model.model_.gp.kernels[0](sources.X).numpy()
    f = np.random.default_rng(0).normal(size=(400_000, 3, 4)) @ np.linalg.cholesky(K).T
    of_source = logsumexp(log_softmax(f, axis=1), axis=1, b=weights.T)
    evidence = logsumexp(of_source.sum(axis=1)) - np.log(len(f))
    assert evidence - 0.35 < 4 * model.bound_ < evidence - 0.05


def test_two_classes_by_dense_quadrature():
    """One source with weights beside one of each class: p(a) there and the evidence, exactly up to
    the grid, of f_a − f_b on which both depend alone."""
    X, told = np.array([[-1.0], [0.2], [1.0]]), ["a", {"a": 1, "b": 0.25}, "b"]
    model = GPClassifier(**FIXED).fit(X, np.array(told, object))
    sources = model._scaled(model.as_fitted(X))
    K = 2 * model.model_.gp.kernels[0](sources.X).numpy()  # of the difference
    grid = np.sqrt(np.diag(K))[:, None] * np.linspace(-6, 6, 81)
    d = np.stack(np.meshgrid(*grid, indexing="ij"), axis=-1)
    log_prior = -0.5 * np.einsum("...i,ij,...j", d, np.linalg.inv(K), d)
    p = softmax(np.stack([d / 2, -d / 2], axis=-1), axis=-1)
    seen = p[..., 0, 0] * (p[..., 1, 0] + 0.25 * p[..., 1, 1]) * p[..., 2, 1]
    joint = np.exp(log_prior) * seen
    evidence = np.log(joint.sum() / np.exp(log_prior).sum())
    exact = np.einsum("ijk,ijksc->sc", joint, p) / joint.sum()
    assert evidence - 0.25 < 3 * model.bound_ < evidence
    np.testing.assert_allclose(model.predict_proba(X), exact, atol=0.02)


@pytest.mark.parametrize("options", [{"n_inducing": 20}, {"n_inducing": 20, "X_err": 0.3}])
def test_sample_weights_are_repeated_rows(sky, options):
    X, y = sky
    told, times = doubtful(y, slice(0, 60)), np.arange(150) % 3
    again = np.repeat(np.arange(150), times)
    kwargs = {"X_err": options["X_err"]} if "X_err" in options else {}
    model = GPClassifier(**FIXED, inducing_points=np.random.default_rng(1).normal(size=(20, 2)))
    weighted = model.fit(X, told, sample_weight=times, **kwargs)
    p, bound, fractions = weighted.predict_proba(X, **kwargs), model.bound_, model.class_fractions_
    repeated = model.fit(X[again], told[again], **kwargs)
    np.testing.assert_allclose(p, repeated.predict_proba(X, **kwargs), atol=1e-5)
    np.testing.assert_allclose(fractions, repeated.class_fractions_)
    assert bound == pytest.approx(repeated.bound_, abs=1e-6)


# ---- class fractions -----------------------------------------------------------------------------


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 1000))
def test_class_fractions_are_the_most_probable_ones(seed):
    """Of Π_i (Σ_c w_ic π_c)^s_i Π_c π_c, by an optimiser that knows of no sharing out."""
    rng = np.random.default_rng(seed)
    w = rng.random((12, 3)) * (rng.random((12, 3)) < 0.7)
    w[~w.any(axis=1), 0] = 1.0
    w, s = w / w.max(axis=1, keepdims=True), rng.integers(1, 4, 12).astype(float)

    def objective(z):
        pi = softmax(np.append(z, 0.0))
        return -(s @ np.log(w @ pi) + np.log(pi).sum())

    best = minimize(objective, np.zeros(2), method="BFGS", options={"gtol": 1e-8}).x
    counts = class_counts(w, s, 3)
    assert counts.sum() == pytest.approx(s.sum())
    truth = softmax(np.append(best, 0.0))
    np.testing.assert_allclose((counts + 1) / (counts + 1).sum(), truth, atol=1e-4)


def test_class_fractions_see_through_an_observer_who_errs():
    """Told right in 7 of 10 cases, a class of 10 % seems to be one of 34 %."""
    rng = np.random.default_rng(0)
    rare = rng.random(4000) < 0.1
    told = rare ^ (rng.random(4000) < 0.3)
    weights = np.where(told[:, None], [3 / 7, 1.0], [1.0, 3 / 7])
    counts = class_counts(weights, None, 2)
    assert told.mean() == pytest.approx(0.34, abs=0.02)
    assert counts[1] / 4000 == pytest.approx(0.1, abs=0.03)
    in_two = class_counts(weights[2000:], None, 2, before=class_counts(weights[:2000], None, 2))
    np.testing.assert_allclose(in_two / 4000, counts / 4000, atol=0.03)


# ---- what it is for ------------------------------------------------------------------------------


@pytest.mark.slow
def test_an_observer_who_errs_is_better_told_as_weights_than_believed():
    """Three labels in ten are wrong, and how often is known: the NLL of the true classes."""
    gaps = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(1150, 2))
        y = np.where(np.sin(2 * X[:, 0]) + X[:, 1] > 0, "a", "b")
        wrong = rng.random(150) < 0.3
        told = np.where(wrong, np.where(y[:150] == "a", "b", "a"), y[:150])
        weighted = np.array([{c: 0.7 if c == t else 0.3 for c in "ab"} for t in told], object)
        nll = [
            negative_log_predictive_density(
                y[150:],
                GPClassifier("softmax", kernel="rbf", max_rounds=5)
                .fit(X[:150], labels)
                .predict_proba(X[150:]),
                ["a", "b"],
            )
            for labels in (weighted, told)
        ]
        gaps.append(nll[0] - nll[1])
    assert np.mean(gaps) < -0.05 and np.max(gaps) < 0


# ---- every way in --------------------------------------------------------------------------------


def test_files_refits_and_batches(sky, tmp_path):
    X, y = sky
    told = doubtful(y, slice(0, 60))
    model = GPClassifier(**FIXED, n_inducing=20).fit(X, told)
    p = model.predict_proba(X)
    assert np.abs(GPClassifier(**FIXED, n_inducing=20).fit(X, y).predict_proba(X) - p).max() > 0.02
    of_blocks = GPClassifier(**FIXED, n_inducing=20, learn_from=149).fit(X, told)
    assert np.abs(of_blocks.predict_proba(X) - p).max() < 0.05
    np.testing.assert_allclose(model.refit(X, told).predict_proba(X), p, atol=0.01)
    model.save(tmp_path / "model.npz")
    np.testing.assert_array_equal(GPClassifier.load(tmp_path / "model.npz").predict_proba(X), p)
    in_parts = GPClassifier(**FIXED, n_inducing=20)
    for part in (slice(0, 40), slice(40, 100), slice(100, 150)):  # the last has classes alone
        in_parts.partial_fit(X[part], told[part], ["a", "b", "c"])
    assert np.abs(in_parts.predict_proba(X) - p).max() < 0.2
    np.testing.assert_allclose(in_parts.class_fractions_, model.class_fractions_, atol=0.02)


@pytest.mark.parametrize("likelihood", ["softmax", "logistic_softmax", "coregionalized"])
@pytest.mark.parametrize("X_err", [None, 0.3])
def test_every_likelihood_that_takes_sets(sky, likelihood, X_err):
    X, y = sky
    fits = [
        GPClassifier(likelihood, **FIXED, n_inducing=15).fit(X, labels, X_err=X_err)
        for labels in (doubtful(y, slice(0, 150), 0.999), y)
    ]
    ours, theirs = (fit.predict_proba(X, X_err=X_err) for fit in fits)
    np.testing.assert_allclose(ours, theirs, atol=0.05)


@pytest.mark.parametrize("noise", ["amortized", "latent"])
def test_stochastic_gradients_with_inputs_that_are_drawn(sky, noise):
    X, y = sky
    options = {"inference": "svgp", "inference_options": {"steps": 20}, "n_inducing": 10}
    model = GPClassifier(kernel="rbf", input_noise=noise, **options)
    model.fit(X, doubtful(y, slice(0, 60)), X_err=0.3)
    assert np.isfinite(model.predict_proba(X, X_err=0.3)).all()


def test_two_fits_share_their_graphs(sky):
    X, y = sky
    shared_graph.forget_graphs()
    GPClassifier(**FIXED, n_inducing=15).fit(X, doubtful(y, slice(0, 60)))
    known = len(shared_graph._STAND_INS)
    GPClassifier(**FIXED, n_inducing=15).fit(X, doubtful(y, slice(30, 90), 0.6))
    assert len(shared_graph._STAND_INS) == known > 0


def test_a_loop_takes_weights_as_answers(sky):
    X, y = sky
    loop = LearningLoop(GPClassifier(**FIXED), X, labels=dict(enumerate(y[:40].tolist())))
    before = loop.classifier.predict_proba(X)
    loop.tell([50, 51], [{"a": 0.9, "b": 0.1}, "c"])
    assert loop.labels[50] == {"a": 0.9, "b": 0.1}
    assert np.abs(loop.classifier.predict_proba(X) - before).max() > 1e-3


def test_of_a_coarser_class_where_it_has_all_the_weight():
    y, _, names = coarser(
        [{"a": 0.9, "b": 0.1, "c": 0}], [[0.2, 0.3, 0.5]], ABC, {"ab": "ab", "c": "c"}
    )
    assert y.tolist() == ["ab"] and names == ("ab", "c")


# ---- refusals ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"a": -1.0, "b": 1.0}, r"row 3 gives class 'a' the weight -1.0; give a finite number ≥ 0"),
        ({"a": np.inf}, "row 3 gives class 'a' the weight inf"),
        ({"a": np.nan, "b": 1}, "row 3 gives class 'a' the weight nan"),
        ({"a": 10**400}, "row 3 gives class 'a' the weight 1000"),
        ({"a": "0.5"}, "row 3 gives class 'a' the weight 0.5; give a finite number"),
        ({"a": 0.0, "b": 0}, "row 3 has no weight above 0; give one to each class"),
        ({}, "row 3 has no weight above 0"),
        (["a", "b"], "row 3 is a list; give a class, a set of classes, or a mapping"),
        (("a", "b"), "row 3 is a tuple"),
    ],
)
def test_bad_weights_are_refused(sky, entry, message):
    X, y = sky
    told = y.astype(object)
    told[3] = entry
    with pytest.raises(InputError, match=message):
        GPClassifier().fit(X, told)


def test_what_takes_one_class_refuses_weights(sky):
    from gpal.evaluation import cross_validate, logistic_regression

    X, y = sky
    told = doubtful(y, slice(0, 60))
    with pytest.raises(InputError, match="'dirichlet' takes no label that is a set"):
        GPClassifier("dirichlet").fit(X, told)
    with pytest.raises(InputError, match=r"takes no sets and no weights; inferences.*sites"):
        GPClassifier(inference="svgp_natgrad").fit(X, told)
    with pytest.raises(InputError, match=r"batches take one class.*or has weights"):
        GPClassifier(learn_from=100).fit_batches([(X, told)])
    model = GPClassifier(**FIXED).fit(X, told)
    with pytest.raises(InputError, match="class 'z' is not one of"):
        model.refit(X, np.array([{"a": 1, "z": 0.1}, *y[1:]], object))
    with pytest.raises(InputError, match="row 0 gives class 'a' the weight -1"):
        model.refit(X, np.array([{"a": -1}, *y[1:]], object))
    with pytest.raises(InputError, match="every label is a set of all classes, or"):
        GPClassifier().fit(X, np.array([{"a": 2, "b": 2}] * 150, object))
    with pytest.raises(InputError, match="a score is of sources of one known class"):
        model.score(X, told)
    with pytest.raises(InputError, match="row 0 is a set of classes or has weights"):
        negative_log_predictive_density(told, model.predict_proba(X), ["a", "b", "c"])
    with pytest.raises(InputError, match="one known class: leave out those whose label is a set"):
        cross_validate({"it": logistic_regression()}, X, told)
    with pytest.raises(InputError, match="a reference posterior is of sources of one known class"):
        reference_posterior(model)
