"""A campaign folder of gpal 0.1: its history, its table without covariances, its model files."""

from __future__ import annotations

import shutil
from pathlib import Path

import gpflow  # noqa: F401  (its own warnings are not those that are looked for)
import pytest

from gpal.active.campaign import Campaign, Given

FOLDER = Path(__file__).parent / "campaign-0.1.zip"  # 24 labelled sources, 8 targets, one label


@pytest.fixture
def folder(tmp_path):
    shutil.unpack_archive(FOLDER, tmp_path)
    return tmp_path / "campaign"


def test_labels_scores_and_history_are_read(folder):
    with Campaign(folder) as campaign:
        assert campaign.table.measurements.covariance is None
        assert campaign.labels()[campaign.table.row("S27")] == "bll"
        best = campaign.ranking(campaign.scores())[0]
        assert best.name == "S26" and best.score == pytest.approx(0.5464614312034426)
        actions = [event.action for event in campaign.store.history()]
        assert actions == ["start", "refit", "ask", "ask", "label", "refit", "ask"]


def test_it_goes_on(folder):
    """The model's file is of a format that is no longer read: a new one is fitted, and said so."""
    with Campaign(folder) as campaign:
        campaign.label([Given(int(campaign.table.ids[campaign.table.row("S26")]), "psr", "ann")])
        with pytest.warns(UserWarning, match=r"0002.npz' was written by gpal 0.1.*from the start"):
            targets = campaign.ask(3)
        assert len(targets) == 3 and "S26" not in {target.name for target in targets}
        models = campaign.store.models()
        assert [model["n_labels"] for model in models] == [24, 25, 26]
        assert [model["learned_at"] for model in models] == [24, 24, 26]
        assert all(gain >= 0 for gain in campaign.gains(targets))
