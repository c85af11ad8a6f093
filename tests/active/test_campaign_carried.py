"""What a campaign keeps and exports of the columns that its catalog carries."""

from __future__ import annotations

from dataclasses import asdict, replace

import numpy as np
import pytest
from astropy.table import Column, Table

from gpal.active.campaign import Campaign
from gpal.active.campaign.export import export_targets
from gpal.active.campaign.table import SourceTable
from gpal.errors import InputError
from gpal.files.npz import json_text, read_npz, write_npz
from gpal.links import Links
from gpal.provenance import to_json


@pytest.fixture(scope="module")
def catalog(small_catalog):
    n = len(small_catalog)
    carried = {
        "flags": Column(np.arange(n) - 3, description="bits", meta={"ucd": "meta.code.qual"}),
        "counterpart": Column([f"β {i}" for i in range(n)], description="other name"),
        "flux": Column(np.where(np.arange(n) % 7, 1.5, np.nan), unit="ph / (s cm2)"),
        "wide": Column(np.arange(n) % 2 == 0, description="true: wide"),
    }
    schema = replace(small_catalog.schema, links=Links(True, "https://example.org/{name}", "ours"))
    return replace(small_catalog, carried=carried, schema=schema)


def test_a_table_comes_back_as_it_was(catalog, tmp_path):
    table = SourceTable.from_catalog(catalog)
    table.save(tmp_path / "release.npz")
    again = SourceTable.load(tmp_path / "release.npz")
    assert again.links == table.links and list(again.carried) == list(catalog.carried)
    for name, column in catalog.carried.items():
        found = again.carried[name]
        np.testing.assert_array_equal(found, column)
        assert found.dtype.kind == column.dtype.kind and found.unit == column.unit
        assert (found.description or "") == (column.description or "")
        assert found.meta == column.meta


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": "ra"}, "of their own"),
        ({"kind": "picture"}, "'kind' of a carried column"),
        ({"kind": "text"}, "columns of the kind"),
        ({"whole": 1}, "'whole' of a carried column"),
    ],
)
def test_a_table_of_others_is_held_to_it(catalog, tmp_path, change, message):
    path = tmp_path / "release.npz"
    SourceTable.from_catalog(catalog).save(path)
    arrays = read_npz(path, "a file", "copy it")
    about = json_text(arrays["about"])
    about["carried"][0] |= change
    write_npz(path, arrays | {"about": np.array(to_json(about))})
    with pytest.raises(InputError, match=message):
        SourceTable.load(path)


def test_whole_numbers_are_whole_and_pages_are_addresses(catalog, tmp_path):
    path = tmp_path / "release.npz"
    SourceTable.from_catalog(catalog).save(path)
    arrays = read_npz(path, "a file", "copy it")
    for value in (0.5, np.nan, 1e300):
        broken = arrays["carried_number"].copy()
        broken[0, 5] = value
        write_npz(path, arrays | {"carried_number": broken})
        with pytest.raises(InputError, match="holds no whole numbers"):
            SourceTable.load(path)
    about = json_text(arrays["about"])
    about["links"] = asdict(Links()) | {"page": "javascript:{name}"}
    write_npz(path, arrays | {"about": np.array(to_json(about))})
    with pytest.raises(InputError, match="is no address"):
        SourceTable.load(path)


@pytest.mark.parametrize("ending", ["csv", "fits", "vot"])
def test_exports_hold_them(catalog, noisy_logistic, tmp_path, ending):
    with Campaign.start(catalog, tmp_path / "c", classifier=noisy_logistic) as campaign:
        campaign.refit()
        path = tmp_path / f"targets.{ending}"
        assert export_targets(campaign, path, 5) == 5
        rows = [target.row for target in campaign.ranking(campaign.scores(), 5)]
    options = {"comment": "#"} if ending == "csv" else {}
    found = Table.read(path, **options)
    for name, column in catalog.carried.items():
        if name == "counterpart":
            words = [str(word).replace("\\u03b2", "β") for word in found[name]]
            assert words == column[rows].tolist()
        else:
            values = found[name].astype(str) if ending == "csv" and name == "wide" else found[name]
            wanted = column[rows].astype(str) if values.dtype.kind == "U" else column[rows]
            if values.dtype.kind in "if":
                values = np.ma.filled(values.astype(float), np.nan)
            np.testing.assert_array_equal(values, wanted)
    if ending == "vot":
        assert found["flags"].meta["ucd"] == "meta.code.qual"
        assert found["p_bll"].meta["ucd"] == "stat.probability"
        assert found["flux"].unit == catalog.carried["flux"].unit
