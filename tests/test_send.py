"""`gpal send` against a hub of astropy on this machine, and programs that do as they are told."""

from __future__ import annotations

from urllib.parse import urlsplit
from urllib.request import url2pathname

import numpy as np
import pytest
from astropy.table import Table
from pyvo import samp
from typer.testing import CliRunner

from gpal.cli import app
from gpal.errors import InputError
from gpal.jobs import sending
from gpal.jobs.probability_catalogue import write_tables
from gpal.jobs.sending import send_source, send_table
from gpal.provenance import provenance


class Program:
    """A client that answers as TOPCAT does, and keeps what it was told."""

    def __init__(self, name, kinds, error=""):
        self.told, self.error = [], error
        self.client = samp.SAMPIntegratedClient(
            metadata={"samp.name": name}, addr="127.0.0.1", callable=True
        )
        self.client.connect()
        for kind in kinds:
            self.client.bind_receive_call(kind, self.answer)

    def answer(self, private_key, sender, message_id, kind, said, extra):
        self.told.append((kind, dict(said)))
        status = "samp.error" if self.error else "samp.ok"
        reply = {"samp.status": status, "samp.result": {}}
        if self.error:
            reply["samp.error"] = {"samp.errortxt": self.error}
        if self.error is not None:
            self.client.reply(message_id, reply)


@pytest.fixture
def no_hub(tmp_path, monkeypatch):
    monkeypatch.setenv("SAMP_HUB", f"std-lockurl:{(tmp_path / 'samp').as_uri()}")


@pytest.fixture
def hub(tmp_path, no_hub):
    with samp.conf.set_temp("use_internet", False):
        hub = samp.SAMPHubServer(
            addr="127.0.0.1", lockfile=str(tmp_path / "samp"), web_profile=False, timeout=60
        )
        hub.start()
        programs = []
        try:
            yield lambda *arguments: programs.append(Program(*arguments)) or programs[-1]
        finally:
            for program in programs:
                program.client.disconnect()
            hub.stop()


@pytest.fixture
def results(tmp_path):
    table = Table(
        {"name": ["β Cas", "S 2", "S 3"], "ra": [2.25, 10.0, np.nan], "dec": [59.1, 2, 3]}
    )
    folder = tmp_path / "my results"
    folder.mkdir()
    origin = provenance({"catalog": "own"}, {}, 0)
    for column in table.itercols():
        column.description = column.name
    write_tables(table, folder, origin)
    return folder


def test_a_table_is_loaded_by_whoever_takes_it(hub, results):
    topcat, fits_only = hub("topcat", ["table.load.*"]), hub("ds9", ["table.load.fits"])
    other = hub("player", ["image.load.fits"])
    assert sorted(send_table(results)) == ["ds9", "topcat"]
    ((kind, said),) = topcat.told
    assert kind == "table.load.fits" and said["name"] == "my results (gpal)"
    assert len(Table.read(url2pathname(urlsplit(said["url"]).path))) == 3
    assert fits_only.told == topcat.told and other.told == []
    assert send_table(results, to="TOPCAT") == ["topcat"] and len(fits_only.told) == 1
    votable = results / "targets.vot"
    Table({"a": [1]}).write(votable, format="votable")
    assert send_table(votable) == ["topcat"]
    assert topcat.told[-1][0] == "table.load.votable"


def test_programs_point_at_a_source(hub, results):
    aladin = hub("Aladin", ["coord.pointAt.sky"])
    answer = CliRunner().invoke(app, ["send", str(results), "--source", "β Cas"])
    assert answer.exit_code == 0 and answer.stdout == "pointed at by Aladin\n"
    assert aladin.told == [("coord.pointAt.sky", {"ra": "2.25", "dec": "59.1"})]
    with pytest.raises(InputError, match="no position of 'S 3'"):
        send_source(results, "S 3")
    with pytest.raises(InputError, match=r"no source 'S 4' in the table; did you mean"):
        send_source(results, "S 4")


def test_what_goes_wrong_is_one_line(hub, results, monkeypatch):
    with pytest.raises(InputError, match=r"no program at the SAMP hub takes 'table.load.fits'"):
        send_table(results)
    hub("topcat", ["table.load.fits"], "out of\nmemory")
    with pytest.raises(InputError, match=r"topcat did not take it: out of\\nmemory"):
        send_table(results)
    monkeypatch.setattr(sending, "PATIENCE", 0.5)
    hub("slow", ["coord.pointAt.sky"], None)
    with pytest.raises(InputError, match=r"no answer from slow within 0.5 s"):
        send_source(results, "S 2")
    with pytest.raises(InputError, match="no program 'topca' at the hub; did you mean 'topcat'"):
        send_table(results, to="topca")


def test_without_a_hub(no_hub, results, tmp_path):
    for path in (results, results / "probabilities.fits"):
        answer = CliRunner().invoke(app, ["send", str(path)])
        assert answer.exit_code == 2 and answer.stderr.startswith("gpal: no SAMP hub runs")
        assert answer.stderr.count("\n") == 1
    (tmp_path / "samp").write_text(  # of a hub that was killed
        "samp.secret=abc\nsamp.hub.xmlrpc.url=http://127.0.0.1:9/\nsamp.profile.version=1.3\n"
    )
    with pytest.raises(InputError, match="no SAMP hub runs"):
        send_table(results)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("nothing", "should end in .fits, .vot"),
        ("nothing.fits", "no file"),
        ("my results/probabilities.csv", "should end in"),
        ("campaign", "is a campaign: write its targets"),
    ],
)
def test_what_is_no_table_is_refused(no_hub, results, tmp_path, path, message):
    (tmp_path / "campaign").mkdir()
    (tmp_path / "campaign" / "campaign.sqlite").write_text("")
    with pytest.raises(InputError, match=message):
        send_table(tmp_path / path)
