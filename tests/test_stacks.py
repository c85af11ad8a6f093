"""The stacks that gpal runs on: newest and oldest, beside the packages of the field, and without
GPflow."""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata, util
from pathlib import Path

import numpy as np
import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from gpal.errors import InputError, as_python

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
REQUIRED = {
    canonicalize_name(each.name): each
    for each in map(Requirement, [*PROJECT["dependencies"], *EXTRAS["gpflow"]])
}
HERE = [each for each in REQUIRED.values() if each.marker is None or each.marker.evaluate()]
OLDEST = Path(sys.prefix).name == ".venv-oldest"
NEWEST = ROOT / ".venv" / "bin" / "python"


def lowest(specifier: SpecifierSet) -> Version:
    return max(Version(each.version) for each in specifier if each.operator == ">=")


# ---- versions ------------------------------------------------------------------------------------


def test_every_dependency_has_a_lower_and_an_upper_bound():
    extras = map(Requirement, [*EXTRAS["dask"], *EXTRAS["hats"]])
    for each in [*REQUIRED.values(), *extras]:
        assert {one.operator for one in each.specifier} == {">=", "<"}, each


def test_what_is_installed_is_within_the_bounds_and_the_oldest_is_the_oldest():
    for each in HERE:
        installed = Version(metadata.version(each.name))
        assert installed in each.specifier, f"{each.name} {installed}"
        if OLDEST:
            assert installed == lowest(each.specifier), f"{each.name} {installed}"


def test_what_gpflow_needs_is_installed_with_gpal():
    """pip does not see to it: it is told to leave GPflow's declaration alone."""
    for each in map(Requirement, metadata.requires("gpflow") or []):
        name = canonicalize_name(each.name)
        if each.marker is None or each.marker.evaluate({"extra": ""}):
            if name in ("setuptools", "typing-extensions", "packaging"):  # of many others
                assert util.find_spec(name.replace("-", "_")), name
            else:
                assert name in REQUIRED, each
                assert name == "numpy" or REQUIRED[name].specifier & each.specifier, each


@pytest.mark.parametrize("stack", ["newest", "oldest"])
def test_a_lock_has_every_dependency_in_a_version_that_is_allowed(stack):
    lines = (ROOT / "requirements" / f"{stack}.txt").read_text().splitlines()
    pins = dict(line.split("==") for line in lines if not line.startswith("#"))
    locked = {canonicalize_name(name): Version(pin) for name, pin in pins.items()}
    for name, each in REQUIRED.items():
        if name == "tomli":  # Python 3.10
            continue
        assert locked[name] in each.specifier
        assert stack == "newest" or locked[name] == lowest(each.specifier)
    assert locked["numpy"].major == (2 if stack == "newest" else 1)


# ---- the same numbers ----------------------------------------------------------------------------

FIT = """
import sys
import gpal, numpy as np
catalog = gpal.load_catalog("4fgl-dr4")
known, others = catalog.labelled(["bll", "fsrq", "psr"]), catalog.unlabelled()
known, others = known[::2], others[::4]
model = gpal.GPClassifier().fit(known.measurements, known.y)
np.save(sys.argv[1], model.predict_proba(others.measurements))
"""


@pytest.mark.skipif(not OLDEST or not NEWEST.exists(), reason="needs the other environment")
def test_the_probabilities_of_both_stacks_agree(tmp_path):
    """To 1e-6: hyper-parameters are searched for in float64 where there are few classes."""
    found = []
    for python in (Path(sys.executable), NEWEST):
        file = tmp_path / f"{python.parts[-3]}.npy"
        subprocess.run([python, "-c", FIT, file], check=True, cwd=ROOT)
        found.append(np.load(file))
    np.testing.assert_allclose(*found, rtol=0, atol=1e-6)


# ---- beside the packages of the field ------------------------------------------------------------

BESIDE = """
import astropy, dask, gammapy.catalog, hats, lsdb, numpy
from gpal.cli import main
main()
"""


@pytest.mark.skipif(util.find_spec("gammapy") is None, reason="make test-beside")
def test_the_main_job_runs_where_gammapy_and_lsdb_are_imported(tmp_path):
    assert Version(metadata.version("astropy")).major >= 8
    assert Version(metadata.version("gammapy")) >= Version("2.1")
    job = ("classify", "4fgl-dr4", "--folds", "2", "--out", tmp_path / "results")
    subprocess.run([sys.executable, "-c", BESIDE, *job], check=True, cwd=tmp_path)
    assert (tmp_path / "results" / "report.html").exists()


# ---- without GPflow ------------------------------------------------------------------------------

WITHOUT = "import sys; sys.modules['gpflow'] = None\n"


def without_gpflow(code: str, *arguments: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "-c", WITHOUT + code, *arguments]
    return subprocess.run(command, capture_output=True, text=True)


def test_without_gpflow_one_line_says_what_to_type():
    done = without_gpflow("import gpal\ngpal.load_catalog('4fgl-dr4')\ngpal.GPClassifier")
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert "GPflow is not installed" in last and "pip install --no-deps gpflow" in last


@pytest.mark.parametrize("command", ["classify", "validate", "predict", "learn start"])
def test_without_gpflow_a_command_refuses_before_it_reads_anything(command):
    files = ("none.fits",) if command in ("classify", "learn start") else ("none.fits", "none.fits")
    done = without_gpflow("from gpal.cli import main\nmain()", *command.split(), *files)
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1
    assert "pip install --no-deps gpflow" in done.stderr


def test_without_gpflow_what_fits_nothing_works():
    for arguments in (["--help"], ["catalogs"], ["schema", "check", "4fgl-dr4"]):
        done = without_gpflow("from gpal.cli import main\nmain()", *arguments)
        assert done.returncode == 0, done.stderr
    compared = without_gpflow("import gpal\nassert callable(gpal.compare)")
    assert compared.returncode == 0, compared.stderr


# ---- without docstrings --------------------------------------------------------------------------


def without_docstrings(*arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-OO", *arguments], capture_output=True, text=True)


def test_without_docstrings_one_line_says_why_no_model_is_fitted():
    for code in (
        "import gpal\ngpal.load_catalog('4fgl-dr4')\ngpal.GPClassifier",
        "from gpal.classifier import GPClassifier\nGPClassifier().fit([[1.0], [2.0]], [0, 1])",
    ):
        done = without_docstrings("-c", code)
        assert done.returncode == 1 and "-OO" in done.stderr.splitlines()[-1]
    done = without_docstrings("-m", "gpal", "classify", "none.fits")
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("gpal: python -OO")


# ---- messages ------------------------------------------------------------------------------------


def test_messages_show_values_in_pythons_own_types():
    value = {np.str_("a"): np.float64(0.5), "b": [np.int64(1), (np.bool_(True), None)]}
    assert repr(as_python(value)) == "{'a': 0.5, 'b': [1, [True, None]]}"
    assert repr(as_python(np.array(["a", "b"]))) == "['a', 'b']"
    assert repr(as_python(np.array([np.str_("a"), None], dtype=object))) == "['a', None]"


def test_a_prior_is_shown_as_it_was_given():
    from gpal import GPClassifier

    X = np.random.default_rng(0).normal(size=(40, 2))
    model = GPClassifier(prior={np.str_("a"): np.float64(0.5)}, max_rounds=1)
    with pytest.raises(InputError, match=r"\['a', 'b'\], got \{'a': 0\.5\}"):
        model.fit(X, np.where(X[:, 0] > 0, "b", "a").astype(object))
