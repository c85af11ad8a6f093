"""Addresses of a source's pages: their form, whatever the name, and templates that are refused."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpal.catalog import load_catalog
from gpal.errors import InputError
from gpal.links import Links

SURVEY = Links(names=True, page="https://example.org/s?id={name:_}&at={ra},{dec}", title="survey")


@given(
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40),
    st.floats(0, 360),
    st.floats(-90, 90),
    st.floats(0, 10) | st.just(np.nan),
)
def test_every_source_has_its_addresses(name, ra, dec, radius):
    """Read back by the rules of addresses, they hold the name and the position; nothing of the name
    becomes a part of the address."""
    found = SURVEY.of(name, ra, dec, radius)
    queries = {}
    for title, address in found.items():
        parts = urlsplit(address)
        assert parts.scheme == "https" and parts.hostname and not parts.fragment
        assert address.isascii() and address.isprintable() and " " not in address
        assert not set(address) & set("<>\"'{}\\^`|")
        queries[title] = parse_qs(parts.query, keep_blank_values=True, strict_parsing=True)
    position = f"{ra:.6f} {dec:+.6f}"
    assert queries["SIMBAD"]["Coord"] == queries["ESASky"]["target"] == [position]
    assert queries["Aladin"]["target"] == [position]
    assert queries["NED"]["coordinates"] == [position.replace(" ", "d ") + "d"]
    assert queries["SIMBAD by name"]["Ident"] == queries["NED by name"]["objname"] == [name]
    assert queries["survey"]["id"] == [name.replace(" ", "_")]
    assert 0 < float(queries["NED"]["radius"][0]) <= 600


def test_without_a_position_or_a_known_name():
    assert set(Links().of("A", 1, 2)) == {"SIMBAD", "NED", "Aladin", "ESASky"}
    assert Links().of("A", np.nan, 2) == {}
    assert set(SURVEY.of("A", np.nan, np.nan)) == {"SIMBAD by name", "NED by name"}
    by_name = Links(page="https://example.org/{name}").of("a/b c", np.nan, np.nan)
    assert by_name == {"survey": "https://example.org/a%2Fb%20c"}


def test_the_field_is_that_of_the_position_error():
    assert parse_qs(urlsplit(Links().of("A", 1, 2, 0.1)["SIMBAD"]).query)["Radius"] == ["6"]
    assert parse_qs(urlsplit(Links().of("A", 1, 2)["SIMBAD"]).query)["Radius"] == ["2"]


@pytest.mark.parametrize(
    "page",
    [
        *("javascript:alert('{name}')", "ftp://example.org/{name}", "example.org/{name}"),
        *("https://example.org/", "https://example.org/{source}", "https://example.org/{name"),
        *("https://example.org/{name.__class__}", "https://example.org/{name!r}"),
        *("https://example.org/{name:>9999999}", "https://example.org/{}", "https://a\n/{name}"),
    ],
)
def test_templates_that_are_none_are_refused(page):
    with pytest.raises(InputError, match="the page"):
        Links(page=page)


def test_the_releases_have_their_own():
    dr4, fl16y = load_catalog("4fgl-dr4"), load_catalog("fl16y")
    row = dr4.names.tolist().index("4FGL J0534.5+2200")
    found = dr4.schema.links.of(dr4.names[row], dr4.ra[row], dr4.dec[row])
    assert found["LAT light curve"].endswith("source.html?source_name=4FGL_J0534.5%2B2200")
    assert found["SIMBAD by name"].endswith("sim-id?Ident=4FGL%20J0534.5%2B2200")
    assert fl16y.schema.links.of("FL16Y J0000.0", 1, 2) == Links().of("FL16Y J0000.0", 1, 2)
