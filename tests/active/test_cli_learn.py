"""`gpal learn` from start to report, in this process; a campaign on real sources, warm starts."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
from astropy.table import Table
from typer.testing import CliRunner

from gpal.active.campaign import Campaign, Given
from gpal.active.campaign.ranking import Target
from gpal.catalog import load_catalog
from gpal.cli import app
from gpal.files.csv import read_csv
from gpal.recommended import RECOMMENDED_MODEL


def run(*arguments, code=0):
    """stdout (stderr for a failure) of `gpal learn ARGUMENTS`."""
    result = CliRunner().invoke(app, ["learn", *map(str, arguments)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.stderr
    return result.stdout if code == 0 else result.stderr


@pytest.fixture(autouse=True)
def learns_little(monkeypatch):
    """One round of hyper-parameters: what the commands do is looked at, not how well."""
    monkeypatch.setitem(RECOMMENDED_MODEL, "max_rounds", 1)


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """30 real sources of each class and 25 without, as a file and its schema."""
    catalog = load_catalog("4fgl-dr4")
    rows = [i for c in catalog.classes for i in np.flatnonzero(catalog.y == c)[:30]]
    rows += np.flatnonzero(catalog.labels == "")[:25].tolist()
    folder = tmp_path_factory.mktemp("sources")
    catalog[rows].table.write(folder / "some.fits")
    return folder / "some.fits"


@pytest.fixture
def session(sources, tmp_path):
    folder = tmp_path / "blazars"
    features = ("--features", "log_flux,index,beta")
    small = ("--n-inducing", 10)
    text = run("start", sources, "--schema", "4fgl-dr4", *features, *small, "--session", folder)
    assert "90 labelled sources, 25 to choose from" in text
    return folder


@pytest.mark.slow
def test_a_night(session, sources, tmp_path):
    """next, label by name, position and file, undo, status, export, report."""
    first = run("next", "-n", 4, "-s", session)
    table = Campaign(session).table
    names = [name for name in table.names.tolist() if name in first]
    assert len(names) == 4
    assert f"{names[0]} is bll" in run("label", names[0].lower(), "bll", "-s", session)
    assert "nothing to do" in run("label", names[0], "bll", "-s", session)
    assert "--replace" in run("label", names[0], "psr", "-s", session, code=2)
    row = table.row(names[1])
    at = ("--at", table.ra[row], table.dec[row])
    assert f"{names[1]} is fsrq" in run("label", *at, "fsrq", "-s", session)
    file = tmp_path / "night.csv"
    file.write_text(f"name,label\n{names[0]},bll\n{names[2]},other\n")
    assert "1 labels recorded, 1 were" in run("label", "--csv", file, "-s", session)
    assert f"{names[2]} is no longer other" in run("undo", "-s", session)
    assert f"{names[2]} is bll\n" in run("label", names[2], "bll:0.8", "-s", session)
    run("label", names[2], "psr", "--replace", "-s", session)
    assert f"{names[2]} is no longer psr; it is bll again" in run("undo", "-s", session)
    assert f"{names[2]} is no longer bll\n" in run("undo", "-s", session)
    text = run("status", "-s", session)
    assert "2 labels of this campaign, 23 sources to choose from" in text
    assert "labels have come since" in text and "too early to advise" in text
    assert not set(names[:2]) & set(run("next", "-s", session).split("  "))
    north = run("next", "-s", session, "--limit", "dec:0:", "--top")
    assert all(table.dec[table.row(n)] >= 0 for n in table.names.tolist() if n in north)
    asked = run("next", "-n", 5, "-s", session)
    assert "5 targets" in run("export", tmp_path / "five.csv", "-n", 5, "-s", session)
    exported = read_csv(tmp_path / "five.csv", {"name": str})["name"]
    assert len(exported) == 5 and all(name in asked for name in exported)
    for ending in (".csv", ".reg"):
        assert "23 targets" in run("export", tmp_path / f"t{ending}", "-s", session)
    assert "2 labels" in run("export", tmp_path / "l.fits", "--labels", "-s", session)
    events = len(Campaign(session).store.history())
    assert f"{events} events" in run("export", tmp_path / "h.csv", "--history", "-s", session)
    assert "model 3: 92 labels" in run("refit", "--full", "-s", session)
    run("report", "-s", session)
    assert names[0] in (session / "report.html").read_text()
    labelled = Table.read(tmp_path / "l.fits")["name"].tolist()
    assert sorted(labelled) == sorted(names[:2])
    faint = ("--cut", f"Signif_Avg < {table.columns['Signif_Avg'][table.row(names[0])]}")
    merged = run("merge", sources, "--schema", "4fgl-dr4", *faint, "-s", session)
    assert "sources found again, 0 new" in merged
    assert names[0] not in Campaign(session).table.names


@pytest.mark.slow
def test_next_shows_an_entropy_that_its_parts_add_up_to(session):
    header, *lines, caption = run("next", "-s", session, "-n", 4, "--gain").splitlines()
    assert header.split()[3:9] == ["score", "entropy", "measure", "model", "overlap", "halved"]
    assert len(lines) == 4 and caption == "score: entropy"
    for line in lines:
        score, entropy, *parts, halved = map(float, line.split()[-9:-3])
        assert score > 0 and sum(parts) == pytest.approx(entropy, abs=0.002)
        assert 0 <= halved <= parts[0]


def test_names_are_no_markup(small_catalog, noisy_logistic, tmp_path, monkeypatch):
    Campaign.start(small_catalog, tmp_path / "c", classifier=noisy_logistic).close()
    names = ("[abc] S1", "S [/x]", "S :cat:")
    found = [Target(0, name, 1.0, 2.0, 0.5, {"bll": 1.0}, 0.1, 0.1, 0.1) for name in names]
    monkeypatch.setattr(Campaign, "ask", lambda *arguments, **options: found)
    monkeypatch.setattr("gpal.cli.commands.learn.next.start_tensorflow", lambda: None)
    text = run("next", "-s", tmp_path / "c")
    assert all(name in text for name in names)


@pytest.mark.parametrize(
    "arguments, words",
    [
        (("label", "4FGL J9999", "bll"), ["no source '4FGL J9999'"]),
        (("label", "4FGL J9999"), ["give SOURCE CLASS"]),
        (("label", "--csv", "missing.csv"), ["cannot read 'missing.csv'"]),
        (("label", "4FGL J9999", "--csv", "some.csv"), ["give SOURCE CLASS"]),
        (("label", "--at", 1, 2, "--csv", "some.csv"), ["give SOURCE CLASS"]),
        (("label", "4FGL J9999", "bll", "--radius", 3), ["--radius is for positions"]),
        (("export", "labels.csv", "--labels", "-n", 5), ["--labels and --history exclude"]),
        (("export", "labels.csv", "--history", "--limit", "dec:0:"), ["one by one"]),
        (("undo",), ["no label to take back"]),
        (("export", "targets.txt"), ["should end in one of"]),
        (("export", "targets.csv"), ["no model of this release yet"]),
        (("next", "--limit", "dec"), ["not NAME:LOW:HIGH"]),
        (("next", "--limit", "dec:-30:", "--limit", "dec::30"), ["two limits on 'dec'"]),
        (("next", "--airmass", "1.5"), ["--airmass needs the site's --latitude"]),
        (("merge", "nothing.fits"), ["nothing.fits"]),
    ],
)
def test_bad_input_is_one_line(session, arguments, words):
    text = run(*arguments, "--session", session, code=2)
    assert text.startswith("gpal: ") and len(text.splitlines()) == 1
    assert all(word in text for word in words)


def starts_tensorflow(*arguments):
    """Whether `gpal learn ARGUMENTS` does, as a program of its own."""
    program = f"""
import sys
from gpal.cli import main
sys.argv = ["gpal", "learn", *{[str(word) for word in arguments]!r}]
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
print("tensorflow" in sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], timeout=120, check=True, capture_output=True, text=True
    )
    return done.stdout.splitlines()[-1] == "True"


def test_labelling_and_asking_again_need_no_tensorflow(small_catalog, noisy_logistic, tmp_path):
    folder = tmp_path / "c"
    Campaign.start(small_catalog, folder, classifier=noisy_logistic).close()
    with Campaign(folder, noisy_logistic) as campaign:
        assert not campaign.model_is_current()
        name = campaign.ask(2)[0].name
        assert campaign.model_is_current()
    assert not starts_tensorflow("next", "-n", 2, "-s", folder)
    assert not starts_tensorflow("refit", "-s", folder)
    assert not starts_tensorflow("label", name, "psr", "-s", folder)
    with Campaign(folder) as campaign:
        assert not campaign.model_is_current()


@pytest.mark.slow
def test_a_label_is_learned_from_the_model_file(session):
    """Versions between two full fits share their hyper-parameters, across processes."""
    with Campaign(session) as campaign:
        row = campaign.ask(1)[0].row
        source = int(campaign.table.ids[row])
        before = campaign.scores()
        campaign.label([Given(source, "psr", "")])
    with Campaign(session) as campaign:
        after = campaign.refit()
        models = campaign.store.models()
        kernels = []
        for number in (1, 2):
            with np.load(campaign.models.file(number)) as archive:
                kernels.append(archive["Z"])
    assert [m["learned_at"] for m in models] == [90, 90]
    assert np.array_equal(*kernels)
    psr = after.classes.index("psr")
    assert after.probabilities[row, psr] > before.probabilities[row, psr]


@pytest.mark.slow
def test_simulate_waveform(tmp_path):
    out = tmp_path / "study"
    options = ("--repeats", 2, "--queries", 2, "--initial", 30, "--n-inducing", 5, "-o", out)
    text = run("simulate", "waveform", *options, "--batch", 2)
    assert "entropy" in text and "random" in text and "against random at 32 labels" in text
    assert (out / "learning_curve.png").stat().st_size > 10_000
    assert "other settings" in run("simulate", "waveform", *options, "--seed", 1, code=2)
    model = json.loads((out / "study.json").read_text())["classifier"]
    assert {**model, **RECOMMENDED_MODEL} == model  # what a campaign takes
    for source, option in (("waveform", ("--class", "bogus")), ("4fgl-dr4", ("--noise", 0.1))):
        assert f"{option[0]}" in run("simulate", source, *option, code=2)
    assert "no strategy" in run("simulate", "waveform", "--strategy", "luck", code=2)
