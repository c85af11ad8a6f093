"""New releases in a running campaign: labels stay with their sources, and none is lost."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from astropy.table import Table
from typer.testing import CliRunner

from gpal.active.campaign import Campaign, Given
from gpal.active.campaign.export import export_labels, export_targets
from gpal.active.campaign.source_files import read_labels
from gpal.catalog import load_catalog
from gpal.cli import app
from gpal.errors import InputError
from gpal.report.campaign import render_campaign

MAPPING = {
    "id": "Name",
    "class": "Type",
    "ra": "RA",
    "dec": "Dec",
    "classes": {"default": ["bll", "psr"], "candidates": ["", "bcu"]},
    "features": {"index": {"column": "Index", "error": "e_Index"}},
}


def give(campaign, name, label):
    return campaign.label([Given(int(campaign.table.ids[campaign.table.row(name)]), label, "")])


def write_release(path, names, ra, dec, kinds, index):
    Table(
        {
            "Name": names,
            "Type": kinds,
            "RA": ra,
            "Dec": dec,
            "Index": index,
            "e_Index": np.full(len(names), 0.1),
        }
    ).write(path, overwrite=True)
    return load_catalog(path, mapping=MAPPING)


@pytest.mark.parametrize(("radius", "matched"), [(0.1, 20), (0.05, 19)])
def test_how_far_apart_two_names_may_be_one_source(tmp_path, noisy_logistic, radius, matched):
    """Six arc minutes; without errors of the positions nothing in the table says."""
    rng = np.random.default_rng(0)
    names = np.array([f"A{i}" for i in range(20)], dtype="<U3")
    ra, dec, index = np.arange(20) * 15.0, np.zeros(20), rng.normal(2, 0.3, 20)
    kinds = np.array(["bll"] * 6 + ["psr"] * 6 + [""] * 8)
    old = write_release(tmp_path / "a.ecsv", names, ra, dec, kinds, index)
    names[19], ra[19] = "NEW", ra[19] + 0.1
    new = write_release(tmp_path / "b.ecsv", names, ra, dec, kinds, index)
    with Campaign.start(old, tmp_path / "c", classifier=noisy_logistic) as campaign:
        give(campaign, "A19", "psr")
        found = campaign.merge(new, fallback_radius=radius)
        assert found["matched"] == matched and found["new"] == found["gone"] == 20 - matched
        assert found["renamed"] == ([("A19", "NEW")] if matched == 20 else [])
        assert campaign.labels()[campaign.table.names == "NEW"] == ("psr" if matched == 20 else "")


@pytest.fixture
def releases(tmp_path):
    """A release, and a later one: reordered, renamed, one source gone, one new, one classified."""
    rng = np.random.default_rng(0)
    ra, dec = np.arange(20) * 15.0, np.linspace(-60, 60, 20)
    kinds = np.array(["bll"] * 6 + ["psr"] * 6 + [""] * 8)
    index = rng.normal(2, 0.3, 20)
    old = write_release(tmp_path / "a.ecsv", [f"A{i}" for i in range(20)], ra, dec, kinds, index)
    order = rng.permutation(np.delete(np.arange(20), 15))
    kinds = kinds.astype("<U8")
    kinds[13] = "psr"
    new = write_release(
        tmp_path / "b.ecsv",
        [*(f"B{i}" for i in order), "B99"],
        np.append(ra[order] + 1e-3, 352.0),
        np.append(dec[order], 0.0),
        np.append(kinds[order], ""),
        np.append(index[order], 2.0),
    )
    return old, new


def test_a_new_release_keeps_labels_with_their_sources(releases, noisy_logistic, tmp_path):
    old, new = releases
    with Campaign.start(old, tmp_path / "c", classifier=noisy_logistic) as campaign:
        for name, label in (("A12", "bll"), ("A13", "bll"), ("A15", "psr")):
            give(campaign, name, label)
        campaign.ask(2)
        result = campaign.merge(new)
        renamed = result.pop("renamed")
        assert sorted(renamed) == sorted((f"A{i}", f"B{i}") for i in range(20) if i != 15)
        assert result == {
            "matched": 19, "new": 1, "gone": 1, "gone_labelled": [("A15", "psr")],
            "conflicts": [("B13", "psr", "bll")],
        }  # fmt: skip
        label = dict(zip(campaign.table.names.tolist(), campaign.labels().tolist(), strict=True))
        assert label["B12"] == label["B13"] == "bll" and label["B99"] == label["B14"] == ""
        with pytest.raises(InputError, match="no model of this release"):
            export_targets(campaign, tmp_path / "targets.csv")
        assert "No model yet of this release" in render_campaign(campaign).read_text()
        assert campaign.refit().n_labels == 14
        names = {t.name for t in campaign.ask(20)}
        assert names == {"B14", "B16", "B17", "B18", "B19", "B99"}
        events = [e.name for e in campaign.store.history() if e.action == "label"]
        assert events == ["B12", "B13", "A15"]
        assert campaign.undo()[0] == "A15"
    with Campaign(tmp_path / "c", noisy_logistic) as again:
        assert again.table.row("B99") == len(new) - 1
        with pytest.raises(InputError, match="campaign needs index"):
            other = {**MAPPING, "features": {"slope": {"column": "Index"}}}
            again.merge(load_catalog(tmp_path / "b.ecsv", mapping=other))


@pytest.fixture
def neighbours(tmp_path):
    """A function: a release, with its cuts, of 14 sources far apart, and of LOST and NEAR, which
    lie 3 arc minutes apart, those that are asked for; the index of NEAR is above 5."""
    kinds = ["bll"] * 6 + ["psr"] * 6 + [""] * 2
    names, ra = [f"A{i}" for i in range(14)], [15.0 * i for i in range(14)]
    index = np.random.default_rng(0).normal(2, 0.3, 14).tolist()

    def release(*more, cuts=None):
        path = tmp_path / "release.ecsv"
        write_release(
            path,
            names + list(more),
            ra + [{"LOST": 300.0, "NEAR": 300.05}[name] for name in more],
            np.zeros(14 + len(more)),
            kinds + [""] * len(more),
            index + [{"LOST": 2.0, "NEAR": 9.0}[name] for name in more],
        )
        return load_catalog(path, mapping=MAPPING, cuts=cuts)

    return release


CUT = "Index < 5"


def test_a_label_does_not_go_to_a_source_that_the_first_release_had_and_cut(
    neighbours, noisy_logistic, tmp_path
):
    first = neighbours("LOST", "NEAR", cuts=CUT)
    with Campaign.start(first, tmp_path / "c", classifier=noisy_logistic) as campaign:
        give(campaign, "LOST", "psr")
    with Campaign(tmp_path / "c", noisy_logistic) as campaign:
        found = campaign.merge(neighbours("NEAR"), cuts=[])
        assert (found["matched"], found["new"], found["gone"]) == (14, 1, 1)
        assert found["renamed"] == [] and found["gone_labelled"] == [("LOST", "psr")]
        assert campaign.labels()[campaign.table.row("NEAR")] == ""
        found = campaign.merge(neighbours("LOST", "NEAR"))
        assert (found["matched"], found["new"], found["gone"]) == (16, 0, 0)
        assert campaign.labels()[campaign.table.row("LOST")] == "psr"


def test_a_label_does_not_go_to_the_neighbour_of_what_the_new_release_cuts(
    neighbours, noisy_logistic, tmp_path
):
    with Campaign.start(neighbours("NEAR"), tmp_path / "c", classifier=noisy_logistic) as campaign:
        give(campaign, "NEAR", "psr")
        found = campaign.merge(neighbours("LOST", "NEAR"), cuts=[CUT])
        assert found["renamed"] == [] and found["gone_labelled"] == [("NEAR", "psr")]
        assert campaign.labels()[campaign.table.row("LOST")] == ""


def test_a_source_that_a_release_cut_is_none_of_those_that_it_held(
    neighbours, noisy_logistic, tmp_path
):
    """The first release does not know NEAR, the second cuts it, and the third has no LOST."""
    with Campaign.start(neighbours("LOST"), tmp_path / "c", classifier=noisy_logistic) as campaign:
        give(campaign, "LOST", "psr")
        assert campaign.merge(neighbours("LOST", "NEAR"), cuts=[CUT])["matched"] == 15
        found = campaign.merge(neighbours("NEAR"), cuts=[])
        assert found["renamed"] == [] and found["gone_labelled"] == [("LOST", "psr")]
        assert campaign.labels()[campaign.table.row("NEAR")] == ""


def test_a_campaign_without_a_record_of_what_was_cut_goes_on(neighbours, noisy_logistic, tmp_path):
    """As those of gpal 0.2: all that its file knows is matched, as it was then."""
    first = replace(neighbours("LOST", "NEAR", cuts=CUT), cut_away=None)
    with Campaign.start(first, tmp_path / "c", classifier=noisy_logistic) as campaign:
        assert not any(name.startswith("cut_") for name in np.load(campaign.files[1]))
        assert campaign.merge(neighbours("NEAR"), cuts=[])["renamed"] == [("LOST", "NEAR")]


def test_a_process_that_did_not_see_the_merge_labels_the_right_source(
    releases, noisy_logistic, tmp_path
):
    old, new = releases
    with (
        Campaign.start(old, tmp_path / "c", classifier=noisy_logistic) as first,
        Campaign(tmp_path / "c", noisy_logistic) as second,
    ):
        source = int(second.table.ids[second.table.row("A16")])
        first.merge(new)
        second.label([Given(source, "psr", "")])
        assert first.labels()[first.table.row("B16")] == "psr"
        gone = int(first.releases()[1].ids[first.releases()[1].row("A15")])
        with pytest.raises(InputError, match="A15 is not in the present release"):
            second.label([Given(gone, "psr", "")])
        with pytest.raises(InputError, match="A15 has no label"):
            second.undo(gone)


def test_a_label_survives_a_release_that_lacks_its_source(releases, noisy_logistic, tmp_path):
    old, new = releases
    with Campaign.start(old, tmp_path / "c", classifier=noisy_logistic) as campaign:
        for name in ("A15", "A16"):
            give(campaign, name, "bll")
        number = int(campaign.table.ids[campaign.table.row("A15")])
        assert campaign.merge(new)["gone_labelled"] == [("A15", "bll")]
        assert export_labels(campaign, tmp_path / "labels.csv") == 2
        labels = Table.read(tmp_path / "labels.csv", format="ascii.csv", comment="#")
        assert dict(zip(labels["name"], labels["ra"], strict=True)) == {
            "A15": pytest.approx(15 * 15.0),
            "B16": pytest.approx(16 * 15.0 + 1e-3),
        }
        assert export_labels(campaign, tmp_path / "labels.reg") == 2
        page = " ".join(render_campaign(campaign).read_text().split())
        known = int((campaign.table.label != "").sum())
        assert "B16" in campaign.table.names[campaign.labels() == "bll"]
        merged = int(campaign.table.label[campaign.table.row("B16")] != "")
        assert (
            f"1 of which of sources that this release has not, on top of {known - merged}" in page
        )
        status = CliRunner().invoke(app, ["learn", "status", "--session", str(tmp_path / "c")])
        assert "2 labels of this campaign (1 of sources that this release has not)" in status.output
        undo = ["learn", "undo", "A15", "--session", str(tmp_path / "c")]
        assert "A15 is no longer bll" in CliRunner().invoke(app, undo).output
        assert "A15 has no label" in CliRunner().invoke(app, undo).stderr
        result = campaign.merge(old)
        give(campaign, "A15", "bll")
        assert (result["matched"], result["new"], result["gone_labelled"]) == (20, 0, [])
        row = campaign.table.row("A15")
        assert campaign.table.ids[row] == number and campaign.labels()[row] == "bll"
        with pytest.raises(InputError, match="labelled 'bll' already"):
            give(campaign, "A15", "psr")


def test_row_numbers_are_no_names(releases, noisy_logistic, tmp_path):
    """A release without identifiers is matched by position, and not at all without positions."""
    old, _ = releases
    order = np.random.default_rng(1).permutation(20)
    shuffled = tmp_path / "shuffled.ecsv"
    old.table[order].write(shuffled)
    nameless = {key: value for key, value in MAPPING.items() if key != "id"}
    with Campaign.start(
        load_catalog(tmp_path / "a.ecsv", mapping=nameless),
        tmp_path / "c",
        classifier=noisy_logistic,
    ) as campaign:
        give(campaign, "17", "bll")
        campaign.refit()
        export_labels(campaign, tmp_path / "labels.csv")
        campaign.merge(load_catalog(shuffled, mapping=nameless))
        assert campaign.labels()[order.tolist().index(17)] == "bll"
        with pytest.raises(InputError, match="are those of another release's sources"):
            campaign.ranking(campaign.scores(1))
        # The row that the file calls 17 is another source here.
        given = read_labels(tmp_path / "labels.csv", campaign.table)
        rows = [np.flatnonzero(campaign.table.ids == each.source).item() for each in given]
        assert rows == [order.tolist().index(17)]
    nowhere = {key: value for key, value in nameless.items() if key not in ("ra", "dec")}
    with Campaign.start(
        load_catalog(tmp_path / "a.ecsv", mapping=nowhere),
        tmp_path / "d",
        classifier=noisy_logistic,
    ) as campaign:
        with pytest.raises(InputError, match="both catalogs need names or positions"):
            campaign.merge(load_catalog(shuffled, mapping=nowhere))
        assert len(campaign.releases()) == 1


def test_units_must_be_the_campaigns(noisy_logistic, tmp_path):
    table = Table({"Name": list("abcd"), "Type": ["bll", "psr", "", ""], "Flux": [1.0, 2, 3, 4]})
    mapping = {
        "id": "Name",
        "class": "Type",
        "classes": MAPPING["classes"],
        "features": {"flux": {"column": "Flux", "error": "none", "transform": "log10"}},
    }
    catalogs = []
    for unit in ("mJy", "Jy"):
        table["Flux"].unit = unit
        table.write(tmp_path / f"{unit}.ecsv")
        catalogs.append(load_catalog(tmp_path / f"{unit}.ecsv", mapping=mapping))
    with (
        Campaign.start(catalogs[0], tmp_path / "c", classifier=noisy_logistic) as campaign,
        pytest.raises(InputError, match=r"'flux' is in 'log10\(Jy\)' .* 'log10\(mJy\)'"),
    ):
        campaign.merge(catalogs[1])


@pytest.mark.parametrize(
    ("before", "new", "message"),
    [
        ({"column": "F", "transform": "log10"}, {"column": "F"}, "transform 'none' .* 'log10'"),
        (
            {"difference": ["F", "G"]},
            {"difference": ["G", "F"]},
            "difference of G and F .* F and G",
        ),
        ({"column": "F"}, {"ratio": ["F", "G"]}, "the ratio of F and G .* the column F "),
        ({"difference": ["F", "G"]}, {"ratio": ["F", "G"]}, "the ratio of .* the difference of"),
    ],
)
def test_features_must_be_made_as_the_campaigns(noisy_logistic, tmp_path, before, new, message):
    """Numbers without units do not tell; columns may have other names."""
    table = Table({"Name": list("abcd"), "Type": ["bll", "psr", "", ""], "F": [1.0, 2, 3, 4]})
    table["G"] = table["H"] = [1.0, 1, 2, 2]
    table.write(tmp_path / "t.csv")
    catalogs = [
        load_catalog(
            tmp_path / "t.csv",
            mapping={
                "id": "Name",
                "class": "Type",
                "classes": MAPPING["classes"],
                "features": {"f": {"error": "none", **made}},
            },
        )
        for made in (before, new, {**before, "column": "H", "difference": ()})
    ]
    with Campaign.start(catalogs[0], tmp_path / "c", classifier=noisy_logistic) as campaign:
        with pytest.raises(InputError, match=f"'f' .*{message}"):
            campaign.merge(catalogs[1])
        if "difference" in before:
            with pytest.warns(UserWarning, match="the column H in .*: taken for the same quantity"):
                assert campaign.merge(catalogs[2])["matched"] == 4
        else:
            assert campaign.merge(catalogs[2])["matched"] == 4


def test_values_that_the_campaign_never_had_are_warned_of(releases, noisy_logistic, tmp_path):
    """As in other units that no column states."""
    old, new = releases
    new = replace(new, measurements=replace(new.measurements, X=1000 * new.measurements.X))
    with (
        Campaign.start(old, tmp_path / "c", classifier=noisy_logistic) as campaign,
        pytest.warns(UserWarning, match=r"'index': 20 of 20 values .* check its unit"),
    ):
        campaign.merge(new)


def test_a_class_outside_the_campaigns_is_a_conflict_too(releases, noisy_logistic, tmp_path):
    old, new = releases
    other = new.table.copy()
    kind = np.array(other["Type"], dtype="<U8")
    name = np.asarray(other["Name"])
    kind[np.isin(name, ["B16", "B17", "B18"])] = "RDG"
    kind[name == "B19"] = "bcu"
    other["Type"] = kind
    other.write(tmp_path / "other.ecsv")
    with Campaign.start(old, tmp_path / "c", classifier=noisy_logistic) as campaign:
        for name, label in (("A16", "psr"), ("A17", "other"), ("A19", "bll")):
            give(campaign, name, label)
        result = campaign.merge(load_catalog(tmp_path / "other.ecsv", mapping=MAPPING))
        assert result["conflicts"] == [("B16", "RDG", "psr")]


def test_cuts_go_on_until_others_are_given(releases, noisy_logistic, tmp_path):
    _, new = releases
    old = load_catalog(tmp_path / "a.ecsv", mapping=MAPPING, cuts="Dec > -30")
    with Campaign.start(old, tmp_path / "c", classifier=noisy_logistic) as campaign:
        campaign.merge(new)
        assert len(campaign.table) < len(new) and (campaign.table.dec > -30).all()
        assert campaign.table.provenance["cuts"] == ["Dec > -30"]
        campaign.merge(new, ["Dec > 0"])
        campaign.merge(new)
        assert len(campaign.table) and (campaign.table.dec > 0).all()
        with pytest.raises(InputError, match="no column 'Sharpness'"):
            campaign.merge(new, ["Sharpness > 0"])
