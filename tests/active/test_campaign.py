"""A campaign: labels that stay, a history that cannot be edited, new releases, exports."""

from __future__ import annotations

import json
import os
import sqlite3
import time
from contextlib import closing
from dataclasses import replace

import gpflow
import numpy as np
import pytest
from astropy.table import Table

from gpal import GPClassifier
from gpal.active.campaign import OTHER, Campaign, Given
from gpal.active.campaign.export import export_history, export_labels, export_targets
from gpal.active.campaign.source_files import read_labels, read_times
from gpal.active.campaign.table import SourceTable
from gpal.active.observing import Observing
from gpal.catalog import load_catalog, spectrum
from gpal.catalog.cuts import passing
from gpal.errors import InputError
from gpal.evaluation import logistic_regression
from gpal.recommended import RECOMMENDED_MODEL


@pytest.fixture
def campaign(small_catalog, noisy_logistic, tmp_path):
    with Campaign.start(
        small_catalog, tmp_path / "campaign", classifier=noisy_logistic, who="ann"
    ) as campaign:
        yield campaign


def give(campaign, row, label, who="ann", **options):
    return campaign.label([Given(int(campaign.table.ids[row]), label, who)], **options)


def test_a_classifier_of_the_caller_is_the_one_that_answers(campaign, noisy_logistic):
    """Another one than the newest model is of is fitted, though no label came."""

    def with_penalty(C):
        return logistic_regression().set_params(logisticregression__C=C)

    first = campaign.refit()
    assert first.settings.startswith(type(noisy_logistic).__module__)
    for classifier, number in (
        (noisy_logistic, 1),
        (None, 1),  # whoever gives none looks on what there is
        (with_penalty(0.1), 2),
        (with_penalty(0.1), 2),
        (with_penalty(10.0), 3),
    ):
        with Campaign(campaign.folder, classifier=classifier) as again:
            assert again.refit().number == number
    assert not np.allclose(campaign.scores(2).probabilities, campaign.scores(3).probabilities)


def test_a_classifier_answers_where_the_newest_model_is_the_campaigns_own(small_catalog, tmp_path):
    with Campaign.start(small_catalog, tmp_path / "c", parameters={"max_rounds": 0}) as own:
        assert own.refit().number == 1
    with Campaign(tmp_path / "c", classifier=logistic_regression()) as callers:
        assert callers.refit().number == 2


def test_a_number_that_stands_for_no_value_is_within_no_limits():
    """The bundled photometry has magnitudes of 99 where nothing was seen."""
    catalog = load_catalog("lsst-dc2")
    table = SourceTable.from_catalog(catalog)
    seen = Observing(limits={"mag_u": (25.0, None)}).observable(len(table), table.quantities())
    np.testing.assert_array_equal(seen, passing(catalog.table, catalog.schema, ["mag_u >= 25"]))
    assert 0 < seen.sum() < (np.asarray(catalog.table["mag_u"]) >= 25).sum()


def test_without_a_classifier_the_campaigns_settings_come_back(small_catalog, tmp_path):
    folder, parameters = tmp_path / "c", {**RECOMMENDED_MODEL, "max_rounds": 0}
    Campaign.start(small_catalog, folder, parameters=parameters).close()
    linear = GPClassifier(**(parameters | {"kernel": "linear"}))
    with Campaign(folder, classifier=linear) as callers:
        callers.refit()
    with Campaign(folder) as own:
        give(own, targets(own)[0], "bll")
        number = own.refit().number
        assert number == 2 and own.models.load(number).kernel == parameters["kernel"]
        give(own, targets(own)[1], "bll")  # and from there q(f) alone is found anew
        assert own.models.load(own.refit().number).kernel == parameters["kernel"]
        assert own.store.models()[-1]["learned_at"] == own.store.models()[-2]["learned_at"]


def test_labels_that_were_taken_back_or_changed_count_towards_learning_anew(
    small_catalog, tmp_path
):
    folder, parameters = tmp_path / "c", {"max_rounds": 1, "n_inducing": 5}
    options = {"parameters": parameters, "relearn_every": 4}
    with Campaign.start(small_catalog, folder, **options) as campaign:

        def learned():
            number = campaign.refit().number
            settings = campaign.models.load(number).provenance_["settings"]
            model = campaign.store.models()[-1]
            return settings["learned_after_event"] == model["history"], model["n_labels"]

        assert learned() == (True, 60)
        rows = targets(campaign)
        give(campaign, rows[0], "bll")
        give(campaign, rows[1], "bll")
        assert learned() == (False, 62)
        campaign.undo()
        assert learned() == (False, 61)
        give(campaign, rows[0], "psr", replace=True)  # the fourth change
        assert learned() == (True, 61)
        give(campaign, rows[2], "psr")
        assert learned() == (False, 62)


def test_a_class_without_a_labelled_source_is_said_and_one_class_refused(
    small_catalog, noisy_logistic, tmp_path
):
    catalog = small_catalog.with_classes(["bll", "psr", "snr"])
    kept = catalog[catalog.y != "snr"]
    with pytest.warns(UserWarning, match="no labelled source is of class snr: until one is"):
        campaign = Campaign.start(kept, tmp_path / "c", classifier=noisy_logistic)
    with campaign, pytest.warns(UserWarning, match="no labelled source is of class snr"):
        assert campaign.refit().probabilities.shape[1] == 2
    with pytest.warns(UserWarning, match="no labelled source is of class psr"):
        campaign = Campaign.start(
            small_catalog[small_catalog.y != "psr"], tmp_path / "d", classifier=noisy_logistic
        )
    with campaign:
        with pytest.raises(InputError, match="of one class only; label one of psr"):
            campaign.refit()
        give(campaign, targets(campaign)[0], "psr")
        assert campaign.refit().probabilities.shape[1] == 2


def targets(campaign):
    return np.flatnonzero(campaign.table.target)


def test_start_needs_an_empty_place_and_something_to_ask(campaign, small_catalog, tmp_path):
    with pytest.raises(InputError, match="exists already"):
        Campaign.start(small_catalog, campaign.folder)
    with pytest.raises(InputError, match="no source of unknown class"):
        Campaign.start(small_catalog.labelled(), tmp_path / "new")
    with pytest.raises(InputError, match="no strategy 'luck'"):
        Campaign.start(small_catalog, tmp_path / "new", strategy="luck")
    for wrong in ({"likelihood": "bogus"}, {"input_noise": "loud"}, {"kernel": "corn"}):
        with pytest.raises(InputError, match=next(iter(wrong.values()))):
            Campaign.start(small_catalog, tmp_path / "new", parameters=wrong)
    with pytest.raises(InputError, match="give kernel by name, not as a Squared"):
        Campaign.start(small_catalog, tmp_path / "new", parameters={"kernel": gpflow.kernels.RBF()})
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"cannot write .*file/new"):
        Campaign.start(small_catalog, tmp_path / "file" / "new")
    (tmp_path / "file").unlink()
    with pytest.raises(InputError, match="no campaign"):
        Campaign(tmp_path / "nowhere")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["campaign"]


def test_settings_outlive_the_defaults_of_a_release(small_catalog, tmp_path):
    from gpal import GPClassifier
    from gpal.recommended import RECOMMENDED_MODEL

    with Campaign.start(small_catalog, tmp_path / "new", parameters={"kernel": "linear"}) as new:
        parameters = new.store.setting("parameters")
    wanted = GPClassifier(**{**RECOMMENDED_MODEL, "kernel": "linear"})
    assert parameters == wanted.get_params(deep=False)


def test_a_folder_that_is_no_campaign_or_lacks_a_file(campaign, tmp_path):
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    database = foreign / "campaign.sqlite"
    database.touch()
    for statements in ("", "CREATE TABLE setting (key TEXT, value TEXT)"):
        with closing(sqlite3.connect(database)) as connection:
            connection.executescript(statements)
        with pytest.raises(InputError, match="not the database of a gpal campaign"):
            Campaign(foreign)
    campaign.refit()
    (campaign.folder / "models" / "0001-scores.npz").write_bytes(b"PK half a file")
    with pytest.raises(InputError, match=r"cannot read .*0001-scores.npz"):
        campaign.scores()
    (campaign.folder / "release-1.npz").unlink()
    with pytest.raises(InputError, match=r"cannot read .*release-1.npz.*as a whole"):
        Campaign(campaign.folder)


def test_files_have_the_rights_that_the_umask_gives(small_catalog, noisy_logistic, tmp_path):
    before = os.umask(0o002)
    try:
        with Campaign.start(small_catalog, tmp_path / "c", classifier=noisy_logistic) as campaign:
            campaign.refit()
            modes = {p.name: p.stat().st_mode & 0o777 for p in (tmp_path / "c").rglob("*")}
    finally:
        os.umask(before)
    assert (tmp_path / "c").stat().st_mode & 0o777 == modes.pop("models") == 0o775
    assert len(modes) >= 4 and set(modes.values()) == {0o664}


def test_asks_only_for_targets_and_learns(campaign):
    first = campaign.ask(4)
    rows = [t.row for t in first]
    assert campaign.table.target[rows].all()
    assert [t.row for t in campaign.ask(4)] == rows  # the same question, the same answer
    for row in rows:
        assert give(campaign, row, "bll") == [True]
    second = campaign.ask(4)
    assert not {t.row for t in second} & set(rows)
    assert [m["n_labels"] for m in campaign.store.models()] == [60, 64]
    for t in first:
        assert sum(t.probabilities.values()) == pytest.approx(1, abs=1e-6)
        assert t.entropy == pytest.approx(t.score, abs=1e-6)


def test_other_leaves_the_pool_and_the_training(campaign):
    row = campaign.ask(1)[0].row
    give(campaign, row, OTHER)
    scored = campaign.refit()
    assert scored.n_labels == 60 and np.isnan(scored.score[row])


def test_history_keeps_who_what_when_score_and_model(campaign):
    target = campaign.ask(1)[0]
    give(campaign, target.row, "psr", who="bob")
    event = campaign.store.history()[-1]
    assert (event.who, event.action) == ("bob", "label")
    assert (event.name, event.label) == (target.name, "psr")
    assert (event.score, event.strategy, event.model) == (target.score, "entropy", 1)
    actions = [e.action for e in campaign.store.history()]
    assert actions == ["start", "refit", "ask", "label"]
    for statement in ("DELETE FROM history", "UPDATE history SET label = 'bll'"):
        with pytest.raises(sqlite3.DatabaseError, match="append-only"):
            campaign.store.connection.execute(statement)


def test_what_leaves_the_catalogs_class_open_does_not_replace_it(campaign):
    """Models would go on learning the catalog's class, and nobody would be told."""
    row = int(np.flatnonzero(campaign.table.label == "bll")[0])
    for replaced in (False, True):
        with pytest.raises(InputError, match="'bll'") as refused:
            give(campaign, row, "bll:0.8/psr:0.2", replace=replaced)
        assert "undo" not in str(refused.value)
    assert campaign.store.history()[-1].action != "label" and campaign.labels()[row] == "bll"
    assert give(campaign, row, "psr", replace=True) == [True] and campaign.labels()[row] == "psr"


def test_repetition_conflict_and_change_of_mind(campaign):
    row = targets(campaign)[0]
    assert give(campaign, row, "bll") == [True]
    assert give(campaign, row, "bll") == [False]
    with pytest.raises(InputError, match=r"labelled 'bll' already .*by ann.*--replace.*undo '\w"):
        give(campaign, row, "psr")
    assert give(campaign, row, "psr", replace=True) == [True]
    assert campaign.labels()[row] == "psr"
    name = campaign.table.names[row]
    assert campaign.undo() == (name, "psr")
    assert campaign.labels()[row] == "bll"  # what was before
    assert campaign.undo() == (name, "bll")
    assert campaign.labels()[row] == ""
    with pytest.raises(InputError, match="no label to take back"):
        campaign.undo()
    known = np.flatnonzero(campaign.table.label == "bll")[0]
    with pytest.raises(InputError, match="by the catalog"):
        give(campaign, known, "psr")
    with pytest.raises(InputError, match=r": unknown class 'psrr'; did you mean 'psr'"):
        give(campaign, row, "psrr")


def test_a_name_without_its_prefix_is_refused_where_two_sources_end_so(campaign):
    names = campaign.table.names.astype("<U40")
    names[:3] = ["4FGL J0001.2+0300", "LAC J0001.2+0300", "4FGL J0002.0+0300"]
    measurements = replace(campaign.table.measurements, ids=names)
    table = replace(campaign.table, measurements=measurements)
    assert table.row("J0002.0+0300") == 2
    with pytest.raises(InputError, match=r"may be 2 sources \(4FGL J0001.2\+0300, LAC J0001"):
        table.row("j0001.2+0300")
    with pytest.raises(InputError, match="no source '0300'"):  # no whole word
        table.row("0300")


def test_classes_whatever_their_capitals(campaign):
    row = targets(campaign)[0]
    assert give(campaign, row, "BLL") == [True]
    assert campaign.labels()[row] == "bll"
    assert give(campaign, row, "Bll") == [False]
    assert give(campaign, targets(campaign)[1], OTHER.upper()) == [True]


def test_undo_by_source(campaign):
    a, b = targets(campaign)[:2]
    give(campaign, a, "bll")
    give(campaign, b, "psr")
    assert campaign.undo(int(campaign.table.ids[a]))[1] == "bll"
    assert campaign.labels()[b] == "psr" and campaign.labels()[a] == ""
    with pytest.raises(InputError, match="has no label of this campaign"):
        campaign.undo(int(campaign.table.ids[a]))


def test_what_a_killed_process_left_is_swept_up(campaign):
    models = campaign.folder / "models"
    for name, age in (("old", 2 * 86400), ("new", 60)):
        (models / f".building-{name}").mkdir()
        os.utime(models / f".building-{name}", (time.time() - age,) * 2)
    campaign.refit()
    assert [p.name for p in models.glob(".building-*")] == [".building-new"]


def test_all_or_none(campaign):
    a, b = targets(campaign)[:2]
    ids = campaign.table.ids
    with pytest.raises(InputError):
        campaign.label([Given(int(ids[a]), "bll", ""), Given(int(ids[b]), "nonsense", "")])
    assert campaign.labels()[a] == "" and len(campaign.store.history()) == 1


def test_a_campaign_is_what_the_folder_says(campaign, noisy_logistic):
    give(campaign, targets(campaign)[3], "psr")
    asked = campaign.ask(3)
    with Campaign(campaign.folder, noisy_logistic) as again:
        assert again.ask(3) == asked
        assert again.store.history(2)[-1].action == "ask"
        table, same = campaign.table, again.table
        assert np.array_equal(table.columns["Beta"], same.columns["Beta"], equal_nan=True)
        for name in ("ids", "ra", "dec", "label", "catalog_class", "spectrum", "position_error"):
            assert np.array_equal(
                getattr(table, name), getattr(same, name), equal_nan=name in ("position_error",)
            )


def test_names_and_positions(campaign):
    table = campaign.table
    assert table.row(table.names[5]) == 5
    assert table.row(f" {table.names[5].lower().replace(' ', '')}") == 5
    with pytest.raises(InputError, match=r"no source 'S J0005 5'.*did you mean"):
        table.row("S J0005 5")
    assert table.row(table.names[5].split(" ", 1)[1]) == 5  # without its prefix
    assert table.row_at(table.ra[7] + 1e-3, table.dec[7]) == 7
    with pytest.raises(InputError, match=r"the nearest is .* at"):
        table.row_at(table.ra[7], table.dec[7] + 1e-2, 1e-3)
    with pytest.raises(InputError, match="90 sources within"):
        table.row_at(10, 10, 180)
    with pytest.raises(InputError, match="not on the sky"):
        table.row_at(10, 100)


def test_labels_from_csv(campaign, tmp_path):
    table, (a, b, c) = campaign.table, targets(campaign)[:3]
    names = table.names
    file = tmp_path / "night.csv"
    file.write_text(
        f"# seeing 0.8\nName,label,who\n{names[a]},bll,eve\n{names[b]},psr,\n{names[a]},bll,eve\n"
    )
    given = read_labels(file, table, who="ann")
    assert [g.who for g in given] == ["eve", "ann", "eve"]
    assert {g.note for g in read_labels(file, table, note="cloudy")} == {"cloudy"}
    quoted = tmp_path / "quoted.csv"
    quoted.write_text(f'note,name,label\n"#1 of\n\n# two\n",{names[a]},bll\n\n,{names[b]},psr\n')
    first, second = read_labels(quoted, table)
    assert (first.note, first.where) == ("#1 of\n\n# two", "quoted.csv, line 2")
    assert (second.note, second.where) == ("", "quoted.csv, line 7")
    with pytest.raises(InputError, match="line 3: a radius is for positions"):
        read_labels(file, table, radius=3.0)
    assert campaign.label(given) == [True, True, False]
    file.write_text(f"ra,dec,label\n{table.ra[c]},{table.dec[c]},other\n")
    assert campaign.label(read_labels(file, table)) == [True]
    assert campaign.labels()[[a, b, c]].tolist() == ["bll", "psr", "other"]


@pytest.mark.parametrize(
    "text, message",
    [
        ("# seeing\nname,label\n\nnobody,bll\n", "night.csv, line 4: no source 'nobody'"),
        ("name,label\n{0},bll\n{0},psr\n", "line 3: .* is 'psr' here and 'bll' in line 2"),
        ("name,label\n{0},\n", "line 2: column 'label' is empty"),
        ("name,label\n{0},psrr\n", "night.csv, line 2: S J.*: unknown class 'psrr'"),
        ("name,label\n{1},psr\n", "night.csv, line 2: S J.* is labelled 'bll' already"),
        ("name,class\n{0},bll\n", "has the columns class, name; needed are name,label"),
        ("ra,dec,label\n1,x,bll\n", "line 2: column 'dec' is 'x', not a number"),
        ("name,ra,dec,label\n{0},1,89,bll\n", "line 2: S J.* lies .* deg from the position"),
        ("name,label\n", "has no labels"),
        ("name,label\n{0},bll,late\n", "line 2: 3 cells in 2 columns"),
        ("name,label,label\n{0},bll,psr\n", "two columns 'label'"),
        ('name,label\n{0},"bll\n', "line 2: unexpected end of data"),
        ("name,label\n{0},bll\0\n", "a byte 0"),
        ("# seeing\nname,label\n{0},bll\n#1,bll\n", "night.csv, line 4 begins with '#'"),
    ],
)
def test_bad_csv(campaign, tmp_path, text, message):
    file = tmp_path / "night.csv"
    known = np.flatnonzero(campaign.table.label == "bll")[0]
    file.write_text(text.format(*campaign.table.names[[targets(campaign)[0], known]]))
    with pytest.raises(InputError, match=message):
        campaign.label(read_labels(file, campaign.table))


@pytest.mark.parametrize("time", ["-3", "0", "nan", "inf"])
def test_bad_times(campaign, tmp_path, time):
    file = tmp_path / "times.csv"
    a, b = campaign.table.names[:2]
    file.write_text(f"name,time\n{a},3\n{b},{time}\n")
    with pytest.raises(InputError, match=rf"times.csv, line 3: column 'time' is {time};"):
        read_times(file, campaign.table)


def test_two_times_of_one_source(campaign, tmp_path):
    file, name = tmp_path / "times.csv", campaign.table.names[0]
    file.write_text(f"name,time\n{name},10\n{name},10\n")
    assert [*read_times(file, campaign.table).values()] == [10]
    file.write_text(f"name,time\n{name},10\n{name},1000\n")
    with pytest.raises(InputError, match=r"times.csv, line 3: .* takes 1000 here and 10 in a line"):
        read_times(file, campaign.table)


def test_times_weigh_and_limit(campaign, tmp_path):
    table, rows = campaign.table, targets(campaign)[:6]
    file = tmp_path / "times.csv"
    lines = [f"{table.names[row]},{2.0 + k}" for k, row in enumerate(rows)]
    file.write_text("name,time\n" + "\n".join(lines) + "\n")
    time = np.full(len(table), np.nan)
    for row, value in read_times(file, table).items():
        time[row] = value
    plain = {t.row: t.score for t in campaign.ask(28)}
    weighed = campaign.ask(10, observing=Observing(time), diverse=False)
    assert {t.row for t in weighed} == set(rows)
    for t in weighed:
        assert t.score == pytest.approx(plain[t.row] / time[t.row])
    north = campaign.ask(28, observing=Observing(limits={"dec": (0, None)}))
    assert north and all(t.dec >= 0 for t in north)
    median = float(np.median(table.columns["Flux"]))
    bright = campaign.ask(28, observing=Observing(limits={"Flux": (median, None)}))
    assert {t.row for t in bright} == {
        row for row in targets(campaign) if table.columns["Flux"][row] >= median
    }
    with pytest.raises(InputError, match="no source left"):
        campaign.ask(1, observing=Observing(limits={"dec": (91, None)}))


# ending -> how astropy reads it
TABLE_FORMATS = {
    ".csv": {"format": "ascii.csv", "comment": "#"},
    ".fits": {},
    ".vot": {"format": "votable"},
}


def test_export_formats_agree(campaign, tmp_path):
    campaign.ask(5)
    with pytest.raises(InputError, match="should end in one of"):
        export_targets(campaign, tmp_path / "targets.txt")
    tables = []
    for ending, options in TABLE_FORMATS.items():
        path = tmp_path / f"targets{ending}"
        assert export_targets(campaign, path, 7) == 7
        tables.append(Table.read(path, **options))
    for table in tables:
        assert [str(n).strip() for n in table["name"]] == [str(n) for n in tables[0]["name"]]
        for column in ("ra", "score", "p_bll", "entropy_overlap"):
            assert np.allclose(table[column], tables[0][column])
    assert tables[1]["ra"].unit == tables[2]["ra"].unit == "deg"
    assert json.loads((tmp_path / "targets.csv").read_text().splitlines()[0][14:])["gpal"]
    give(campaign, targets(campaign)[0], "bll")
    assert export_labels(campaign, tmp_path / "labels.csv") == 1
    labels = Table.read(tmp_path / "labels.csv", format="ascii.csv", comment="#")
    assert labels["label"][0] == "bll" and labels["who"][0] == "ann"


def test_export_of_the_history(campaign, tmp_path):
    target = campaign.ask(1)[0]
    give(campaign, target.row, "bll", who="Björn")
    campaign.undo()
    with pytest.raises(InputError, match="should end in one of"):
        export_history(campaign, tmp_path / "history.reg")
    for ending, options in TABLE_FORMATS.items():
        path = tmp_path / f"history{ending}"
        assert export_history(campaign, path) == 5
        table = Table.read(path, **options)
        assert [str(a).strip() for a in table["action"]] == [
            *("start", "refit", "ask", "label", "undo")
        ]
        assert str(table["name"][3]).strip() == target.name and table["label"][3] == "bll"
        who = "Bj\\xf6rn" if ending == ".fits" else "Björn"  # FITS is ASCII
        assert table["who"][3] == who
        assert table["score"][3] == pytest.approx(target.score) and table["model"][3] == 1
        assert table["undoes"][4] == table["number"][3] and table["undoes"].mask[3]


def test_region_file_draws_the_error_ellipse(campaign, tmp_path):
    campaign.refit()
    row = campaign.ranking(campaign.scores(), 1)[0].row
    campaign.table.position_error[row] = (0.2, 0.1, 30.0)  # the long axis 30° east of north
    export_targets(campaign, tmp_path / "targets.reg", 2)
    lines = (tmp_path / "targets.reg").read_text().splitlines()
    place = f"{campaign.table.ra[row]:.6f},{campaign.table.dec[row]:.6f}"
    assert f'ellipse({place},720.00",360.00",120.00)' in lines[4]
    assert lines[3] == "icrs" and lines[5].startswith("circle(") and len(lines) == 6


def test_spectra_travel_with_a_release(tmp_path):
    catalog = load_catalog("4fgl-dr4")[:300]
    table = SourceTable.from_catalog(catalog)
    table.save(tmp_path / "t.npz")
    again = SourceTable.load(tmp_path / "t.npz")
    points = again.spectrum
    assert points.shape == (300, len(catalog.schema.bands), 3)
    assert np.allclose(points[:, 2, 0], catalog.table["nuFnu_Band"][:, 2], equal_nan=True)
    assert np.nanmin(points[:, :, 1:]) >= 0 and again.spectrum_unit == "erg / (s cm2)"
    one = spectrum(catalog, catalog.names[7])
    np.testing.assert_array_equal(points[7, :, 0], one.flux)
    np.testing.assert_array_equal(points[7, :, 1:], one.errors)
