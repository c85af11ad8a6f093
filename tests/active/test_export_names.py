"""Names through the exports of a campaign: a format holds them as they are, or says it cannot."""

from __future__ import annotations

import csv
import re
from dataclasses import replace

import numpy as np
import pytest
from astropy.table import Table
from hypothesis import given, settings
from hypothesis import strategies as st

from gpal.active.campaign import Campaign, Given
from gpal.active.campaign.export import export_history, export_labels, export_targets
from gpal.active.campaign.source_files import read_labels
from gpal.catalog import load_catalog
from gpal.errors import InputError
from gpal.files.csv import read_csv

STRANGE = [
    *(
        "#1",
        "=1+1",
        "+2",
        "-x",
        "@y",
        "'q",
        "a}b",
        'a{b"',
        "a'}",
        "back\\slash",
        "\\u03b2",
        "β Cas",
    ),
    *("a,b", 'say "no"', "<b>&amp;", "]]>", "text={x}", "NA", "001", "1E5", "True", "𝛾", "a;b # c"),
]
NAMES = st.lists(
    st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=30)
    | st.sampled_from(STRANGE),
    min_size=30,
    max_size=30,
    unique_by=str.casefold,
)
REGION = re.compile(
    r"""(?:ellipse|circle)\([^)]*\) # text=(?:\{([^{}\n]*)\}|"([^"\n]*)"|'([^'\n]*)')"""
)


def started(catalog, names, folder, classifier):
    few = catalog[np.flatnonzero(catalog.is_target | (catalog.y != ""))]
    ids = [*names, *(f"S{k}" for k in range(len(few) - len(names)))]
    order = np.argsort(few.y != "", kind="stable")  # the names go to those that are asked for first
    few = few[order]
    measurements = replace(few.measurements, ids=np.array(ids))
    return Campaign.start(replace(few, measurements=measurements), folder, classifier=classifier)


def in_region(path) -> list[str]:
    """Texts of a region file by the rules of DS9, which has three kinds of marks."""
    lines = path.read_text("utf-8").split("\n")
    shapes = [line for line in lines if line.startswith(("ellipse", "circle"))]
    assert len(lines) == len(shapes) + 5 and lines[-1] == ""
    found = [REGION.fullmatch(line) for line in shapes]
    assert all(found)
    return [next(text for text in match.groups() if text is not None) for match in found]


def words(table, name):
    return [str(word) for word in np.ma.asarray(table[name]).filled("")]


@settings(max_examples=15, deadline=None)
@given(NAMES)
def test_names_survive_every_export(small_catalog, noisy_logistic, tmp_path_factory, names):
    folder = tmp_path_factory.mktemp("export")
    with started(small_catalog, names, folder / "c", noisy_logistic) as campaign:
        campaign.refit()
        expected = [target.name for target in campaign.ranking(campaign.scores())]
        assert set(expected) & set(names)
        export_targets(campaign, folder / "t.csv")
        assert read_csv(folder / "t.csv", {"name": str})["name"].tolist() == expected
        with open(folder / "t.csv", encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(line for line in file if not line.startswith("# ")))
        assert [row["name"].removeprefix("'") for row in rows] == expected
        export_targets(campaign, folder / "t.fits")
        fits = Table.read(folder / "t.fits")["name"].tolist()
        cells = [cell if isinstance(cell, bytes) else cell.encode() for cell in fits]
        assert [cell.decode("unicode_escape") for cell in cells] == expected
        export_targets(campaign, folder / "t.vot")
        assert words(Table.read(folder / "t.vot"), "name") == expected
        try:
            export_targets(campaign, folder / "t.reg")
        except InputError as error:
            assert "a region file cannot hold" in str(error) and str(error).isprintable()
            assert any(all(mark in name for mark in "\"'") for name in names)
        else:
            texts = [text.split(" ", 1)[1] for text in in_region(folder / "t.reg")]
            assert texts == expected


@pytest.fixture
def campaign(small_catalog, noisy_logistic, tmp_path):
    with started(small_catalog, STRANGE, tmp_path / "c", noisy_logistic) as campaign:
        yield campaign


def test_labels_and_history_say_the_same_in_every_format(campaign, tmp_path, monkeypatch):
    notes = {"#1": "=cmd|' /C calc'!A0", "=1+1": "clear\nnight", "β Cas": "-1"}
    for name in notes:
        campaign.label([Given(int(campaign.table.ids[campaign.table.row(name)]), "bll", "@eve")])
    events = campaign.store.history()  # of an earlier version, which took any note
    events[1:] = [replace(event, note=note) for event, note in zip(events[1:], notes.values())]
    monkeypatch.setattr(campaign.store, "history", lambda: events)
    export_labels(campaign, tmp_path / "l.csv")
    found = read_csv(tmp_path / "l.csv", {"name": str, "label": str, "who": str})
    assert found["name"].tolist() == list(notes) and set(found["who"]) == {"@eve"}
    export_history(campaign, tmp_path / "h.csv")
    history = read_csv(tmp_path / "h.csv", {"name": str, "note": str, "number": float})
    assert history["note"].tolist()[1:] == list(notes.values())
    text = (tmp_path / "h.csv").read_text()
    assert "\"'=cmd|" in text and '"\'@eve"' in text
    export_history(campaign, tmp_path / "h.fits")
    cells = Table.read(tmp_path / "h.fits")
    found = [cell.encode().decode("unicode_escape") for cell in words(cells, "note")]
    assert found[1:] == list(notes.values())
    with pytest.raises(InputError, match=r"column 'note', row 2: .*write .fits"):
        export_history(campaign, tmp_path / "h.vot")
    assert not (tmp_path / "h.vot").exists()


def test_an_export_filled_in_is_a_file_of_labels(campaign, tmp_path):
    campaign.refit()
    export_targets(campaign, tmp_path / "t.csv")
    lines = (tmp_path / "t.csv").read_text().splitlines()
    start = next(k for k, line in enumerate(lines) if not line.startswith("# "))
    rows = [f'{line},"bll"' for line in lines[start + 1 :]]
    filled = "\n".join([*lines[:start], f'{lines[start]},"label"', *rows])
    (tmp_path / "night.csv").write_text(filled)
    given = read_labels(tmp_path / "night.csv", campaign.table)
    targets = campaign.ranking(campaign.scores())
    assert [item.source for item in given] == [campaign.table.ids[t.row] for t in targets]
    mapping = {"id": "name", "features": {"score": {"column": "score", "error": "none"}}}
    catalog = load_catalog(tmp_path / "t.csv", mapping=mapping)
    assert catalog.names.tolist() == [t.name for t in targets]


def test_a_name_that_no_region_can_hold_is_refused(small_catalog, noisy_logistic, tmp_path):
    with started(small_catalog, ["a}b\"c'd"], tmp_path / "c", noisy_logistic) as campaign:
        campaign.refit()
        with pytest.raises(InputError, match="a region file cannot hold the name"):
            export_targets(campaign, tmp_path / "t.reg")
    assert not (tmp_path / "t.reg").exists()
