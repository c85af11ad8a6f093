"""A campaign refuses what would put a label, a time or a score on another source, and says what it
did."""

from dataclasses import replace

import numpy as np
import pytest

from gpal.active.campaign import Campaign, Given
from gpal.active.campaign.export import export_targets
from gpal.active.campaign.source_files import read_labels
from gpal.active.observing import Observing
from gpal.errors import InputError


@pytest.fixture
def campaign(small_catalog, noisy_logistic, tmp_path):
    with Campaign.start(
        small_catalog, tmp_path / "campaign", classifier=noisy_logistic
    ) as campaign:
        yield campaign


def test_a_name_whose_position_is_that_of_another_source_is_refused(campaign, tmp_path):
    table = campaign.table
    a, b = np.flatnonzero(table.target)[:2]
    ra, dec, error = table.ra.copy(), table.dec.copy(), table.position_error.copy()
    ra[[a, b]], dec[[a, b]] = 150.0, [2.0, 2.1]
    table = replace(table, ra=ra, dec=dec)
    file = tmp_path / "night.csv"

    def labels(name, position):
        file.write_text(f"name,ra,dec,label\n{table.names[name]},150.0,{position},bll\n")
        return [given.source for given in read_labels(file, table)]

    assert labels(a, 2.04) == [table.ids[a]]
    with pytest.raises(InputError, match=rf"{table.names[a]} lies 0.1 deg .*, {table.names[b]} 0;"):
        labels(a, 2.1)
    with pytest.raises(InputError, match="position 150 nan is not on the sky"):
        labels(a, "nan")
    error[a] = 0.2, 0.15, 30.0
    table = replace(table, position_error=error)  # its counterpart may lie there
    assert labels(a, 2.1) == [table.ids[a]]


def test_times_of_another_release_are_refused(campaign, monkeypatch):
    refit = campaign.refit

    def merged_meanwhile():
        scored = refit()
        order = np.arange(len(campaign.table))[::-1]
        campaign.table = replace(campaign.table, ids=campaign.table.ids[order])
        return scored

    monkeypatch.setattr(campaign, "refit", merged_meanwhile)
    with pytest.raises(InputError, match="another release was merged meanwhile"):
        campaign.ask(3, observing=Observing(time=np.ones(len(campaign.table))))


def test_scores_of_other_labels_than_the_database_has_are_refused(campaign, monkeypatch):
    campaign.refit()
    models = campaign.store.models()
    models[-1]["n_labels"] += 1
    monkeypatch.setattr(campaign.store, "models", lambda: models)
    with pytest.raises(InputError, match=r"model 1 is of 60 labels, and of 61 .*refit --full"):
        campaign.scores()


def test_a_class_of_the_catalog_that_is_not_told_apart_is_not_overwritten_unasked(campaign):
    row = np.flatnonzero(campaign.table.catalog_class == "snr")[0]
    given = [Given(int(campaign.table.ids[row]), "psr", "ann")]
    with pytest.raises(InputError, match=r"labelled 'snr' already \(by the catalog\), now 'psr'"):
        campaign.label(given)
    assert campaign.label(given, replace=True) == [True]
    assert campaign.labels()[row] == "psr"


def test_a_region_is_as_large_as_the_error_and_what_has_none_is_said(campaign, tmp_path):
    first, second = (target.row for target in campaign.ranking(campaign.refit(), 2))
    campaign.table.position_error[first] = 0.01, 0.01, np.nan  # a circle
    campaign.table.ra[second] = np.nan
    with pytest.warns(UserWarning, match="1 of 2 sources have no position, and no region"):
        export_targets(campaign, tmp_path / "targets.reg", 2)
    (region,) = (tmp_path / "targets.reg").read_text().splitlines()[4:]
    assert region.startswith("circle(") and '36.00")' in region
