"""A classifier that is told sets of classes of some sources."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import log_softmax, logsumexp

from gpal import GPClassifier, InputError
from gpal.active.loop import LearningLoop
from gpal.model.labels import class_counts

FIXED = {"kernel": "rbf", "max_rounds": 0}
AB = frozenset({"a", "b"})


@pytest.fixture(scope="module")
def sky():
    """150 sources of three overlapping classes in a plane."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 2))
    scores = 2.0 * X @ rng.normal(size=(2, 3)) + rng.gumbel(size=(150, 3))
    return X, np.array(["a", "b", "c"])[np.argmax(scores, axis=1)]


def partly(y, rows):
    """`y` as told where a and b are not told apart in these rows."""
    told = y.astype(object)
    told[rows] = [AB if label in AB else label for label in y[rows]]
    return told


@pytest.mark.parametrize("options", [{}, {"X_err": 0.3}])
def test_a_set_of_one_class_is_a_label_and_a_set_of_all_is_no_source(sky, options):
    X, y = sky
    told = y.astype(object)
    told[:10] = [{label} for label in y[:10]]
    told[10:14] = [frozenset("abc")] * 4
    rest = np.r_[0:10, 14:150]
    ours = GPClassifier(max_rounds=2).fit(X, told, **options)
    theirs = GPClassifier(max_rounds=2).fit(X[rest], y[rest], **options)
    np.testing.assert_array_equal(
        ours.predict_proba(X, **options), theirs.predict_proba(X, **options)
    )
    np.testing.assert_array_equal(ours.class_fractions_, theirs.class_fractions_)


@pytest.mark.parametrize("options", [{}, {"X_err": 0.3}])
def test_on_the_engine_too_a_set_of_all_classes_changes_nothing(sky, options):
    """With the same hyper-parameters, as a row that is met like all others: up to the sweep at
    which it ends, by a tolerance per source."""
    X, y = sky
    model = GPClassifier(**FIXED).fit(X, y, **options)
    sources = model._scaled(model.as_fitted(X, **options))
    weights = np.eye(3)[np.searchsorted(model.classes_, y)]
    weights[:30:2] = 1, 1, 0  # some sets of a and b
    without = model.model_.refit(sources[20:], weights[20:])
    weights[:20] = 1
    with_them = model.model_.refit(sources, weights)
    np.testing.assert_allclose(
        with_them.predict_proba(sources), without.predict_proba(sources), atol=3e-3
    )
    assert 150 * with_them.bound == pytest.approx(130 * without.bound, abs=5e-3)


@pytest.mark.parametrize("options", [{"n_inducing": 20}, {"n_inducing": 20, "X_err": 0.3}])
def test_weights_are_repeated_rows(sky, options):
    X, y = sky
    told, times = partly(y, slice(0, 60)), np.arange(150) % 3
    again = np.repeat(np.arange(150), times)
    kwargs = {"X_err": options["X_err"]} if "X_err" in options else {}
    points = np.random.default_rng(1).normal(size=(20, 2))
    # Left out is a source with all its copies: a temperature by that is another one.
    model = GPClassifier(**FIXED, inducing_points=points, temperature=1)
    weighted = model.fit(X, told, sample_weight=times, **kwargs)
    p, bound, fractions = weighted.predict_proba(X, **kwargs), model.bound_, model.class_fractions_
    repeated = GPClassifier(**FIXED, inducing_points=points, temperature=1)
    repeated.fit(X[again], told[again], **kwargs)
    np.testing.assert_allclose(p, repeated.predict_proba(X, **kwargs), atol=1e-5)
    np.testing.assert_allclose(fractions, repeated.class_fractions_)
    assert bound == pytest.approx(repeated.bound_, abs=1e-6)


def test_the_bound_is_below_the_evidence_and_near_it():
    """log ∫ Π_i p(S_i | f_i) dN(f | 0, K) of four sources, by draws from the prior."""
    X = np.array([[-1.0], [-0.4], [0.3], [1.2]])
    told = np.array(["a", AB, frozenset("bc"), "c"], dtype=object)
    model = GPClassifier(**FIXED).fit(X, told)
    gp, sources = model.model_.gp, model._scaled(model.as_fitted(X))
    K = gp.kernels[0](sources.X).numpy()
    f = np.random.default_rng(0).normal(size=(400_000, 3, 4)) @ np.linalg.cholesky(K).T
    log_p = log_softmax(f, axis=1)
    members = np.array([[1, 0, 0], [1, 1, 0], [0, 1, 1], [0, 0, 1]], bool)
    of_source = [logsumexp(log_p[:, S, i], axis=1) for i, S in enumerate(members)]
    evidence = logsumexp(np.sum(of_source, axis=0)) - np.log(len(f))
    assert evidence - 0.35 < 4 * model.bound_ < evidence - 0.1


def test_a_set_teaches_what_it_is_not():
    """Sources at the right are known as a or b only: there c is improbable, and a and b stay as
    open as they were."""
    rng = np.random.default_rng(3)
    left, right = rng.normal(-2, 1, (60, 1)), rng.normal(3, 0.7, (60, 1))
    y = np.array(["a", "b", "c"])[rng.integers(3, size=60)]
    told = np.concatenate([y.astype(object), [AB] * 60])
    X = np.vstack([left, right])
    a, b, c = GPClassifier(kernel="rbf").fit(X, told).predict_proba([[3.0]])[0]
    assert c < 0.1 and 0.2 < a / (a + b) < 0.8
    without = GPClassifier(kernel="rbf").fit(left, y).predict_proba([[3.0]])
    np.testing.assert_allclose(without, 1 / 3, atol=0.03)


@pytest.mark.slow
def test_many_sources_more_sources_and_files(sky, tmp_path):
    X, y = sky
    told = partly(y, slice(0, 60))
    model = GPClassifier(**FIXED, n_inducing=20).fit(X, told)
    of_blocks = GPClassifier(**FIXED, n_inducing=20, learn_from=149).fit(X, told)
    assert np.abs(of_blocks.predict_proba(X) - model.predict_proba(X)).max() < 0.05
    again = model.refit(X, told)
    np.testing.assert_allclose(again.predict_proba(X), model.predict_proba(X), atol=0.01)
    assert np.abs(model.refit(X, y).predict_proba(X) - model.predict_proba(X)).max() > 0.02
    model.save(tmp_path / "model.npz")
    loaded = GPClassifier.load(tmp_path / "model.npz")
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    in_parts = GPClassifier(**FIXED, n_inducing=20)
    for part in (slice(0, 100), slice(100, 150)):
        in_parts.partial_fit(X[part], partly(y, slice(0, 120))[part], ["a", "b", "c"])
    assert in_parts.classes_.tolist() == ["a", "b", "c"]
    assert np.isfinite(in_parts.predict_proba(X)).all()


def test_a_set_counts_for_its_classes():
    labels = np.eye(3)[[0, 0, 0, 1, 2, 0, 0]]
    labels[-2:] = 1, 1, 0  # three a, one b, one c, twice a or b
    np.testing.assert_allclose(class_counts(labels, None, 3), [3 + 4 / 3, 1 + 2 / 3, 1])
    weighted = class_counts(labels, np.array([2.0, 1, 0, 1, 1, 3, 0]), 3)
    np.testing.assert_allclose(weighted, [3 + 2.0, 1 + 1.0, 1])


def test_a_loop_takes_sets_as_answers(sky):
    X, y = sky
    loop = LearningLoop(GPClassifier(**FIXED), X, labels=dict(enumerate(y[:40].tolist())))
    before = loop.classifier.predict_proba(X)
    loop.tell([50, 51], [AB, "c"])
    assert loop.labels[50] == AB
    assert np.abs(loop.classifier.predict_proba(X) - before).max() > 1e-3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"likelihood": "dirichlet"},
            "'dirichlet' takes no label that is a set of classes or has weights; choose",
        ),
        ({"likelihood": "step"}, "'step' takes no label that is a set"),
        ({"likelihood": "gumbel_softmax"}, "'gumbel_softmax' takes no label that is a set"),
        ({"inference": "svgp_natgrad"}, "needs a log-concave likelihood.*work here: sites"),
        ({"likelihood": "logistic_softmax", "inference": "cavi"}, "needs a label of one class"),
    ],
)
def test_what_takes_no_sets_refuses_them(sky, options, message):
    X, y = sky
    with pytest.raises(InputError, match=message):
        GPClassifier(**options).fit(X, partly(y, slice(0, 60)))


def test_a_refit_refuses_them_too(sky):
    X, y = sky
    model = GPClassifier("step", **FIXED).fit(X, y)
    with pytest.raises(InputError, match="'step' takes no label that is a set"):
        model.refit(X, partly(y, slice(0, 60)))


def test_bad_sets_are_refused(sky):
    X, y = sky
    told = partly(y, slice(0, 60))
    with pytest.raises(InputError, match="row 3 is an empty set"):
        GPClassifier().fit(X, np.array([*y[:3], set(), *y[4:]], dtype=object))
    with pytest.raises(InputError, match="batches take one class for each source"):
        GPClassifier(learn_from=100).fit_batches([(X, told)])
    model = GPClassifier(**FIXED).fit(X, y)
    with pytest.raises(InputError, match="batches take one class for each source"):
        model.refit_batches([(X, told)])
    with pytest.raises(InputError, match="class 'z' is not one of"):
        model.refit(X, np.array([{"a", "z"}, *y[1:]], dtype=object))
    with pytest.raises(InputError, match="every label is a set of all classes"):
        GPClassifier().fit(X, np.array([AB] * 150, dtype=object))
    with pytest.raises(InputError, match="score"):
        model.score(X, told)


def test_a_class_that_no_label_tells_of_is_refused(sky):
    X, y = sky
    told = np.array(["a", "b"])[(y == "b").astype(int)].astype(object)
    told[3] = frozenset("abc")
    with pytest.raises(InputError, match="class 'c' is named only in labels that leave every"):
        GPClassifier(**FIXED).fit(X, told)
