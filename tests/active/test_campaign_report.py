"""The campaign's page: self-contained, and it shows what the campaign holds."""

from __future__ import annotations

import base64
import io
import re
from dataclasses import replace
from urllib.parse import quote

import numpy as np
import pytest
from astropy.table import Column
from PIL import Image

from gpal.active.campaign import Campaign, Given
from gpal.active.campaign.export import export_history
from gpal.active.observing import Observing
from gpal.catalog import Series
from gpal.errors import InputError
from gpal.links import Links
from gpal.report.campaign import _measured, render_campaign, spectrum_picture


@pytest.fixture
def campaign(small_catalog, noisy_logistic, tmp_path):
    with Campaign.start(small_catalog, tmp_path / "c", classifier=noisy_logistic) as campaign:
        yield campaign


def test_page_before_the_first_model(campaign):
    text = render_campaign(campaign).read_text()
    assert "No model yet of this release" in text and "No labels yet" in text


def test_neither_page_nor_export_takes_the_place_of_the_campaign(campaign, tmp_path):
    campaign.refit()
    database = campaign.folder / "campaign.sqlite"
    before = database.read_bytes()
    link = tmp_path / "targets.csv"
    link.symlink_to(database)
    for write in (
        lambda: render_campaign(campaign, path=database),
        lambda: render_campaign(campaign, path=campaign.folder / "release-1.npz"),
        lambda: export_history(campaign, link),
    ):
        with pytest.raises(InputError, match="would be overwritten"):
            write()
    assert database.read_bytes() == before
    export_history(campaign, campaign.folder / "history.csv")
    export_history(campaign, campaign.folder / "history.csv")


def test_page_shows_targets_and_labels(campaign):
    first = campaign.ask(3)
    ids = campaign.table.ids
    campaign.label([Given(int(ids[first[0].row]), "bll", "<b>eve</b>", "clear night")])
    campaign.label([Given(int(ids[first[1].row]), "other", "eve")])
    campaign.undo()
    second = campaign.ask(10)
    text = render_campaign(campaign).read_text()
    for target in second:
        assert f". {target.name}</h3>" in text
    assert text.count('class="target"') == 10
    assert "&lt;b&gt;eve" in text and "<b>eve" not in text
    assert "clear night" in text and text.count('<tr class="undone">') == 1
    assert not re.search(r'src="(?!data:|#)', text)
    assert not re.search(r'href="(?!https://)|<link', text)
    shown = float(re.search(r'class="number">(0\.\d\d)</td>', text)[1])
    assert shown == pytest.approx(first[0].probabilities["bll"], abs=0.006)
    widths = [float(w) for w in re.findall(r'class="part-\w+" style="width:([\d.]+)%"', text)]
    totals = [t.entropy for t in second]
    assert sum(widths) == pytest.approx(100 * sum(totals) / np.log(2), abs=2)


def test_targets_have_links_marks_and_what_the_catalog_carries(
    small_catalog, noisy_logistic, tmp_path
):
    n = len(small_catalog)
    carried = {
        "counterpart": Column([f"<3C {i}>" for i in range(n)], description="other <name>"),
        "flux": Column(np.linspace(1, 2, n), unit="mJy", description="flux"),
        "wide": Column(np.ones(n, bool)),
    }
    links = Links(page="https://example.org/{name}", title="its page")
    catalog = replace(
        small_catalog, carried=carried, schema=replace(small_catalog.schema, links=links)
    )
    with Campaign.start(catalog, tmp_path / "c", classifier=noisy_logistic) as campaign:
        campaign.refit()
        first = campaign.ranking(campaign.scores(), 10, diverse=True)[0]
        text = _page(campaign)
    assert f"&lt;3C {first.row}&gt;" in text and "<3C" not in text and "other &lt;name&gt;" in text
    assert f"{carried['flux'][first.row]:.4g} <small>mJy</small>" in text
    assert text.count('<small class="mark">wide</small>') == 10
    assert text.count("https://simbad.cds.unistra.fr/simbad/sim-coo?") == 10
    assert f'href="https://example.org/{quote(first.name, safe="")}"' in text


def test_measured_shows_the_digits_that_count():
    assert _measured(2.13456, 0.0412, np.nan, 0.0) == "2.135 ± 0.041"
    assert _measured(1234.5, 56.0, np.nan, 0.0) == "1234 ± 56"
    assert _measured(0.5, 0.0, np.nan, 0.0) == "0.5"
    assert _measured(np.nan, np.inf, np.nan, 0.0) == "not measured"


def test_a_limit_is_shown_as_one():
    assert _measured(np.nan, np.inf, 0.12345, -0.95) == "< 0.1235"
    assert _measured(np.nan, np.inf, 24.5, 0.95) == "> 24.5"


def test_targets_of_a_model_that_labels_have_come_since(campaign):
    asked = campaign.ask(3)
    assert "learns from them first" not in _page(campaign)
    campaign.label([Given(int(campaign.table.ids[asked[0].row]), "bll", "")])
    assert "have come since that model: <code>gpal learn next</code>" in _page(campaign)


def test_spectra_are_pictures_where_there_are_two_points():
    energy = np.array([[100, 300], [300, 1000], [1000, 3000], [3000, 10000.0]])
    flux = np.array([1e-11, 3e-12, 1e-16, np.nan])
    errors = np.array([[1e-12, 1e-12], [5e-13, 5e-13], [np.nan, 4e-13], [np.nan, np.nan]])
    picture = spectrum_picture(Series("A", energy, flux, errors, "erg / (s cm2)"))
    content = base64.b64decode(picture.removeprefix("data:image/png;base64,"))
    width, height = Image.open(io.BytesIO(content)).size
    assert width == 600 and 300 < height < 600
    assert spectrum_picture(Series("A", energy[2:], flux[2:], errors[2:])) is None
    without = Series("A", np.full((4, 2), np.nan), flux, errors)
    assert spectrum_picture(without).startswith("data:image/png")


def test_page_lists_open_questions_and_keeps_to_limits(campaign):
    asked = campaign.ask(3)
    source = int(campaign.table.ids[asked[1].row])
    campaign.label([Given(source, "bll", "")])
    north = Observing(visible=campaign.table.dec >= 0)
    text = render_campaign(campaign, north).read_text()
    rows = re.findall(r'<tr class="open">.*?class="source">(.*?)</td>', text)
    assert rows == [asked[2].name, asked[0].name]
    shown = re.findall(r"<h3>\d+\. (.*?)</h3>", text)
    table = campaign.table
    assert shown and all(table.dec[table.row(name)] >= 0 for name in shown)
    assert "the given limits" in text
    assert "the given limits" not in render_campaign(campaign, Observing()).read_text()


def test_page_when_everything_is_labelled(campaign):
    ids = campaign.table.ids[campaign.table.target].tolist()
    campaign.refit()
    campaign.label([Given(source, "bll", "") for source in ids])
    assert "No source left to ask for.</p>" in _page(campaign)


def test_page_when_the_limits_allow_no_target(campaign):
    """What was labelled and learned has nothing to do with them."""
    asked = campaign.ask(3)
    campaign.label([Given(int(campaign.table.ids[asked[0].row]), "bll", "ann")])
    nowhere = Observing(limits={"dec": (89.9, 90.0)})
    text = render_campaign(campaign, nowhere).read_text()
    assert "No source left to ask for, of those that the given limits and times allow." in text
    assert 'class="target"' not in text and f'class="source">{asked[0].name}<' in text
    with pytest.raises(InputError, match="no quantity 'width' to set a limit on"):
        render_campaign(campaign, Observing(limits={"width": (0, 1)}))


def _page(campaign):
    return render_campaign(campaign).read_text()
