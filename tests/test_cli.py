"""The command line: what it prints, its exit codes, and that it starts without TensorFlow."""

from __future__ import annotations

import importlib
import inspect
import json
import os
import subprocess
import sys

import numpy as np
import pytest
import typer
from astropy.table import Table
from typer.testing import CliRunner

import gpal
from gpal.catalog import known_catalogs, load_catalog
from gpal.cli import app
from gpal.cli.catalogs import with_classes
from gpal.cli.commands import classify as classify_command
from gpal.cli.groups import add_commands
from gpal.cli.main import with_home
from gpal.cli.options import ModelOptions
from gpal.errors import InputError
from gpal.jobs.result_folder import MARK
from gpal.tensorflow_start import NOTICES

SCHEMA = """
id = "name"
class = "kind"
ra = "RAJ2000"
dec = "DEJ2000"

[features.log_flux]
column = "Flux1000"
transform = "log10"

[features.index]
column = "LP_Index"

[features.log_variability]
column = "Variability_Index"
error = "none"
transform = "log10"
"""


def run(*arguments):
    """Exit code, stdout and stderr of `gpal ARGUMENTS`, in this process."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


def run_python(program: str) -> subprocess.CompletedProcess:
    """In a process group of its own, so that it may signal all of it."""
    return subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=120,
        start_new_session=True,
    )


@pytest.fixture(scope="module")
def small_catalog(tmp_path_factory):
    """40 real sources of each of three classes and 30 without one, as CSV and schema of a user."""
    sources = load_catalog("4fgl-dr4")
    rows = [i for group in sources.classes for i in (sources.y == group).nonzero()[0][:40]]
    rows += list((sources.labels == "").nonzero()[0][:30])
    small = sources[rows]
    table = Table({"name": small.names, "kind": small.y})
    for column in (
        *("RAJ2000", "DEJ2000", "Flux1000", "Unc_Flux1000"),
        *("LP_Index", "Unc_LP_Index", "Variability_Index"),
    ):
        table[column] = small.table[column]
    folder = tmp_path_factory.mktemp("small")
    table.write(folder / "small.csv", format="ascii.csv")
    (folder / "small.toml").write_text(SCHEMA)
    return folder / "small.csv", folder / "small.toml"


def test_version():
    assert run("--version") == (0, f"gpal {gpal.__version__}\n", "")


def test_help_names_every_command_and_shows_examples():
    code, overview, _ = run("--help")
    assert code == 0
    assert all(command in overview for command in ("catalogs", "classify", "report"))
    code, text, _ = run("classify", "--help")
    assert code == 0
    assert "gpal classify 4fgl-dr4" in text


@pytest.mark.parametrize("arguments", [["--help"], ["classify", "--help"], ["catalogs"]])
def test_starts_without_the_heavy_libraries(arguments):
    program = f"""
import sys
from gpal.cli import main
sys.argv = ["gpal", *{arguments!r}]
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
heavy = {{"tensorflow", "gpflow", "sklearn", "matplotlib"}} & set(sys.modules)
sys.exit(f"loaded {{heavy}}" if heavy else 0)
"""
    done = run_python(program)
    assert done.returncode == 0, done.stderr


def test_a_new_command_is_a_file(tmp_path, monkeypatch):
    """A module is a command, a package a group, a dataclass of options its fields."""
    files = {
        "__init__.py": "",
        "count_to.py": """
            from gpal.cli.options import ModelOptions

            SEVEN = ModelOptions(n_inducing=7)

            def run(number: int, step: int = 1, *, model: ModelOptions = SEVEN):
                print(number, step, model)
            """,
        "deeper/__init__.py": '"""A group."""',
        "deeper/hello.py": "def run(): print('hello')",
        "alone/__init__.py": "def run(): print('alone')",
        "alone/hello.py": "def run(): print('not alone')",
    }
    for name, content in files.items():
        path = tmp_path / "new_commands" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(inspect.cleandoc(content))
    monkeypatch.syspath_prepend(tmp_path)
    program = typer.Typer()
    add_commands(program, importlib.import_module("new_commands"))

    def out(*arguments):
        result = CliRunner().invoke(program, arguments)
        assert result.exit_code == 0, result.output
        return result.stdout.strip()

    for options, expected in (
        (("--inference", "svgp"), (1, ModelOptions(inference="svgp", n_inducing=7))),
        (("--step", "2", "--n-inducing", "5"), (2, ModelOptions(n_inducing=5))),
    ):
        assert out("count-to", "3", *options) == f"3 {expected[0]} {expected[1]}"
    assert out("deeper", "hello") == "hello" and "A group." in out("deeper", "--help")
    assert out("alone") == "alone" and out("alone", "hello") == "not alone"


def test_catalogs_lists_every_release():
    code, table, _ = run("catalogs")
    assert code == 0
    lines = {line.split()[0]: line for line in table.splitlines() if line.strip()}
    for info in known_catalogs():
        assert str(info.n_sources) in lines[info.name]


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["4fgl-dr44"], ["4fgl-dr44", "did you mean", "4fgl-dr4"]),
        (["missing.csv"], ["missing.csv", "check the path"]),
        (["4fgl", "--cut", "Signif_Avg above 30"], ["Signif_Avg above 30", "column > number"]),
        (["4fgl", "--cut", "Signif > 30"], ["Signif", "Signif_Avg"]),
        (["4fgl", "--features", "papper"], ["papper", "paper"]),
        (["4fgl", "--class", "bll,fsqr"], ["fsqr", "fsrq"]),
        (["4fgl", "--confidence", "2"], ["confidence"]),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(arguments, words, tmp_path):
    code, stdout, stderr = run("classify", *arguments, "--out", tmp_path / "results")
    assert code == 2
    assert not stdout or " sources: " in stdout.splitlines()[0]  # what was read
    assert stderr.startswith("gpal: ") and stderr.count("\n") == 1
    assert all(word in stderr for word in words)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", ["classify", "validate", "learn start", "learn simulate"])
@pytest.mark.parametrize(
    "options, words",
    [
        (["--likelihood", "softmx"], ["softmx", "softmax"]),
        (["--input-noise", "first_odrer"], ["first_odrer", "first_order"]),
        (["--inference", "sties"], ["sties", "sites"]),
        (["--inference", "taylor", "--likelihood", "softmax"], ["taylor", "bernoulli_logit"]),
    ],
)
def test_settings_are_checked_before_data_are_read(command, options, words, monkeypatch, tmp_path):
    def read(*arguments, **_):
        raise AssertionError("data were read")

    monkeypatch.setattr("gpal.catalog.load_catalog", read)
    releases = ["4fgl", "4fgl-dr4"] if command == "validate" else ["4fgl"]
    where = "--session" if command == "learn start" else "--out"
    code, _, stderr = run(*command.split(), *releases, *options, where, tmp_path / "out")
    assert code == 2 and stderr.startswith("gpal: ") and stderr.count("\n") == 1
    assert all(word in stderr for word in words)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", ["start", "simulate"])
def test_strategies_are_checked_before_data_are_read(command, monkeypatch):
    monkeypatch.setattr("gpal.catalog.load_catalog", None)
    code, _, stderr = run("learn", command, "4fgl", "--strategy", "entrpy")
    assert code == 2 and "entrpy" in stderr and "bald, entropy" in stderr


def test_settings_that_the_classes_do_not_allow_come_before_cross_validation(
    small_catalog, tmp_path, monkeypatch
):
    def validation(*arguments, **_):
        raise AssertionError("cross-validation has started")

    monkeypatch.setattr("gpal.jobs.classification.cross_validate", validation)
    csv, schema = small_catalog
    options = ["--schema", schema, "--likelihood", "bernoulli_logit", "--out", tmp_path / "out"]
    code, _, stderr = run("classify", csv, *options, "--class", "bll,fsrq,psr")
    assert code == 2 and "bernoulli_logit" in stderr and stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_unwritable_folder(tmp_path):
    (tmp_path / "file").write_text("")
    code, _, stderr = run("classify", "4fgl", "--out", tmp_path / "file" / "results")
    assert code == 2
    assert stderr.startswith("gpal: cannot write") and stderr.count("\n") == 1
    assert "another" in stderr


def test_a_command_of_a_group_is_named_with_its_group():
    done = run_python("import sys; from gpal.cli import main; sys.argv[1:] = ['next']; main()")
    assert done.returncode == 2 and "learn next'?" in done.stderr
    assert (
        "Did you mean 'classify'"
        in run_python(
            "import sys; from gpal.cli import main; sys.argv[1:] = ['clasify']; main()"
        ).stderr
    )


def test_report_of_a_folder_without_results(tmp_path):
    code, _, stderr = run("report", tmp_path)
    assert code == 2
    assert stderr.startswith("gpal: ") and stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_interrupt_is_exit_code_130(monkeypatch):
    def interrupted(*arguments, **settings):
        raise KeyboardInterrupt

    monkeypatch.setattr("gpal.catalog.load_catalog", interrupted)
    assert run("classify", "4fgl")[0] == 130


def test_defaults_are_those_of_the_library():
    from gpal.jobs import classify

    library = {k: p.default for k, p in inspect.signature(classify).parameters.items()}
    command = {k: p.default for k, p in inspect.signature(classify_command.run).parameters.items()}
    for option, argument in (
        *(("folds", "n_splits"), ("repeats", "n_repeats")),
        *(("confidence", "confidence"), ("seed", "random_state")),
    ):
        assert command[option] == library[argument]


def test_notices_are_dropped_and_the_last_words_of_a_crash_are_not():
    done = run_python(f"""
import os
from gpal.tensorflow_start import without_tensorflow_notices
os.write(2, b"before\\n")
with without_tensorflow_notices():
    for notice in {NOTICES!r}:
        os.write(2, f"I0000 {{notice}} and more\\n".encode())
os.write(2, b"after\\n")
with without_tensorflow_notices():
    os.write(2, b"F0000 this processor lacks AVX\\n")
    os.abort()
""")
    assert done.returncode not in (0, 1)
    assert done.stderr == "before\nafter\nF0000 this processor lacks AVX\n"


def test_a_fit_and_a_load_from_python_print_nothing(tmp_path):
    start = "import numpy as np, gpal, gpal.classifier as of\nX = np.random.default_rng(0).normal"
    path = tmp_path / "model.npz"
    for code in (
        "of.GPClassifier().check_settings(3, 2)\n"
        "m = of.GPClassifier(max_rounds=0, n_inducing=4).fit(X(size=(20, 2)), [0, 1] * 10, X_err=1)"
        f"\nm.save({str(path)!r})",
        f"of.GPClassifier.load({str(path)!r}).predict(X(size=(2, 2)), X_err=1)",
    ):
        done = run_python(f"{start}\n{code}")
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_start_has_its_threads_and_leaves_docstrings_alone_until_gpflow_is_there():
    done = run_python("""
from check_shapes import check_shapes
from gpal.tensorflow_start import start_tensorflow
start_tensorflow(threads=1)
import gpflow, tensorflow

@check_shapes("x: [n]")
def own(x):
    \"\"\"Sum.

    :param x: Numbers.
    \"\"\"

theirs = gpflow.conditionals.util.base_conditional
print("has shape" in theirs.__doc__, "has shape" in own.__doc__)
print(tensorflow.config.threading.get_intra_op_parallelism_threads())
""")
    assert done.stdout.split() == ["False", "True", "1"], done.stderr


def test_the_program_imports_one_keras_and_a_user_may_ask_for_the_other(monkeypatch):
    code = """
import os, sys
from gpal.cli.process import prepare_process
prepare_process()
from gpal.tensorflow_start import start_tensorflow
start_tensorflow()
import tensorflow as tf
print("keras" in sys.modules, "tf_keras" in sys.modules, tf.keras.optimizers.Adam.__module__)
"""
    monkeypatch.delenv("TF_USE_LEGACY_KERAS", raising=False)
    done = run_python(code)
    assert done.stdout.split()[:2] == ["False", "True"], done.stderr
    assert done.stdout.split()[2].startswith("tf_keras.")
    monkeypatch.setenv("TF_USE_LEGACY_KERAS", "0")
    done = run_python(code)
    assert done.stdout.split()[0] == "True", done.stderr
    assert done.stdout.split()[2].startswith("keras.")


def test_warnings_that_are_errors_end_no_other_process_of_a_job():
    """As by PYTHONWARNINGS=error, but for old libraries that warn when they are imported."""
    done = run_python("""
import os, time, warnings
from gpal.cli.process import prepare_process
from gpal.parallel import in_parallel
os.environ["PYTHONWARNINGS"] = "error"
warnings.simplefilter("error")
prepare_process()
def remark(_):
    time.sleep(0.2)  # else this process does them all
    warnings.warn("old-fashioned", DeprecationWarning)
    return os.getpid()
print(len(set(dict(in_parallel(remark, range(3), 2)).values())))
""")
    assert (done.returncode, done.stdout) == (0, "2\n"), done.stderr


def test_interrupt_while_tensorflow_starts_prints_nothing():
    done = run_python("""
import os, signal, subprocess, sys
from gpal.tensorflow_start import without_tensorflow_notices
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
started, filters = subprocess.Popen, []
def popen(arguments, **options):
    code = arguments.index("-c") + 1
    arguments[code] = "print('reading', flush=True)" + arguments[code]
    filters.append(started(arguments, stdout=subprocess.PIPE, **options))
    return filters[0]
subprocess.Popen = popen
try:
    with without_tensorflow_notices():
        assert filters[0].stdout.readline() == b"reading\\n"
        os.killpg(0, signal.SIGINT)
        signal.pause()
except KeyboardInterrupt:
    sys.exit(130)
""")
    assert (done.returncode, done.stderr) == (130, "")


def test_termination_removes_half_written_results(tmp_path):
    done = run_python(f"""
import os, signal, sys
import gpal.report
from gpal.cli import main
from gpal.files.output import staged_folder
def terminated(folder):
    with staged_folder(folder) as staging:
        (staging / "half").write_text("")
        os.kill(os.getpid(), signal.SIGTERM)
        signal.pause()
gpal.report.render_report = terminated
sys.argv = ["gpal", "report", {str(tmp_path / "results")!r}]
main()
""")
    assert (done.returncode, done.stderr) == (143, "")
    assert list(tmp_path.iterdir()) == []


def test_groups_and_stored_error_scale_reach_the_catalog(monkeypatch, tmp_path):
    seen = []

    def only_look(catalog, out, **_):
        seen.append(catalog)
        raise InputError("seen")

    monkeypatch.setattr("gpal.jobs.classification.classify", only_look)
    monkeypatch.setattr("gpal.cli.commands.classify.start_tensorflow", lambda *_: None)
    groups = ("--class", "agn=bll+fsrq", "--class", "psr")
    code, _, stderr = run("classify", "4fgl-dr4", *groups, "--error-scale", "stored")
    assert (code, stderr) == (2, "gpal: seen\n")
    plain = load_catalog("4fgl-dr4")
    assert seen[0].groups == {"psr": ("psr", "msp"), "agn": ("bll", "fsrq")}
    scale = plain.schema.error_calibration.scale
    factors = [scale.get(name, 1.0) for name in plain.feature_names]
    np.testing.assert_allclose(seen[0].X_err, plain.X_err * factors)
    assert seen[0].measurements.covariance is not None  # the calibration has correlations
    scaled = (*groups, "--error-scale", "stored")
    code, stdout, _ = run("learn", "start", "4fgl-dr4", *scaled, "--session", tmp_path / "agn")
    labelled = np.isin(plain.labels, ["bll", "fsrq", "psr", "msp"]).sum()
    assert code == 0 and f"{labelled} labelled sources" in stdout


def test_classify_from_csv_to_report(small_catalog, tmp_path):
    csv, schema = small_catalog
    out = tmp_path / "results"
    options = ["--schema", schema, "--class", "bll,fsrq", "--class", "psr", "--folds", "2"]
    code, stdout, _ = run("classify", csv, *options, "--out", out, "--seed", "3")
    assert code == 0
    assert "120 labelled sources (40 bll, 40 fsrq, 40 psr), 30 to classify" in stdout
    assert "logistic regression" in stdout
    assert stdout.rstrip().endswith(os.path.join("results", "report.html"))

    metrics = json.loads((out / "metrics.json").read_text())
    assert metrics["settings"]["n_splits"] == 2
    assert metrics["provenance"]["random_state"] == 3
    table = Table.read(out / "probabilities.fits")
    assert len(table) == 150
    new = table[table["candidate"]]
    assert len(new) == 30
    for name in ("bll", "fsrq", "psr"):
        assert f"{(new['prediction'] == name).sum()} {name}" in stdout
    assert f"{(new['prediction'] == 'MIXED').sum()} stay MIXED" in stdout

    page = out / "report.html"
    first = page.read_text()
    page.unlink()
    code, stdout, _ = run("report", out)
    assert (code, stdout) == (0, f"{page}\n")
    assert page.read_text() == first


def test_other_is_what_no_class_of_ones_own_takes():
    catalog = load_catalog("4fgl-dr4")
    found = with_classes(catalog, ["agn=bll+fsrq", "psr,other"])
    assert list(found.groups) == ["agn", "psr", "other"]
    assert not {"bll", "fsrq", "psr", "msp"} & set(found.groups["other"])
    with pytest.raises(InputError, match="write a new group with its classes"):
        with_classes(catalog, ["agn=bll", "agn=fsrq"])


@pytest.mark.parametrize(
    "arguments, words",
    [
        ("schema check 4fgl --features index,index", "feature 'index' is named twice"),
        ("learn start 4fgl-dr4 --open", "--open has a class 'other'"),
        ("catalogs calibrate-errors 4fgl 4fgl-dr4 --out a.csv", "'a.csv' should end in .toml"),
        ("learn report --out labels.csv", "'labels.csv' should end in .html"),
        ("predict . 4fgl", "is a folder; give 'model.npz'"),
    ],
)
def test_what_is_no_answer_is_refused(arguments, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.npz").touch()
    code, _, stderr = run(*arguments.split())
    assert code == 2 and words in stderr and stderr.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["model.npz"]


def test_one_feature_needs_no_comma():
    code, stdout, _ = run("schema", "check", "4fgl-dr4", "--features", "index")
    assert code == 0 and "index" in stdout
    assert load_catalog("4fgl-dr4", features="index").provenance["feature_set"] is None


def test_the_home_is_meant_by_a_tilde_that_the_shell_left(monkeypatch):
    monkeypatch.setenv("HOME", "/home/me")
    typed = ["--out=~/results", "~/a.csv", "--cut=a > ~b", "a~b", "--note", "x=~/y"]
    assert [with_home(word) for word in typed] == [
        *("--out=/home/me/results", "/home/me/a.csv", "--cut=a > ~b", "a~b", "--note", "x=~/y")
    ]


def test_a_pipe_and_a_folder_are_no_catalogs(tmp_path):
    os.mkfifo(tmp_path / "rows.csv")
    with pytest.raises(InputError, match="is a pipe, which cannot be read twice"):
        load_catalog(tmp_path / "rows.csv")
    with pytest.raises(InputError, match="is a folder; give a file"):
        load_catalog(tmp_path)


def test_files_do_not_take_the_place_of_a_survey(small_catalog, tmp_path):
    (tmp_path / MARK).touch()
    csv, schema = small_catalog
    code, _, stderr = run("classify", csv, "--schema", schema, "--out", tmp_path)
    assert code == 2 and "holds results of a survey in HATS layout" in stderr
    assert [path.name for path in tmp_path.iterdir()] == [MARK]
