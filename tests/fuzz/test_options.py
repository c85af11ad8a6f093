"""Random values for the options of every command: an answer or one clear line, never a traceback.

No model is fitted: where a fit would begin, the options have passed. `--mutations N` says how many
command lines of every command.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import numpy as np
import pytest
import typer
from harness import SECONDS, Fault, Tally, time_limit
from mutations import CELLS
from typer.testing import CliRunner

from gpal.active.campaign import Campaign
from gpal.catalog import load_catalog
from gpal.classifier import GPClassifier
from gpal.cli import app
from gpal.errors import InputError

NUMBERS = (
    *("-1", "0", "1", "2", "3", "0.5", "-0.0", "nan", "inf", "-inf", "1e400", "1e-320", "1e3"),
    *("9223372036854775808", "-9223372036854775809", "1" + 30 * "0", "0x10", "1_000", "٣", ""),
)
TEXTS = (
    *(value for value in CELLS if "\0" not in value),  # no argument can hold one
    *("old.csv", "new.csv", "schema.toml", "folder", "campaign", "missing.csv", "missing/deeper"),
    *(
        ".",
        "..",
        "/dev/null",
        "link",
        "full.csv",
        "out.fits",
        "out.csv",
        "n" * 300,
        "a\nb",
        "\udcff",
    ),
    *(",", "=", "a=b", "a=b=c", "bll,bll", "bll,psr", "agn=bll+psr", "agn=", "bll=0.5,psr=0.5"),
    *("train", "estimated", "stored", "none", "index", "index > 2", "index >", "> 2", "index:1:2"),
    *(
        "index::",
        "::",
        "dec::nan",
        "dec:-inf:inf",
        "S095",
        "S000",
        "bll",
        "other",
        "default",
        "all",
    ),
    *(
        "entropy",
        "random",
        "softmax",
        "sites",
        "waveform",
        "4fgl-dr4",
        "-1",
        "--",
        "-",
        "~",
        "~nobody",
    ),
)
CATALOG = ("--schema", "schema.toml")
BOTH = ("--old-schema", "schema.toml", "--new-schema", "schema.toml")
SESSION = ("--session", "campaign")
# Every command as it should be called; options are added and arguments replaced at random.
COMMANDS = {
    "catalogs": ((), ()),
    "catalogs calibrate-errors": (("old.csv", "new.csv"), BOTH),
    "schema init": (("old.csv",), ()),
    "schema check": (("old.csv",), CATALOG),
    "classify": (("old.csv",), CATALOG),
    "predict": (("model.npz", "old.csv"), CATALOG),
    "validate": (("old.csv", "new.csv"), BOTH),
    "compare": (("old.csv", "new.csv"), (*BOTH, "--list", "list.csv")),
    "report": (("folder",), ()),
    "candidates": (("psr", "folder"), ()),
    "send": (("folder",), ()),
    "learn start": (("old.csv",), (*CATALOG, "--session", "new")),
    "learn next": ((), SESSION),
    "learn label": (("S095", "bll"), SESSION),
    "learn undo": ((), SESSION),
    "learn status": ((), SESSION),
    "learn export": (("out.csv",), SESSION),
    "learn merge": (("new.csv",), (*CATALOG, *SESSION)),
    "learn refit": ((), SESSION),
    "learn report": ((), SESSION),
    "learn simulate": (("old.csv",), (*CATALOG, "--initial", "20")),
}


class Reached(InputError):
    """A fit would begin."""

    def __init__(self, *_, **__):
        super().__init__("a fit would begin")


def commands(group=None, name="") -> Iterator[tuple[str, typer.core.TyperCommand]]:
    """Name -> command of the program, groups opened."""
    for stem, command in (group or typer.main.get_command(app)).commands.items():
        full = f"{name} {stem}".strip()
        if not hasattr(command, "commands") or command.invoke_without_command:
            yield full, command
        if hasattr(command, "commands"):
            yield from commands(command, full)


@pytest.fixture(scope="module")
def model(small_releases, tmp_path_factory):
    """A file of a model of old.csv."""
    path = tmp_path_factory.mktemp("model") / "model.npz"
    catalog = load_catalog(small_releases / "old.csv", schema=small_releases / "schema.toml")
    known = catalog[catalog.y != ""]
    GPClassifier(n_inducing=5, max_rounds=1).fit(known.measurements, known.y).save(path)
    return path


@pytest.fixture
def workplace(tmp_path, small_releases, model, monkeypatch):
    """A folder with all that TEXTS names, and nothing that fits."""

    def stop(*_, **__):
        raise Reached

    folder = tmp_path / "workplace"
    for place in (
        *("evaluation.any_classifier.fit", "evaluation.any_classifier.predict_proba"),
        *("jobs.classification.cross_validate", "jobs.validation.prospective_validation"),
        *("active.simulate.in_parallel", "classifier.GPClassifier.fit"),
    ):
        monkeypatch.setattr(f"gpal.{place}", stop)
    shutil.copytree(small_releases, folder)
    (folder / "folder").mkdir()
    shutil.copy(model, folder / "model.npz")
    (folder / "link").symlink_to("nothing")
    (folder / "full.csv").write_text("name,kind\n")
    (folder / "list.csv").write_text("name,p_bll,p_psr\nS060,0.5,0.5\nS070,0.25,0.75\n")
    schema = folder / "schema.toml"
    Campaign.start(load_catalog(folder / "old.csv", schema=schema), folder / "campaign").close()
    monkeypatch.chdir(folder)
    return folder


def command_line(name, command, rng) -> list[str]:
    """The command with some arguments replaced and some options added, with random values."""

    def value():
        pool = NUMBERS if rng.random() < 0.6 else TEXTS
        return pool[rng.integers(len(pool))]

    positional, needed = COMMANDS[name]
    arguments = [
        TEXTS[rng.integers(len(TEXTS))] if rng.random() < 0.15 else word for word in positional
    ]
    words = [*name.split(), *arguments, *needed]
    options = [p for p in command.params if p.param_type_name == "option" and p.name != "help"]
    for _ in range(int(rng.integers(0, 4)) if options else 0):
        option = options[rng.integers(len(options))]
        words.append(option.opts[rng.integers(len(option.opts))])
        if not option.is_flag:
            words += [value() for _ in range(option.nargs)]
    if rng.random() < 0.05:
        words.insert(int(rng.integers(len(words) + 1)), TEXTS[rng.integers(len(TEXTS))])
    return words


def outcome(words) -> tuple[str, str]:
    with time_limit(SECONDS):
        result = CliRunner().invoke(app, words)
    ended = result.exception is None or isinstance(result.exception, SystemExit)
    if "a hang: " in result.stderr:  # which the command line takes for the machine's fault
        return "fault", result.stderr
    if not ended:
        return "fault", f"{type(result.exception).__name__}: {result.exception}"
    if result.exit_code == 0:
        return "answered", ""
    lines = result.stderr.splitlines()
    one_line = [line for line in lines if line.startswith("gpal: ")]
    clear = all(line.isprintable() for line in lines) and len(result.stderr) < 20_000
    if result.exit_code in (1, 2) and clear and lines[-1:] == one_line:
        return ("a fit would begin" if "a fit would begin" in lines[-1] else "refused"), ""
    if result.exit_code == 2 and clear and not one_line and "Usage:" in result.stderr:
        return "usage", ""
    return "fault", f"exit code {result.exit_code}: {result.stderr[-600:]!r}"


def test_every_command_is_here():
    assert {name for name, _ in commands()} == set(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_options_are_taken_or_refused(name, workplace, request):
    number = request.config.getoption("--mutations")
    first = request.config.getoption("--first-seed")
    command, tally = dict(commands())[name], Tally()
    for seed in range(first, first + number):
        words = command_line(name, command, np.random.default_rng(seed))
        what, why = outcome(words)
        shutil.rmtree("new", ignore_errors=True)
        tally.outcomes[what] += 1
        if what == "fault":
            tally.faults.append(Fault(f"gpal {words}", seed, why))
    line = f"gpal {name}: seeds {first} to {first + number - 1}: {tally}"
    print(line)
    request.node.user_properties.append(("attack", line))
    shown = "\n".join(map(str, tally.faults[:10]))
    assert not tally.faults, f"{len(tally.faults)} faults\n{shown}"
