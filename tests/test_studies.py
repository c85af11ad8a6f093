"""workflows/studies.py: cells that are not measured again, tables that come out as they stand."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

ROOT = Path(__file__).parents[1]
WORKFLOWS = ROOT / "workflows"


def square(cell):
    """A measurement; of the cell 3 none."""
    if cell[1] == 3:
        raise ValueError("three")
    return {"square": cell[1] ** 2, "threads": os.environ["TF_NUM_INTRAOP_THREADS"]}


def test_a_line_that_was_cut_off_is_left_out_and_written_over(script, tmp_path):
    studies = script(".", "studies")
    path = tmp_path / "folder" / "cells.jsonl"
    assert studies.read(path) == []
    studies.append(path, {"a": 1})
    with path.open("a") as file:
        file.write('{"a": {"b": 2}')
    assert studies.read(path) == [{"a": 1}]
    studies.append(path, {"a": 3})
    assert path.read_text() == '{"a": 1}\n{"a": 3}\n'


def test_what_is_there_is_not_measured_again(script, tmp_path, capfd):
    studies = script(".", "studies")
    path = tmp_path / "cells.jsonl"
    studies.append(path, {"name": "x", "k": 2, "square": "as it was"})
    cells = [("x", 1), ("x", 2), ("x", 3), ("x", 1)]
    assert studies.run(path, ("name", "k"), cells, square) == 1
    assert "ValueError('three')" in capfd.readouterr().err
    table = studies.load(path, ("name", "k"))
    assert dict(table.square) == {("x", 1): 1, ("x", 2): "as it was"}
    assert table.threads["x", 1] == "1"
    assert len(path.read_text().splitlines()) == 2
    assert studies.run(path, ("name", "k"), cells[:2], None) == 0


def test_tables_take_the_place_between_their_markers(script, tmp_path):
    studies = script(".", "studies")
    page = tmp_path / "page.md"
    text = "a\n<!-- begin: one -->\nold\n<!-- end: one -->\nb\n<!-- begin: two --><!-- end: two -->"
    page.write_text(text)
    rows = [["x", studies.mean_error([1, 2, 3], 1)], ["y", studies.mean_error([])]]
    studies.put_tables(page, [("one", studies.grid(["", "number"], rows))])
    table = "|  | number |\n|---|---|\n| x | 2.0 ± 0.6 |\n| y | – |"
    assert page.read_text() == text.replace("\nold\n", f"\n\n{table}\n\n")
    with pytest.raises(ValueError, match="no place for 'three'"):
        studies.put_tables(page, [("two", ["new"]), ("three", ["lost"])])
    assert "new" not in page.read_text()


@pytest.mark.parametrize(
    "values, same, above",
    [
        ([1.0, 1.1, 0.9], "contradicted", "reproduced"),
        ([-1.0, -1.1, -0.9], "beaten", "contradicted"),
        ([-1.0, 1.1, 0.1], "reproduced", "not told apart"),
        ([1.0, 1.0], "too few", "too few"),
    ],
)
def test_verdicts_are_by_two_standard_errors(script, values, same, above):
    studies = script(".", "studies")
    assert studies.verdict(values, "same") == same
    assert studies.verdict(np.array(values), "above") == above


def test_cells_of_before_days_were_kept_are_counted(script):
    studies = script(".", "studies")
    of_now = {"gpal": "b", "version": "2", "date": "2026-02-01"}
    cells = [of_now, of_now | {"gpal": "a", "date": "2026-01-01"}, {"gpal": "c"}, {"nll": 1.0}]
    assert studies.made(pd.DataFrame(cells), ", one thread") == (
        "Measured 2026-01-01 to 2026-02-01 with gpal 2 (model code a, b), one thread."
        " Day and version unknown for 2 of 4 cells (model code c)."
    )
    unknown = "Day and version unknown for 1 of 1 cells (model code unknown)."
    assert studies.made(pd.DataFrame(cells[3:])) == unknown


def on_page(page: Path, name: str) -> str:
    return page.read_text().split(f"<!-- begin: {name} -->\n\n")[1].split("\n\n<!-- end:")[0]


def test_pages_are_what_their_scripts_make_of_the_results(script, monkeypatch):
    tables = script("paper_001", "tables")
    monkeypatch.setattr(tables, "draw_toy", lambda results: None)
    for name, lines in tables.sections():
        assert "\n".join(lines) == on_page(tables.PAGE, name), name
    off, injected = script("paper_001", "off_paper"), script("paper_001", "injected")
    about, table = injected.largest(injected.RESULTS, injected.KEY, injected.SIZES)
    made = {"given": off.claims(), "off": off.off(), "size": [about]}
    made |= {name: getattr(injected, name)(table) for name in ("claims", "learned", "epoch")}
    for name, lines in {**made, "scores": injected.scores(table)}.items():
        assert "\n".join(lines) == on_page(injected.PAGE, name), name
    reference = script("paper_004", "reference")
    found = reference.tables(reference.load(reference.RESULTS, reference.KEY))
    assert "\n".join(found) == on_page(reference.PAGE, "against draws")


def test_results_are_whole_lines():
    for path in WORKFLOWS.glob("*/results/*.jsonl"):
        assert all(isinstance(json.loads(line), dict) for line in path.read_text().splitlines())
