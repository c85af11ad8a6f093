"""Numbers of candidates of a class: the draws behind them, and what a classification states."""

from __future__ import annotations

import numpy as np
import pytest

from gpal import GPClassifier, load_catalog
from gpal.cli.commands.classify import _summary
from gpal.evaluation.uncertain_fractions import fraction_ratios
from gpal.files.json import read_json
from gpal.jobs import class_counts as job
from gpal.jobs import classify
from gpal.metrics import class_counts, expected_nll
from gpal.model.latent import square_root


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 2))
    y = (X[:, 0] + rng.normal(size=60) > 0).astype(int)
    options = {"input_noise": "first_order", "population": "flat", "kernel": "rbf"}
    model = GPClassifier(**options, max_rounds=1, random_state=0)
    return model.fit(X, y, X_err=np.full(X.shape, 0.2))


def test_draws_are_of_the_predicted_probabilities_and_joint(fitted):
    x, noisy = np.array([[0.3, -0.2]] * 2 + [[1.0, 0.5]]), np.full((3, 2), 0.2)
    noisy[0] = noisy[1] = 0.0  # the same source twice, known exactly
    noisy[2, 1], x[2, 1] = np.inf, np.nan  # and one that was not measured in full
    p = fitted.sample_proba(x, noisy, num_samples=4000, seed=2)
    assert p.shape == (4000, 3, 2)
    np.testing.assert_allclose(p.sum(axis=2), 1)
    expected = fitted.predict_proba(x, noisy)
    error = p.std(axis=0) / np.sqrt(4000)
    assert (np.abs(p.mean(axis=0) - expected) < 4 * error + 0.01).all()
    np.testing.assert_allclose(p[:, 0], p[:, 1], atol=1e-3)  # of one function, not of two
    again = fitted.sample_proba(x, noisy, num_samples=4000, seed=2)
    np.testing.assert_array_equal(p, again)


def test_draws_have_the_weights_of_the_prior(fitted):
    x, err = np.array([[0.1, 0.0]]), np.full((1, 2), 0.1)
    plain = fitted.sample_proba(x, err, num_samples=5, seed=0)
    ratio = np.array([0.2, 0.8]) / fitted.class_fractions_
    fitted.prior = {0: 0.2, 1: 0.8}
    try:
        weighted = fitted.sample_proba(x, err, num_samples=5, seed=0)
    finally:
        fitted.prior = "train"
    expected = plain * ratio / (plain * ratio).sum(axis=2, keepdims=True)
    np.testing.assert_allclose(weighted, expected)


def test_the_root_of_a_large_covariance():
    x = np.linspace(0, 50, 1200)
    covariance = np.exp(-0.5 * (x[:, None] - x) ** 2)  # of rank far below 1200
    root = square_root(covariance)
    np.testing.assert_allclose(root @ root.T, covariance, atol=1.1e-5)
    assert not root[0, 1:].any()  # Cholesky's
    for shift in (5e-5, 1e-3):  # below singular: with a larger jitter, or of eigenvalues
        wrong = covariance - shift * np.eye(1200)
        root = square_root(wrong)
        np.testing.assert_allclose(root @ root.T, wrong, atol=1.1 * shift + 1e-4)


def stated(result):
    """Probabilities of the candidates, as the table has them."""
    table = result.table[np.asarray(result.table["candidate"])]
    return table, np.column_stack([table["p_bll"], table["p_psr"]])


def test_counts_of_a_classifier_without_a_posterior(small_catalog, noisy_logistic, tmp_path):
    result = classify(small_catalog, tmp_path / "out", classifier=noisy_logistic, n_splits=2)
    counts = read_json(tmp_path / "out" / "metrics.json")["counts"]
    assert (counts["holds"], counts["samples"]) == (["sampling"], 1)
    table, P = stated(result)
    near = np.abs(np.asarray(table["glat"])) < 10
    blank = np.asarray(table["catalog_class"]) == ""
    parts = {
        "all candidates": np.full(len(P), True),
        **{"|b| < 10 deg": near, "|b| >= 10 deg": ~near},
        **{"bcu": ~blank, "unassociated": blank},
    }
    assert counts["sets"].keys() == parts.keys()
    for name, rows in parts.items():
        part = counts["sets"][name]
        assert part["n"] == rows.sum()
        assert part["classes"] == class_counts(P[rows]).as_dict(["bll", "psr"])
        assert part["classes"]["psr"]["mean"] == pytest.approx(P[rows, 1].sum())
    page = (tmp_path / "out" / "report.html").read_text()
    of = counts["sets"]["all candidates"]["classes"]["psr"]
    assert "How many of each class" in page and f"{of['lower']} to {of['upper']}" in page
    lines = _summary(result.metrics, result.folder).splitlines()
    [heading] = [i for i, line in enumerate(lines) if line.startswith("expected numbers, 90 %")]
    assert lines[heading].endswith("interval of sampling")
    assert lines[heading + 1].startswith("all candidates")
    assert f"{of['mean']:.0f} ({of['lower']} to {of['upper']}) psr" in lines[heading + 1]
    assert [line.split()[:2] for line in lines[heading + 2 : heading + 4]] == [
        ["|b|", "<"],
        ["|b|", ">="],
    ]


@pytest.mark.parametrize("prior", ["estimated", {"bll": 0.3, "psr": 0.7}])
def test_counts_under_other_class_fractions(two_releases, noisy_logistic, tmp_path, prior):
    result = classify(
        two_releases[0], tmp_path / "out", classifier=noisy_logistic, n_splits=2, prior=prior
    )
    counts, (_, P) = result.metrics["counts"], stated(result)
    of = counts["sets"]["all candidates"]["classes"]["psr"]
    if prior == "estimated":
        assert counts["holds"] == ["sampling", "class fractions"]
        assert of["mean"] == pytest.approx(P[:, 1].sum(), rel=0.1)
        assert of["shared_sd"] > of["sampling_sd"]  # fractions of 120 sources are little known
        assert counts["sets"]["bcu"]["classes"]["psr"]["mean"] < 10
    else:
        assert counts["holds"] == ["sampling"]
        assert of["mean"] == pytest.approx(P[:, 1].sum()) and of["shared_sd"] == 0


@pytest.mark.parametrize("asked", [None, [0.5, 0.4, 0.1]])
def test_the_nll_to_expect_is_of_the_stated_probabilities(noisy_logistic, asked):
    """Those of the fractions that are asked for, not their mean over fractions that may be."""
    catalog = load_catalog("4fgl-dr4").with_exhaustive_classes()[::8]
    names, sizes = np.unique(catalog.labelled().y, return_counts=True)
    train = dict(zip(names.tolist(), sizes.tolist(), strict=True))
    n, of_training = len(catalog), sizes / sizes.sum()
    P = np.random.default_rng(0).dirichlet([2.0, 0.5, 0.5], size=n)
    fractions = np.broadcast_to(of_training if asked is None else asked, (n, 3))
    counts = job.candidate_counts(noisy_logistic, catalog, P, train, fractions, False, 0)
    rows, weight = catalog.is_target, fractions[0] / of_training
    P = P[rows] * weight / (P[rows] * weight).sum(axis=1, keepdims=True)
    ratios = fraction_ratios(3, num_samples=job.SAMPLES, seed=0)
    samples = np.stack([P * each / (P * each).sum(axis=1, keepdims=True) for each in ratios])
    found = counts["sets"]["all candidates"]["nll"]
    assert found == pytest.approx(expected_nll(samples, P))
    assert found["mean"] > expected_nll(samples)["mean"]


@pytest.mark.slow
def test_counts_of_a_gaussian_process(small_catalog, brief_fits, tmp_path, monkeypatch):
    options = {"classifier": GPClassifier(kernel="rbf", max_rounds=1), "n_splits": 2}
    result = classify(small_catalog, tmp_path / "out", **options)
    counts, (_, P) = result.metrics["counts"], stated(result)
    assert counts["holds"] == ["sampling", "model"] and counts["samples"] == job.SAMPLES
    of = counts["sets"]["all candidates"]["classes"]["psr"]
    error = of["shared_sd"] / np.sqrt(job.SAMPLES)
    assert of["mean"] == pytest.approx(P[:, 1].sum(), abs=4 * error + 0.2)
    assert of["shared_sd"] > 0
    # The names of a list, by hand.
    asked = small_catalog[small_catalog.is_target]
    drawn = result.classifier.sample_proba(asked.measurements, num_samples=job.SAMPLES, seed=0)
    assert class_counts(drawn).as_dict(["bll", "psr"])["psr"] == of
    # More candidates than are drawn at once: the model is not held, and it says so.
    monkeypatch.setattr(job, "MOST", 5)
    few = job.candidate_counts(
        result.classifier,
        small_catalog,
        np.full((90, 2), 0.5),
        {"bll": 30, "psr": 30},
        np.full((90, 2), 0.5),
        False,
        0,
    )
    assert few["holds"] == ["sampling"]
