"""What is known of values that were not detected reaches the campaign's model and its page."""

from __future__ import annotations

import re

import numpy as np
import pytest
from astropy.table import Table

from gpal import GPClassifier
from gpal.active.campaign import Campaign
from gpal.active.campaign.source_files import Given
from gpal.active.campaign.table import SourceTable
from gpal.active.observing import Observing
from gpal.catalog import load_catalog
from gpal.catalog.cuts import passing
from gpal.errors import InputError
from gpal.report.campaign import render_campaign

MAPPING = {
    **{"id": "Name", "class": "Type"},
    "classes": {"default": ["bll", "psr"], "candidates": [""]},
    "features": {
        "index": {"column": "Index", "error": "e_Index"},
        "flux": {"column": "F", "error": "e_F", "transform": "log10", "upper_limit": "F"},
    },
}
MODEL = {"n_inducing": 8, "max_rounds": 0}


@pytest.fixture(scope="module")
def catalog(tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("limits"), np.random.default_rng(3)
    kind = np.repeat(["bll", "psr", ""], [20, 20, 10])
    pulsar = np.where(kind == "psr", 1, np.where(kind == "bll", 0, rng.integers(2, size=50)))
    table = Table({"Name": [f"S{i:02d}" for i in range(50)], "Type": kind})
    table["Index"], table["F"] = rng.normal(pulsar, 0.5), 10 ** rng.normal(pulsar, 0.3)
    table["e_Index"] = 0.5
    table["e_F"] = np.where(np.arange(50) % 3 == 0, np.nan, 0.1 * table["F"])
    table.write(folder / "some.ecsv")
    return load_catalog(folder / "some.ecsv", mapping=MAPPING)


def test_limits_survive_the_file(catalog, tmp_path):
    SourceTable.from_catalog(catalog).save(tmp_path / "t.npz")
    limits, given = SourceTable.load(tmp_path / "t.npz").measurements.limits, catalog.measurements
    for part in ("value", "confidence", "error"):
        np.testing.assert_array_equal(getattr(limits, part), getattr(given.limits, part))
    assert limits.given[:, 1].sum() == 17


def test_the_model_is_fitted_with_limits_and_the_page_shows_them(catalog, tmp_path):
    with Campaign.start(catalog, tmp_path / "c", parameters=MODEL) as campaign:
        said = campaign.refit().probabilities
        page = render_campaign(campaign).read_text()
        parameters = campaign.store.setting("parameters")
    sources, known = catalog.measurements, catalog.y != ""
    model = GPClassifier(**parameters).fit(sources[known], catalog.y[known])
    np.testing.assert_allclose(said[~known], model.predict_proba(sources[~known]), atol=1e-6)
    flux = re.findall(r'<td>flux</td><td class="number">([^<]*)', page)
    assert len(flux) == 10 and sum(cell.startswith("&lt; ") for cell in flux) == 3
    assert "not measured" not in page


def test_a_catalog_without_positions_keeps_its_own_columns_of_that_name(catalog, tmp_path):
    """What the schema does not call a position may be called so: limits are set on it."""
    table = catalog.table.copy()
    table["ra"] = np.arange(50.0)
    table.write(tmp_path / "some.ecsv")
    sources = SourceTable.from_catalog(load_catalog(tmp_path / "some.ecsv", mapping=MAPPING))
    np.testing.assert_array_equal(sources.quantities()["ra"], np.arange(50.0))


def test_a_feature_that_is_not_the_column_of_its_name_is_told_from_it(catalog, tmp_path):
    features = {"F": MAPPING["features"]["flux"], "Index": MAPPING["features"]["index"]}
    catalog.table.write(tmp_path / "some.ecsv")
    made = load_catalog(tmp_path / "some.ecsv", mapping={**MAPPING, "features": features})
    sources = SourceTable.from_catalog(made)
    assert "F" not in sources.quantities()
    np.testing.assert_array_equal(sources.quantities()["F (column)"], catalog.table["F"])
    measured = np.isfinite(sources.quantities()["F (feature)"])
    expected = np.log10(catalog.table["F"][measured])
    np.testing.assert_allclose(sources.quantities()["F (feature)"][measured], expected)
    np.testing.assert_array_equal(sources.quantities()["Index"], catalog.table["Index"])


@pytest.mark.parametrize(("lowest", "highest"), [(0.0, 0.0), (0.0, None), (1.0, 3.0), (-5.0, 2.0)])
def test_a_number_for_no_value_is_within_a_limit_at_itself_as_in_a_cut(
    lowest, highest, catalog, tmp_path
):
    table = catalog.table.copy()
    table["Flags"] = np.arange(50) % 5 - 1
    table.write(tmp_path / "some.ecsv")
    made = load_catalog(tmp_path / "some.ecsv", mapping={**MAPPING, "sentinels": [0, -99]})
    SourceTable.from_catalog(made).save(tmp_path / "sources.npz")
    sources, limits = SourceTable.load(tmp_path / "sources.npz"), {"Flags": (lowest, highest)}
    assert sources.absent["Flags"] == (-99.0, 0.0)
    cuts = [f"Flags >= {lowest}", *([] if highest is None else [f"Flags <= {highest}"])]
    seen = Observing(limits=limits).observable(50, sources.quantities(limits))
    np.testing.assert_array_equal(seen, passing(made.table, made.schema, cuts))
    assert seen.any() and not seen.all()


def test_a_label_for_a_number_that_no_source_has(catalog, tmp_path):
    with (
        Campaign.start(catalog, tmp_path / "c", parameters=MODEL) as campaign,
        pytest.raises(InputError, match="no source has the number 999"),
    ):
        campaign.label([Given(999, "psr", "ann")])
