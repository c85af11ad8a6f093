"""workflows/: two checkouts that are compared, and tables of the benchmarks from made cells."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest


def test_checkouts_without_a_run_are_not_compared(script, monkeypatch, capsys):
    compare = script(".", "compare_checkouts")
    monkeypatch.setattr(sys, "argv", ["compare", ".", ".", "--quick", "--only", "sparce"])
    with pytest.raises(SystemExit) as left:
        compare.main()
    assert left.value.code == 2 and "no run has 'sparce'" in capsys.readouterr().err


def test_a_column_that_one_checkout_lacks_is_a_difference(script):
    compare = script(".", "compare_checkouts")
    few, more = {"p": np.ones(3)}, {"p": np.ones(3), "q": np.ones(3)}
    for old, new in ((few, more), (more, few)):
        assert compare.difference(old, new) == (np.inf, "q is in one of them alone")
    assert compare.difference(few, {"p": np.ones(3)})[0] == 0.0
    assert compare.difference(few, {"p": np.array([1.0, 1.0, 1.5])}) == (0.5, "p")


def test_results_of_both_checkouts_are_kept(script, monkeypatch, tmp_path):
    compare = script(".", "compare_checkouts")
    made = []

    def run(checkout, folder, names):
        folder.mkdir(parents=True, exist_ok=True)
        made.append(sorted(path.name for path in folder.iterdir()))
        np.savez(folder / "full.npz", probabilities=np.ones(2))

    monkeypatch.setattr(compare, "run", run)
    monkeypatch.setattr(compare, "FITS", {"full": ()})
    asked = ["compare", ".", ".", "--quick", "--keep", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", asked)
    for _ in range(2):
        with pytest.raises(SystemExit) as left:
            compare.main()
        assert left.value.code == 0
    # The second time the old one's are taken from there, the new one's made again.
    assert made == [[], [], ["full.npz"], []]
    assert sorted(str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*.npz")) == [
        str(Path("new", "full.npz")),
        str(Path("old", "full.npz")),
    ]


def test_a_fit_that_had_one_core_of_two_counts_with_one(script):
    """Made rows: 10⁶ sources in two passes of 60 s, the cores busy for half of the time: 30 µs."""
    growth = script("benchmarks", "growth_table")
    fit = {"rows": 10**6, "noise": "none", "points": 100, "classes": 3, "cores": 2}
    fit |= {"wall seconds": 90.0, "CPU seconds": 90.0, "date": "d", "sweeps over all": 2}
    fit |= {"seconds of these": 60.0, "seconds of solving": 2.0}
    small, noisy = {**fit, "rows": 1000}, {**fit, "rows": 10**8, "noise": "first_order"}
    said, _, _, _, first, *_ = growth.projection([fit, small, noisy])
    assert (
        "1,000,000 sources" in said and "τ = 30 µs" in said and "a sample of 28 s, 1.00 s" in said
    )
    # 28 s, and two passes of 10⁷ × 30 µs / 16 cores, 1 s to solve, .24 MB to send
    assert first.startswith("| 10⁷ | 1.1 |")
    two = list(growth.projection([{**fit, "CPU seconds": 200.0}]))
    assert "τ = 60 µs" in two[0]  # no more than it has


def test_the_page_has_the_projection_of_its_results(script):
    growth = script("benchmarks", "growth_table")
    text = growth.PAGE.read_text().split("<!-- begin: projection -->\n\n")[1]
    assert text.split("\n\n<!-- end:")[0] == "\n".join(growth.projection(growth.rows()))


def test_ranks_are_those_of_the_means_that_are_shown(script, monkeypatch):
    """Made cells: on the split that all have boosting is ahead, over its own two it is not."""
    table = script("benchmarks", "reported_table")
    cells = [
        ("wine", "default", 0, 0.5),
        ("wine", "default", 1, 0.1),
        ("wine", "boosting", 0, 0.4),
        ("wine", "boosting", 1, 0.6),
        ("wine", "gpc", 0, 0.9),
    ]
    frame = pd.DataFrame(cells, columns=["data_set", "method", "seed", "nll"])
    monkeypatch.setattr(table, "frame_of", lambda _: frame)
    *_, last = table.reported()
    assert last == "| average rank of these means, 1 sets | 1.00 | 2.00 | 3.00 |"


def test_fewer_splits_than_the_first_settings_are_told(script):
    table = script("benchmarks", "reported_table")
    assert table.gain(pd.Series([0.1, 0.3]), 2) == "+0.200"
    assert table.gain(pd.Series([-0.1]), 2) == "-0.100 (1)"
    assert table.gain(pd.Series([], dtype=float), 2) == "–"


def test_conditions_are_those_of_every_cell(script):
    cells = script("benchmarks", "cells")
    made = [{"numpy": "2.1", "torch": None}, {"numpy": "1.26"}, {"numpy": "2.1"}]
    assert cells.versions(made, ("numpy", "torch")) == "numpy 1.26 and 2.1"
    records = [{"processor": "B"}, {"processor": "A"}, {}]
    assert cells.processors(records) == "A, B, not kept for 1 of 3 cells"
    assert cells.processors(records[:2]) == "A, B" and cells.processor()
