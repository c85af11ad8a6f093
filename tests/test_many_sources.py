"""More sources than are learned from at once: of a sample the hyper-parameters, of all q(f)."""

from __future__ import annotations

import pickle
import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path

import gpflow
import numpy as np
import pytest
import tensorflow as tf

from gpal import GPClassifier, InputError, Measurements
from gpal.arrays import as_measurements
from gpal.likelihoods import make_likelihood
from gpal.limits import Limits
from gpal.model import drawn_sample, fit
from gpal.model.batches import refit_batches
from gpal.model.checkpoint import Checkpoint
from gpal.model.drawn_sample import DrawnSample
from gpal.model.file import read_checkpoint
from gpal.model.partitions import Drawn

OPTIONS = {"n_inducing": 8, "max_rounds": 1, "learn_from": 300}


@pytest.fixture(scope="module")
def sky():
    """900 sources of three classes, one of them rare, some with errors and lost values."""
    rng = np.random.default_rng(3)
    y = rng.choice(["a", "b", "rare"], p=[0.6, 0.36, 0.04], size=900)
    centres = {"a": [0.0, 0.0], "b": [1.5, 0.5], "rare": [-1.0, 2.0]}
    X_err = rng.uniform(0.05, 0.4, size=(900, 2))
    X = np.array([centres[c] for c in y]) + rng.normal(size=(900, 2)) * np.hypot(0.6, X_err)
    X_err[rng.random(X.shape) < 0.03] = np.inf
    return X, y, X_err


def cut(arrays, number):
    return [tuple(parts) for parts in zip(*(np.array_split(a, number) for a in arrays))]


# ---- the sample ----------------------------------------------------------------------------------


@pytest.mark.parametrize("blocks", [1, 7, 200])
def test_a_sample_is_the_same_whatever_the_blocks_are(sky, blocks):
    X, y, X_err = sky
    whole, parts = DrawnSample(300, seed=1), DrawnSample(300, seed=1)
    whole.add(as_measurements(X, X_err), y)
    for X_part, y_part, err_part in cut((X, y, X_err), blocks):
        parts.add(as_measurements(X_part, err_part), y_part)
    (a, labels, weight), (b, other_labels, other_weight) = whole.result(), parts.result()
    np.testing.assert_array_equal(a.X, b.X)
    np.testing.assert_array_equal(labels, other_labels)
    np.testing.assert_array_equal(weight, other_weight)


def test_what_is_rare_is_in_it_and_weighs_what_it_should(sky, monkeypatch):
    X, y, X_err = sky
    monkeypatch.setattr(drawn_sample, "FEWEST", 25)
    sums, sizes = [], []
    for seed in range(200):
        sample = DrawnSample(300, seed=seed)
        sample.add(as_measurements(X, X_err), y)
        _, labels, weight = sample.result()
        assert (labels == "rare").sum() >= 25
        sums.append([weight[labels == c].sum() / weight.sum() for c in ("a", "b", "rare")])
        sizes.append(weight.sum())
    expected = [np.mean(y == c) for c in ("a", "b", "rare")]
    error = np.std(sums, axis=0) / np.sqrt(len(sums))
    assert (np.abs(np.mean(sums, axis=0) - expected) < 4 * error + 1e-3).all()
    assert abs(np.mean(sizes) - len(y)) < 4 * np.std(sizes) / np.sqrt(len(sizes))


def test_a_sample_counts_what_there_is():
    """Also where the fewest of a stratum are all that it has."""
    y = np.repeat(["rare", "common"], [drawn_sample.FEWEST, 400])
    counts = []
    for seed in range(400):
        sample = DrawnSample(50, seed=seed)
        sample.add(as_measurements(np.zeros((len(y), 1)), None), y)
        _, labels, weight = sample.result()
        counts.append([weight[labels == c].sum() for c in ("rare", "common")])
    error = np.std(counts, axis=0) / 20
    assert (np.abs(np.mean(counts, axis=0) - [drawn_sample.FEWEST, 400]) <= 4 * error).all()
    assert error[0] == 0


def test_what_is_common_weighs_alike_and_weights_of_the_user_stay(sky):
    X, y, _ = sky
    times = np.random.default_rng(0).integers(1, 4, len(y)).astype(float)
    sources = as_measurements(X, np.zeros_like(X))
    labels = np.where(y == "rare", "a", y)
    once, weighted = DrawnSample(500, seed=0), DrawnSample(500, seed=0)
    once.add(sources, labels)
    weighted.add(sources, labels, times)
    (drawn, _, alike), (_, _, weight) = once.result(), weighted.result()
    assert len(drawn) == 500 and len(np.unique(alike)) == 1
    assert alike[0] == pytest.approx(len(y) / 500, rel=0.1)
    rows = [int(np.flatnonzero((x == X).all(axis=1))[0]) for x in drawn.X]
    np.testing.assert_allclose(weight, times[rows] * alike)


def test_all_there_are_count_once(sky):
    X, y, X_err = sky
    sample = DrawnSample(5000, seed=0)
    sample.add(as_measurements(X, X_err), y)
    sources, _, weight = sample.result()
    assert weight is None and sources.X.shape == X.shape


# ---- the fit -------------------------------------------------------------------------------------

TREATMENTS = {
    "exact": {"input_noise": "none"},
    "first order": {"input_noise": "first_order"},
    "integrated": {"input_noise": "integrated", "inference_options": {"final_sweeps": 3}},
    "dirichlet": {"likelihood": "dirichlet", "input_noise": "first_order"},
}


NOISY = [pytest.param(name, marks=pytest.mark.slow) for name in TREATMENTS if name != "exact"]


@pytest.mark.parametrize("name", ["exact", *NOISY])
def test_a_fit_over_partitions_is_that_of_the_whole(sky, name):
    """1, 7 and 50 partitions, to 1e-8."""
    X, y, X_err = sky
    model = GPClassifier(**OPTIONS, **TREATMENTS[name])
    whole = model.fit(X, y, X_err).predict_proba(X[:200], X_err[:200])
    assert model.settings_["learning"]["sources"] < 450
    for number in (1, 7, 50):
        parts = GPClassifier(**OPTIONS, **TREATMENTS[name])
        parts.fit_batches(cut((X, y, X_err), number))
        got = parts.predict_proba(X[:200], X_err[:200])
        np.testing.assert_allclose(got, whole, rtol=0, atol=1e-8)
        np.testing.assert_array_equal(parts.classes_, model.classes_)
        np.testing.assert_allclose(parts.class_fractions_, model.class_fractions_)
        np.testing.assert_array_equal(parts.training_.lower, model.training_.lower)
        np.testing.assert_array_equal(parts.training_.upper, model.training_.upper)


@pytest.mark.parametrize("name", ["first order", "integrated"])
def test_an_engine_finds_the_same(sky, name):
    """Partitions that are worked on elsewhere, from what can be sent there."""
    X, y, X_err = sky
    here = GPClassifier(**OPTIONS, **TREATMENTS[name]).fit(X, y, X_err)
    there = GPClassifier(**OPTIONS, **TREATMENTS[name])
    parts = cut((X, y, X_err), 7)
    there.fit_batches([partial(tuple, part) for part in parts], engine=Sending())
    want, got = (m.predict_proba(X[:200], X_err[:200]) for m in (here, there))
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-8)
    np.testing.assert_allclose(there.class_fractions_, here.class_fractions_)
    assert there.training_.upper.tolist() == here.training_.upper.tolist()


class Sending:
    """As an engine does: all that is worked on has travelled, and so have the answers."""

    def map(self, function, parts, shared):
        for part in parts:
            sent = pickle.loads(pickle.dumps((function, part, shared)))
            yield pickle.loads(pickle.dumps(sent[0](*sent[1:])))


def test_a_fit_that_was_interrupted_goes_on_from_its_checkpoint(sky, tmp_path, monkeypatch):
    whole = cut(sky, 3)
    want = GPClassifier(**OPTIONS).fit_batches(whole)
    path, calls = tmp_path / "fit.npz", []

    def interrupted():
        calls.append(0)
        if len(calls) == 6:  # three to draw the sample, then the third sweep
            raise KeyboardInterrupt
        return iter(whole)

    with pytest.raises(KeyboardInterrupt):
        GPClassifier(**OPTIONS).fit_batches(interrupted, checkpoint=path)
    GPClassifier.load(path).predict_proba(sky[0][:5], sky[2][:5])
    learned = []
    monkeypatch.setattr(fit, "fit_model", lambda *a, **k: learned.append(a))
    again = GPClassifier(**OPTIONS).fit_batches(whole, checkpoint=path)
    assert not learned
    p, q = (model.predict_proba(sky[0], sky[2]) for model in (again, want))
    np.testing.assert_allclose(p, q, rtol=0, atol=1e-12)
    assert again.class_fractions_.tolist() == want.class_fractions_.tolist()
    assert not again.provenance_
    with pytest.raises(InputError, match="checkpoint of another fit"):
        GPClassifier(**OPTIONS, random_state=1).fit_batches(whole, checkpoint=path)


@pytest.mark.slow
def test_a_fit_that_was_interrupted_in_any_sweep_ends_as_if_it_was_not(sky, tmp_path):
    """Where sites follow θ < 0, and after a step that was halved, too."""
    whole, path = cut([part[:300] for part in sky], 2), tmp_path / "fit.npz"
    settings = {
        **{"likelihood": "robust_max", "input_noise": "first_order", "max_rounds": 0},
        **{"n_inducing": 8, "learn_from": 200, "inference_options": {"final_sweeps": 5}},
    }
    stopped: list[Path] = []

    def batches():
        if path.exists():  # a sweep begins
            stopped.append(tmp_path / f"{len(stopped)}.npz")
            shutil.copy(path, stopped[-1])
        return iter(whole)

    want = GPClassifier(**settings).fit_batches(batches, checkpoint=path)
    states = [read_checkpoint(each) for each in stopped]
    assert {bool(state["signed"]) for state in states} == {False, True}
    assert any(state["step"] < 1 for state in states)
    for each in stopped:
        again = GPClassifier(**settings).fit_batches(whole, checkpoint=each)
        assert again.bound_ == want.bound_
        p, q = (model.predict_proba(*sky[::2]) for model in (again, want))
        np.testing.assert_array_equal(p, q)
        for got, sums in zip(*(tf.nest.flatten(m.streamed_[0].statistics) for m in (again, want))):
            np.testing.assert_array_equal(got, sums)


def test_columns_and_units_are_part_of_what_a_checkpoint_is_of(sky, tmp_path):
    """The same numbers under other names, and in another unit."""
    X, y, X_err = (part[:300] for part in sky)
    settings = {"n_inducing": 5, "max_rounds": 0, "learn_from": 200}

    def sources(names=("u", "v"), unit="Jy"):
        return [(Measurements(X, X_err, names, (unit, unit)), y)]

    def fit_to(batches):
        return GPClassifier(**settings).fit_batches(batches, checkpoint=tmp_path / "fit.npz")

    fit_to(sources())
    for others in (sources(names=("v", "u")), sources(unit="mJy")):
        with pytest.raises(InputError, match="checkpoint of another fit"):
            fit_to(others)
    fit_to(sources())


def test_objects_among_the_settings_are_part_of_what_a_checkpoint_is_of(sky):
    X, y, X_err = sky
    sample = as_measurements(X, X_err), y, None
    drawn = Drawn(None, {"a": 1}, np.zeros(2), np.ones(2))

    def name(**settings) -> str:
        return Checkpoint.of("fit.npz", GPClassifier(**settings), sample, drawn).fit

    def fixed(lengthscale: float) -> gpflow.kernels.Kernel:
        kernel = gpflow.kernels.RBF(lengthscales=lengthscale)
        gpflow.set_trainable(kernel, False)
        return kernel

    several = [
        {},
        {"kernel": fixed(1.0)},
        {"kernel": fixed(2.0)},
        {"kernel": gpflow.kernels.RBF(lengthscales=2.0)},
        {"likelihood": make_likelihood("step", 3, delta=0.05)},
        {"likelihood": make_likelihood("step", 3, delta=0.06)},
    ]
    assert len({name(**each) for each in several}) == len(several)
    assert name(kernel=fixed(2.0)) == name(kernel=fixed(2.0))


def test_limits_are_part_of_what_a_checkpoint_is_of(sky):
    """Value, side and confidence, and error of a limit: not of no limits, whose name stays."""
    X, y, X_err = sky
    lost, drawn = X_err == np.inf, Drawn(None, {"a": 1}, np.zeros(2), np.ones(2))

    def name(limits: Limits | None) -> str:
        sources = replace(as_measurements(X, X_err), limits=limits)
        return Checkpoint.of("fit.npz", GPClassifier(), (sources, y, None), drawn).fit

    def limits(value: float, confidence: float, error: float) -> Limits:
        return Limits(*(np.where(lost, part, 0.0) for part in (value, confidence, error)))

    several = [
        None,
        limits(1.0, -0.9, 0.0),
        limits(2.0, -0.9, 0.0),
        limits(1.0, 0.9, 0.0),
        limits(1.0, -0.8, 0.0),
        limits(1.0, -0.9, 0.3),
    ]
    assert len({name(each) for each in several}) == len(several)
    assert name(Limits.none(X.shape)) == name(None)


def test_threads_change_nothing(sky, monkeypatch):
    from gpal.model import batches

    X, y, X_err = sky
    monkeypatch.setattr(batches, "BLOCK", 100)
    found = []
    for threads in (1, 3):
        monkeypatch.setattr(batches, "threads", lambda threads=threads: threads)
        model = GPClassifier(**OPTIONS, input_noise="first_order").fit(X, y, X_err)
        found.append(model.predict_proba(X, X_err))
    np.testing.assert_array_equal(*found)


@pytest.mark.slow
def test_a_sample_of_all_is_the_fit_of_all(sky):
    """With as many sources to learn from as there are, sweeps go on from where the fit stopped."""
    X, y, X_err = sky
    options = {"n_inducing": 15, "input_noise": "first_order"}
    whole = GPClassifier(**options, learn_from=None).fit(X, y, X_err)
    sampled = GPClassifier(**options, learn_from=899).fit(X, y, X_err)
    assert sampled.bound_ == pytest.approx(whole.bound_, abs=2e-3)
    a, b = (m.predict_proba(X, X_err) for m in (whole, sampled))
    assert np.abs(a - b).mean() < 5e-3


@pytest.mark.slow
def test_partial_fit_and_files_go_on_from_many_sources(sky, tmp_path):
    X, y, _ = sky
    model = GPClassifier(**OPTIONS, likelihood="dirichlet", input_noise="none")
    model.fit(X[:600], y[:600]).partial_fit(X[600:], y[600:])
    want = GPClassifier(**OPTIONS, likelihood="dirichlet", input_noise="none")
    want = want.fit(X[:600], y[:600]).refit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), want.predict_proba(X), atol=1e-8)
    np.testing.assert_allclose(model.class_fractions_, want.class_fractions_)
    model.save(tmp_path / "model.npz")
    loaded = GPClassifier.load(tmp_path / "model.npz")
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert loaded.learn_from == 300


def test_weights_are_repeated_sources(sky):
    X, y, X_err = sky
    times = np.random.default_rng(1).integers(1, 3, len(y))
    model = GPClassifier(**OPTIONS, input_noise="first_order").fit(X, y, X_err, sample_weight=times)
    sources = model._scaled(as_measurements(X, X_err))
    labels = np.searchsorted(model.classes_, y)
    rows = np.repeat(np.arange(len(y)), times)
    repeated, _ = refit_batches(model.model_, lambda: [(sources[rows], labels[rows], None)])
    weighted, _ = refit_batches(model.model_, lambda: [(sources, labels, times)])
    assert weighted.bound == pytest.approx(repeated.bound, rel=1e-10)
    want, got = (model.predict_proba(sources) for model in (repeated, weighted))
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-8)
    counts = [times[y == c].sum() for c in model.classes_]
    np.testing.assert_allclose(model.class_fractions_, counts / times.sum())


def test_batches_as_measurements_and_frames_are_found_by_name(sky):
    X, y, X_err = sky
    names = ("u", "g")
    model = GPClassifier(**OPTIONS, input_noise="first_order")
    model.fit_batches(
        [
            (Measurements(X[:700], X_err[:700], names=names), y[:700]),
            (Measurements(X[700:, ::-1], X_err[700:, ::-1], names=names[::-1]), y[700:]),
        ]
    )
    whole = GPClassifier(**OPTIONS, input_noise="first_order").fit(X, y, X_err)
    np.testing.assert_allclose(
        model.predict_proba(Measurements(X, X_err, names=names)),
        whole.predict_proba(X, X_err),
        atol=1e-8,
    )


def test_errors_that_only_few_sources_have_are_learned_with(sky):
    X, y, _ = sky
    X_err = np.zeros_like(X)
    X_err[600:603, 1] = 0.5
    model = GPClassifier(**OPTIONS, input_noise="first_order").fit_batches(cut((X, y, X_err), 5))
    assert not model.exact_inputs_ and model.model_.gp.noisy == (1,)


def test_what_cannot_be_is_refused(sky):
    X, y, _ = sky
    with pytest.raises(InputError, match="an iterator can be gone through once only"):
        GPClassifier(**OPTIONS).fit_batches(iter([(X, y)]))
    with pytest.raises(InputError, match="no batches"):
        GPClassifier(**OPTIONS).fit_batches([])
    with pytest.raises(InputError, match="learn_from=None"):
        GPClassifier(learn_from=None).fit_batches([(X, y)])
    with pytest.raises(InputError, match="inference 'svgp' learns from all"):
        GPClassifier(inference="svgp").fit_batches([(X, y)])
    with pytest.raises(InputError, match="one class only"):
        GPClassifier(**OPTIONS).fit_batches([(X, np.full(len(y), "a"))])
    with pytest.raises(InputError, match="learn_from must be a whole number from 100"):
        GPClassifier(learn_from=3.5).fit(X, y)
    with pytest.raises(InputError, match="learn_from must be a whole number from 100"):
        GPClassifier(learn_from=10).fit(X, y)
    with pytest.raises(InputError, match="learn_from must be a whole number from 100"):
        GPClassifier(learn_from=10).fit_batches([(X, y)])
    with pytest.raises(InputError, match="prior must be 'train' or give a fraction for each"):
        GPClassifier(**OPTIONS, prior={"a": 1.0}).fit_batches([(X, y)])
    with pytest.raises(InputError, match="a batch has error bars and the first has none"):
        GPClassifier(**OPTIONS).fit_batches([(X, y), (X, y, np.ones_like(X))])
