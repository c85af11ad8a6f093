"""report.html: self-contained, rebuilt from the folder alone, and saying what the files say."""

from __future__ import annotations

import json
import shutil
from html.parser import HTMLParser

import pandas as pd
import pytest

from gpal.errors import InputError
from gpal.jobs import classify
from gpal.report import render_report
from gpal.report.render import new_members


@pytest.fixture(scope="module")
def made(small_catalog, noisy_logistic, tmp_path_factory):
    out = tmp_path_factory.mktemp("report") / "results"
    classify(small_catalog, out, classifier=noisy_logistic, classes=["bll", "psr"], n_splits=3)
    return out


@pytest.fixture
def folder(made, tmp_path):
    return shutil.copytree(made, tmp_path / "results")


class Page(HTMLParser):
    """The page's elements with their attributes, and the text of its table cells by row."""

    def __init__(self, html: str):
        super().__init__()
        self.elements: list[tuple[str, dict]] = []
        self.open: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in ("meta", "img", "input"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, f"</{tag}> closes nothing"


def test_page_is_well_formed_and_self_contained(made):
    html = (made / "report.html").read_text()
    page = Page(html)
    assert page.open == []
    loaded = [a[key] for _, a in page.elements for key in ("src", "href") if key in a]
    assert len(loaded) == 4 and all(url.startswith("data:image/png;base64,") for url in loaded)
    assert "@import" not in html and "url(" not in html
    assert not {"link", "iframe", "object"} & {tag for tag, _ in page.elements}


def test_rebuilt_from_the_folder_alone(made, folder):
    original = (folder / "report.html").read_text()
    (folder / "report.html").unlink()
    assert render_report(folder) == folder / "report.html"
    assert (folder / "report.html").read_text() == original


def test_numbers_are_those_of_the_files(made):
    html = (made / "report.html").read_text()
    metrics = json.loads((made / "metrics.json").read_text())
    nll = metrics["GPClassifier"]["nll"]
    assert f"{nll['mean']:.3f} ± {nll['se']:.3f}" in html
    for decision in metrics["decisions"]:
        assert decision["column"] in html and decision["rule"] in html
    assert "Small Catalog" in html and "photon index" not in html  # the label is in the figure
    assert metrics["provenance"]["catalog"]["sha256"] in html


def test_table_lists_the_most_probable_candidates_of_each_class(made):
    table = pd.read_csv(made / "probabilities.csv", comment="#", keep_default_na=False)
    members = new_members(table, ["bll", "psr"], number=3)
    for name in ("bll", "psr"):
        of_class = table[table["candidate"] & (table["prediction"] == name)]
        best = of_class.sort_values(f"p_{name}", ascending=False)["name"][:3]
        assert list(members["name"][members["prediction"] == name]) == list(best)
    page = Page((made / "report.html").read_text())
    rows = [a for tag, a in page.elements if tag == "tr" and "data-class" in a]
    expected = table["candidate"] & (table["prediction"] != "MIXED")
    assert len(rows) == expected.sum() > 10


def test_text_of_a_catalog_cannot_break_the_page(folder):
    path = folder / "probabilities.csv"
    table = pd.read_csv(path, comment="#", keep_default_na=False)
    listed = new_members(table, ["bll", "psr"])["name"].iloc[0]
    path.write_text(path.read_text().replace(listed, "<script>alert(1)</script>"))
    html = render_report(folder).read_text()
    assert "<script>alert" not in html and "&lt;script&gt;alert" in html


def test_works_without_the_figures(folder):
    for png in folder.glob("*.png"):
        png.unlink()
    render_report(folder)
    assert "<img" not in (folder / "report.html").read_text()


def test_unusable_folders_are_refused_in_one_line(folder, tmp_path):
    with pytest.raises(InputError, match=r"no 'metrics.json'"):
        render_report(tmp_path / "nowhere")
    for content in ("{}", '{"kind": "validation"}', '{"settings": {"classes": ["bll", "psr"]}}'):
        (folder / "metrics.json").write_text(content)
        with pytest.raises(InputError, match=r"lack what the report shows .*; make") as caught:
            render_report(folder)
        assert "\n" not in str(caught.value)
    (folder / "metrics.json").write_text("3")
    with pytest.raises(InputError, match=r"cannot read .*metrics.json"):
        render_report(folder)
    (folder / "metrics.json").write_text("{")
    with pytest.raises(InputError, match=r"cannot read .*metrics.json") as caught:
        render_report(folder)
    assert "\n" not in str(caught.value)
