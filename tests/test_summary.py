"""What results show of themselves: few lines, the numbers of their files, no page broken."""

from __future__ import annotations

from html.parser import HTMLParser

import gpflow
import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from gpal import GPClassifier, Measurements, classify, validate
from gpal.summary import Summary, counted, estimated

RECOMMENDED = "by origin"


class Cells(HTMLParser):
    """The texts of a page, and the tags that it opened and did not close."""

    def __init__(self, html: str):
        super().__init__()
        self.texts: list[str] = []
        self.open: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def test_columns_are_aligned_and_names_of_others_are_harmless():
    name = "<b>x\x1b[2J\n"
    summary = Summary("T", {"a": name, "longer": "1"}, ["model", "nll"], [[name, "0.3"]])
    title, first, second, blank, heading, row = repr(summary).splitlines()
    assert title == "T" and blank == "" and first.index("<b>") == second.index("1")
    assert heading.index("nll") == row.index("0.3")
    assert "\x1b" not in repr(summary)
    page = Cells(summary._repr_html_())
    assert not page.open and "<b>x\\x1b[2J\\n" in page.texts and "0.3" in page.texts


def test_numbers_in_words():
    assert counted({"bll": 1490, "psr": 3}) == "bll 1,490, psr 3" and counted({}) == "none"
    assert estimated(-0.0001, 0.02) == "0.000 ± 0.020" and estimated(0.25, None, 1) == "0.2"


def test_a_classification_shows_its_metrics(small_catalog, noisy_logistic, tmp_path):
    result = classify(small_catalog, tmp_path / "out", classifier=noisy_logistic, n_splits=3)
    for shown in (result, result.cross_validation):
        assert len(repr(shown).splitlines()) < 12 and not Cells(shown._repr_html_()).open
        for model in result.metrics["models"]:
            nll = result.metrics[model]["nll"]
            row = next(line for line in repr(shown).splitlines() if line.strip().startswith(model))
            assert row.removeprefix(f"  {model}").split()[:3] == [
                f"{nll['mean']:.3f}",
                "±",
                f"{nll['se']:.3f}",
            ]
    assert repr(result).splitlines()[0] == "Classification of Small Catalog"
    assert "  60: bll 30, psr 30" in repr(result)
    candidates = counted(result.metrics["n_targets_per_prediction"])
    assert f"28: {candidates}" in repr(result)


def test_a_validation_shows_its_metrics(two_releases, noisy_logistic, tmp_path):
    result = validate(*two_releases, tmp_path / "out", classifier=noisy_logistic, n_seeds=1)
    assert len(repr(result).splitlines()) < 14 and not Cells(result._repr_html_()).open
    for model in result.metrics["models"]:
        nll = result.metrics["variants"]["all features"][RECOMMENDED][model]["nll"]
        assert f"{nll['mean']:.3f} ± {nll['se']:.3f}" in repr(result)
    main = result.variants["all features"]
    assert f"{result.metrics['n_examined']} examined" in repr(main) and len(repr(main)) < 200


def test_a_fitted_estimator_has_a_summary():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(2, 5, 40), rng.normal(size=40)])
    sources = Measurements(X, 0.1, ("magnitude", "colour"), ("mag", ""))
    y = np.where(X[:, 1] > 0, "star", "quasar")
    classifier = GPClassifier("softmax", input_noise="first_order", kernel="rbf", max_rounds=0)
    with pytest.raises(NotFittedError):
        classifier.summary()
    summary = classifier.fit(sources, y).summary()
    assert summary.facts["error bars"] == "first_order" and summary.facts["likelihood"] == "softmax"
    share = 100 * np.mean(y == "star")
    assert f"star {share:.1f} %" in summary.facts["classes"]
    magnitude = dict(zip(summary.columns, summary.rows[0]))
    assert magnitude["feature"] == "magnitude" and magnitude["unit"] == "mag"
    assert magnitude["from"] == f"{X[:, 0].min():.4g}" and magnitude["to"] == f"{X[:, 0].max():.4g}"
    [kernel] = classifier.settings_["kernels"]
    scale = next(v for k, v in kernel["parameters"].items() if k.endswith("lengthscales"))[0]
    assert magnitude["lengthscale"] == f"{scale * X[:, 0].std():.3g}"
    turned = gpflow.kernels.RBF(lengthscales=[1.0, 5.0], active_dims=[1, 0])
    classifier = GPClassifier("softmax", kernel=turned, max_rounds=0).fit(sources, y)
    shown = [row[summary.columns.index("lengthscale")] for row in classifier.summary().rows]
    assert shown == [f"{k * w:.3g}" for k, w in zip((5.0, 1.0), classifier.width_)]
    assert repr(classifier).startswith("GPClassifier(")  # scikit-learn's own
