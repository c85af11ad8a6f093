"""Damaged folders of results: the page says what the files say, or `gpal report` refuses.

The truth is an independent reading of the damaged file: JSON and CSV by their own rules, numbers
that can be numbers, probabilities that sum to one, and counts that both files share.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
import sys
from collections import Counter
from html.parser import HTMLParser

import numpy as np
import pytest
from harness import Subject
from mutations import damage_bytes, damage_text

from gpal.evaluation import logistic_regression
from gpal.jobs import classify, validate
from gpal.report import render_report

CLASSES = ["bll", "psr"]
SCORES = ("nll", "error", "brier", "ece", "macro_precision", "macro_recall", "macro_f1")
SCORES += ("macro_auc",)
VALUES = (
    *(None, True, False, 0, -1, 3, 0.25, -2.5e300, 10**400, 10**5000, [], {}, [1, 2], {"mean": 1}),
    *("", "NA", "0", "nan", "<b>bold</b>", "a\nb", "\x1b[31m", "\ud800", "β", "x" * 5000, "MIXED"),
    *("bll", ["bll"], ["psr", "bll"], ["bll", "bll"], {"mean": "0.5", "se": 0.1}),
)
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|-?inf")
MARKED = (
    "# text that begins with = + - @ or ' has a ' before it, lest spreadsheets run it as a formula"
)


@pytest.fixture(scope="module")
def files(small_catalog, tmp_path_factory) -> dict[str, bytes]:
    out = tmp_path_factory.mktemp("folder") / "results"
    classify(small_catalog, out, classifier=logistic_regression(), classes=CLASSES, n_splits=2)
    return {name: (out / name).read_bytes() for name in ("metrics.json", "probabilities.csv")}


def damage_json(content: bytes, rng: np.random.Generator) -> bytes:
    """A value of the tree is another one, or is gone: the file stays JSON."""
    tree = json.loads(content)
    places = [(tree, key) for key in tree]
    for parent, key in places:  # grows on the way
        value = parent[key]
        if isinstance(value, dict | list):
            places += [
                (value, k) for k in (value if isinstance(value, dict) else range(len(value)))
            ]
    for _ in range(int(rng.integers(1, 3))):
        parent, key = places[rng.integers(len(places))]
        if rng.random() < 0.2 and isinstance(parent, dict):
            parent.pop(key, None)
        else:
            parent[key] = VALUES[rng.integers(len(VALUES))]
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    try:
        return json.dumps(tree, indent=1).encode()
    finally:
        sys.set_int_max_str_digits(before)


class Tables(HTMLParser):
    """Rows of the cells' text, table by table."""

    def __init__(self, html: str):
        super().__init__()
        self.tables: list[list[list[str]]] = []
        self.in_cell = False
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")
            self.in_cell = True

    def handle_endtag(self, tag):
        self.in_cell = self.in_cell and tag not in ("td", "th")

    def handle_data(self, data):
        if self.in_cell:
            self.tables[-1][-1][-1] += data


def page(files, name):
    """Path of a damaged file `name` -> what the page made of it and the other file shows."""

    def read(path):
        for other in files.keys() - {name}:
            (path.parent / other).write_bytes(files[other])
        html = render_report(path.parent).read_bytes().decode()
        shown = {rows[0][0]: rows[1:] for rows in Tables(html).tables}
        return {
            "scores": shown["model"],
            "classes": shown["class"],
            "members": [[source, *rest] for source, _, *rest in shown["source"]],  # without links
            "decisions": shown.get("column", []),
        }

    return read


def expected(metrics_file: bytes, csv_file: bytes):
    """The same from the two files, without gpal."""
    metrics = strict_json(metrics_file)
    try:
        return tables_of(metrics, sources(metrics, csv_file))
    except (LookupError, TypeError, AttributeError) as error:
        raise ValueError(f"not what a page shows: {error!r}") from error


def strict_json(content: bytes):
    def once(pairs):
        if len(dict(pairs)) < len(pairs):
            raise ValueError("a key twice")
        return dict(pairs)

    def finite(text):
        if not math.isfinite(float(text)):
            raise ValueError(text)
        return float(text)

    return json.loads(
        content.decode(), object_pairs_hook=once, parse_float=finite, parse_constant=finite
    )


def sources(metrics, content: bytes) -> list[dict]:
    lines = content.decode().splitlines(keepends=True)
    marked = False
    while lines and lines[0].startswith("#"):
        marked |= lines.pop(0).startswith(MARKED)
    heading, *rows = csv.reader(io.StringIO("".join(lines), newline=""), strict=True)

    def word(text):
        return text.removeprefix("'") if marked else text

    def number(text):
        if text and not NUMBER.fullmatch(text):
            raise ValueError(text)
        return float(text or "nan")

    heading = [word(name) for name in heading]
    classes = metrics["settings"]["classes"]
    kinds = {
        **dict.fromkeys(["name", "catalog_class", "prediction"], word),
        **dict.fromkeys(["ra", "dec", "glon", "glat", "entropy"], number),
        **{f"p_{name}": number for name in classes},
        "candidate": {"True": True, "False": False}.__getitem__,
    }
    if any(heading.count(name) != 1 for name in kinds):
        raise ValueError("the heading")
    if heading.count("p_bll_std") + heading.count("p_psr_std") > 0:
        raise AssertionError("this classifier has no deviations")
    if any(len(row) != len(heading) or "\0" in "".join(row) for row in rows):
        raise ValueError("a row")
    table = [{name: kind(row[heading.index(name)]) for name, kind in kinds.items()} for row in rows]
    for row in table:
        P = [row[f"p_{name}"] for name in classes]
        if not all(0 <= p <= 1 for p in P) or abs(sum(P) - 1) > 1e-4:
            raise ValueError("probabilities")
        if row["prediction"] not in [*classes, "MIXED"]:
            raise ValueError("prediction")
    candidates = [row for row in table if row["candidate"]]
    if [len(table), len(candidates)] != [metrics["n_sources"], metrics["n_targets"]]:
        raise ValueError("counts")
    if Counter(row["prediction"] for row in candidates) != metrics["n_targets_per_prediction"]:
        raise ValueError("predictions")
    return table


def tables_of(metrics, table):
    def pm(value):
        return f"{round(value['mean'], 3) + 0.0:.3f} ± {value['se']:.3f}".replace("-", "−")

    classes, main = metrics["settings"]["classes"], metrics["models"][0]
    scores = [[m, *(pm(metrics[m][key]) for key in SCORES)] for m in metrics["models"]]
    scores += [
        [pair.replace(" - ", " − "), *(pm(difference[key]) for key in SCORES)]
        for pair, difference in metrics["differences"].items()
    ]
    of_classes = [
        [
            name,
            str(metrics["n_labelled_per_class"][name]),
            *(
                pm(metrics[main]["per_class"][name][key])
                for key in ("precision", "recall", "f1", "auc")
            ),
        ]
        for name in classes
    ]
    ranked = []
    for c, name in enumerate(classes):
        own = [row for row in table if row["candidate"] and row["prediction"] == name]
        own.sort(key=lambda row, name=name: -row[f"p_{name}"])
        ranked += [(place, c, row) for place, row in enumerate(own[:100])]
    members = [
        [
            row["name"],
            row["prediction"],
            "",
            *(f"{row[f'p_{name}']:.3f}" for name in classes),
            f"{row['entropy']:.2f}",
            row["catalog_class"] or "–",
            f"{row['ra']:.4f}",
            f"{row['dec']:+.4f}",
            f"{row['glon']:.2f}",
            f"{row['glat']:+.2f}",
        ]
        for _, _, row in sorted(ranked, key=lambda item: item[:2])
    ]
    decisions = [[d["column"], str(d["count"]), d["rule"]] for d in metrics["decisions"]]
    return {"scores": scores, "classes": of_classes, "members": members, "decisions": decisions}


def test_the_truth_is_that_of_the_whole_folder(files, tmp_path):
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    shown = page(files, "metrics.json")(tmp_path / "metrics.json")
    assert shown == expected(files["metrics.json"], files["probabilities.csv"])
    assert len(shown["members"]) > 10 and len(shown["scores"]) == 5 and shown["decisions"]


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("metrics.json", damage_text),
        ("metrics.json", damage_bytes),
        ("metrics.json", damage_json),
        ("probabilities.csv", damage_text),
        ("probabilities.csv", damage_bytes),
    ],
)
def test_results(files, withstands, name, damage):
    def truth(content):
        return expected(*(content if key == name else whole for key, whole in files.items()))

    withstands(Subject(name, files[name], page(files, name), damage, truth))


@pytest.mark.slow
def test_validation(two_releases, withstands, tmp_path_factory):
    """Of its many tables none is read twice here: a page comes of it, or one line."""
    out = tmp_path_factory.mktemp("folder") / "validation"
    validate(*two_releases, out, classifier=logistic_regression(), without=["beta"], n_seeds=1)

    def read(path):
        assert b"</html>" in render_report(path.parent).read_bytes()

    withstands(Subject("metrics.json", (out / "metrics.json").read_bytes(), read, damage_json))
