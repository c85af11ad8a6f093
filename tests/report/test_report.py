"""report.html: self-contained, rebuilt from the folder alone, and saying what the files say."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from html.parser import HTMLParser
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pandas as pd
import pytest

from gpal.errors import InputError
from gpal.jobs import classify
from gpal.report import render_report
from gpal.report.cells import cell
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
    loaded = [a["src"] for _, a in page.elements if "src" in a]
    assert len(loaded) == 6 and all(url.startswith("data:image/png;base64,") for url in loaded)
    assert "@import" not in html and "url(" not in html
    assert not {"link", "iframe", "object"} & {tag for tag, _ in page.elements}
    assert {tag for tag, a in page.elements if "href" in a} == {"a"}  # fetched only when opened


def test_rebuilt_from_the_folder_alone(made, folder):
    original = (folder / "report.html").read_text()
    (folder / "report.html").unlink()
    assert render_report(folder) == folder / "report.html"
    assert (folder / "report.html").read_text() == original


@pytest.mark.parametrize(
    ("value", "shown"),
    [(4_000_000_002.0, "4000000002"), (1.0e16, "1e+16"), (0.123456, "0.1235"), (float("nan"), "–")],
)
def test_whole_numbers_are_shown_in_full(value, shown):
    """Those of a star in a survey's list among them, which come as floats."""
    assert cell(value) == shown


def test_numbers_are_those_of_the_files(made):
    html = (made / "report.html").read_text()
    metrics = json.loads((made / "metrics.json").read_text())
    nll = metrics["GPClassifier"]["nll"]
    assert f"{nll['mean']:.3f} ± {nll['se']:.3f}" in html
    for decision in metrics["decisions"]:
        assert decision["column"] in html and decision["rule"] in html
    assert "Small Catalog" in html and "photon index" not in html  # the label is in the figure
    assert metrics["provenance"]["catalog"]["sha256"] in html


def test_given_class_fractions_and_groups_are_stated(small_catalog, noisy_logistic, tmp_path):
    prior, groups = {"agn": 0.25, "psr": 0.75}, {"agn": ["bll", "bcu"], "psr": ["psr"]}
    options = {"n_splits": 3, "n_repeats": 2, "prior": prior, "classes": groups}
    classify(small_catalog, tmp_path / "r", classifier=noisy_logistic, **options)
    html = (tmp_path / "r" / "report.html").read_text()
    assert "<dt>prior</dt><dd>agn 0.25, psr 0.75</dd>" in html
    assert "<dt>groups</dt><dd>agn (bll, bcu), psr psr</dd>" in html
    assert "with the class fractions estimated or given" in html
    assert "Scores are means over the repeats" in html


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


def test_pages_of_a_candidate_are_linked_by_its_position(made):
    page = Page((made / "report.html").read_text())
    table = pd.read_csv(made / "probabilities.csv", comment="#", keep_default_na=False)
    links = [urlsplit(a["href"]) for tag, a in page.elements if tag == "a"]
    assert all(link.scheme == "https" and " " not in link.geturl() for link in links)
    simbad = [parse_qs(link.query)["Coord"][0] for link in links if "sim-coo" in link.path]
    members = new_members(table, ["bll", "psr"])
    assert simbad == [f"{ra:.6f} {dec:+.6f}" for ra, dec in zip(members["ra"], members["dec"])]


def test_carried_columns_are_shown_as_text(folder):
    """Of another's catalog: markup in a cell stays text, a mark stands beside the name."""
    metrics = json.loads((folder / "metrics.json").read_text())
    metrics["carried"] = [
        {"name": "counterpart", "kind": "text", "label": "<i>what</i>", "unit": ""},
        {"name": "flux", "kind": "number", "label": "flux", "unit": "mJy"},
        {"name": "extended", "kind": "mark", "label": "wide", "unit": ""},
    ]
    (folder / "metrics.json").write_text(json.dumps(metrics))
    lines = (folder / "probabilities.csv").read_text().splitlines()
    first = next(k for k, line in enumerate(lines) if not line.startswith("#"))
    lines[first] += ',"counterpart","flux","extended"'
    lines[first + 1 :] = [line + ',"<b>3C 1</b>",1.23456e-10,True' for line in lines[first + 1 :]]
    (folder / "probabilities.csv").write_text("\n".join(lines) + "\n")
    html = render_report(folder).read_text()
    assert "&lt;b&gt;3C 1&lt;/b&gt;" in html and "<b>3C 1" not in html
    assert "&lt;i&gt;what&lt;/i&gt;" in html and "flux [mJy]" in html and ">1.235e-10<" in html
    assert '<small class="mark">extended</small>' in html


def test_addresses_of_a_damaged_folder_are_no_programs(folder):
    metrics = json.loads((folder / "metrics.json").read_text())
    metrics["links"]["page"] = "javascript:alert(1)//{name}"
    (folder / "metrics.json").write_text(json.dumps(metrics))
    with pytest.raises(InputError, match="is no address"):
        render_report(folder)


def test_classes_that_were_not_given_and_the_plane(made, small_catalog):
    """Counts of the page against the table: two supernova remnants, and candidates near b = 0."""
    metrics = json.loads((made / "metrics.json").read_text())
    table = pd.read_csv(made / "probabilities.csv", comment="#", keep_default_na=False)
    (line,) = metrics["not_given"]
    remnants = table[table["catalog_class"] == "snr"]
    assert line["class"] == "snr" and line["n"] == len(remnants) == 2
    assert line["n_per_prediction"] == remnants["prediction"].value_counts().to_dict()
    near = table[table["candidate"] & (table["glat"].abs() < 5)]
    assert metrics["near_plane"]["n"] == len(near)
    assert metrics["near_plane"]["n_per_prediction"] == near["prediction"].value_counts().to_dict()
    html = (made / "report.html").read_text()
    assert f"{len(near)} of the 28 candidates lie within 5°" in html
    assert "<b>snr</b>" in html


def test_features_that_some_sources_lack(folder):
    """Counts of labelled sources and candidates; nothing is said where all have a value."""
    metrics = json.loads((folder / "metrics.json").read_text())
    whole = {"measured": metrics["n_labelled"], "limits": 0}
    asked = {"measured": metrics["n_targets"], "limits": 0}
    metrics["measured"] = {
        "flux": {"labelled": whole, "candidates": asked},
        "index": {"labelled": whole, "candidates": {"measured": 7, "limits": 4}},
    }
    (folder / "metrics.json").write_text(json.dumps(metrics))
    html = render_report(folder).read_text()
    assert "7 of 28 (25 %), 4 with a limit" in html
    n = metrics["n_labelled"]
    assert f'<td><code>index</code></td><td class="number">{n} of {n} (100 %)</td>' in html
    assert "<td><code>flux</code></td>" not in html
    metrics["measured"]["index"]["candidates"] = asked
    (folder / "metrics.json").write_text(json.dumps(metrics))
    assert "with a value" not in render_report(folder).read_text()


def test_where_there_are_no_positions_none_are_shown(made, small_catalog, noisy_logistic, tmp_path):
    nowhere = np.full(len(small_catalog), np.nan)
    catalog = replace(small_catalog, ra=nowhere, dec=nowhere)[small_catalog.labels != "bcu"]
    out = tmp_path / "results"
    classify(catalog, out, classifier=noisy_logistic, classes=["bll", "psr"], n_splits=2)
    html = render_report(out).read_text()
    assert "This catalog has no positions" in html and not (out / "sky_map.png").exists()
    assert ">nan<" not in html
    for words in ("Galactic plane", "RA (", "Sky map", "unassociated"):
        assert (words in html, words in (made / "report.html").read_text()) == (False, True)


def test_every_table_scrolls_by_itself(made):
    """On a narrow screen the page does not."""
    open_tags: list[str] = []

    class Tables(HTMLParser):
        def handle_starttag(self, tag, attributes):
            if tag == "table":
                assert "wide" in (open_tags[-1] or "").split()
            if tag == "div":
                open_tags.append(dict(attributes).get("class", ""))

        def handle_endtag(self, tag):
            if tag == "div":
                open_tags.pop()

    Tables().feed((made / "report.html").read_text())


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


@pytest.mark.parametrize(
    ("mean", "words"),
    [
        (-0.05, "gpal is better than logistic regression: −0.050 ± 0.010 nats of NLL."),
        (0.015, "gpal and logistic regression are not told apart here: 0.015 ± 0.010 nats"),
        (0.05, "logistic regression is better than gpal, by 0.050 ± 0.010 nats of NLL: its"),
    ],
)
def test_which_model_is_better_is_said(folder, mean, words):
    metrics = json.loads((folder / "metrics.json").read_text())
    main, reference = metrics["models"][:2]
    metrics["differences"][f"{main} - {reference}"]["nll"] = {"mean": mean, "se": 0.01}
    (folder / "metrics.json").write_text(json.dumps(metrics))
    html = render_report(folder).read_text()
    assert words.replace("gpal", main, 1) in html
