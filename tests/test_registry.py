"""Registers: what another package adds works wherever what gpal has itself does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from gpal import GPClassifier, InputError
from gpal.active.campaign import Campaign, Given
from gpal.active.strategies import STRATEGIES
from gpal.inference import capabilities
from gpal.inference.base import INFERENCES
from gpal.inference.reference import REFERENCES
from gpal.input_noise import INPUT_NOISES
from gpal.likelihoods import LIKELIHOODS, ClassificationLikelihood
from gpal.likelihoods.softmax import Softmax
from gpal.registry import Register

EXTENSION = Path(__file__).parent / "extension_package"
sys.path.insert(0, str(EXTENSION))
from gpal_extension import BoehningSoftmax, GiniImpurity, RegressionCalibration  # noqa: E402


@pytest.fixture
def registers(monkeypatch):
    """The registers, which forget afterwards what a test has added."""
    for register in (LIKELIHOODS, INPUT_NOISES, STRATEGIES):
        len(register)  # all that gpal has is there
        monkeypatch.setattr(register, "_classes", dict(register._classes))


@pytest.fixture
def extended(registers):
    LIKELIHOODS.register(BoehningSoftmax)
    INPUT_NOISES.register(RegressionCalibration)
    STRATEGIES.register(GiniImpurity)


@pytest.fixture(scope="module")
def problem():
    """90 sources of three classes in two features with error bars, of different size."""
    rng = np.random.default_rng(2)
    y = np.array(["agn", "psr", "snr"])[np.arange(90) % 3]
    x = np.array([[0.0, 0.0], [2.5, 0.0], [0.0, 2.5]])[np.arange(90) % 3]
    X_err = rng.uniform(0.05, 0.8, size=x.shape)
    return x + 0.7 * rng.normal(size=x.shape) + X_err * rng.normal(size=x.shape), y, X_err


# ---- a likelihood and a treatment of another package ---------------------------------------------


def test_both_are_used_by_name_and_kept_in_a_model_file(extended, problem, tmp_path):
    X, y, X_err = problem
    model = GPClassifier("boehning_softmax", input_noise="regression_calibration", max_rounds=2)
    P = model.fit(X[:60], y[:60], X_err[:60]).predict_proba(X[60:], X_err[60:])
    correct = P[np.arange(30), np.searchsorted(model.classes_, y[60:])]
    assert -np.log(correct).mean() < np.log(3) - 0.2
    assert model.settings_["likelihood"]["name"] == "boehning_softmax"
    assert model.settings_["treatment"] == {"name": "regression_calibration", "strength": 1.0}
    model.save(tmp_path / "model.npz")
    again = GPClassifier.load(tmp_path / "model.npz")
    np.testing.assert_array_equal(again.predict_proba(X[60:], X_err[60:]), P)


def test_objects_keep_their_settings_in_a_model_file(extended, problem, tmp_path):
    X, y, X_err = problem
    treatment = RegressionCalibration(strength=0.5)
    model = GPClassifier(BoehningSoftmax(3, num_points=16), input_noise=treatment, max_rounds=0)
    P = model.fit(X, y, X_err).predict_proba(X, X_err)
    model.save(tmp_path / "model.npz")
    again = GPClassifier.load(tmp_path / "model.npz")
    np.testing.assert_array_equal(again.predict_proba(X, X_err), P)
    assert again.likelihood.num_points == 16 and again.input_noise.strength == 0.5


def test_a_campaign_asks_by_them_and_its_model_is_read_again(extended, small_catalog, tmp_path):
    parameters = {
        "likelihood": "boehning_softmax",
        "input_noise": "regression_calibration",
        "n_inducing": 10,
        "max_rounds": 1,
    }
    folder = tmp_path / "campaign"
    started = Campaign.start(
        small_catalog, folder, parameters=parameters, strategy="gini_impurity", who="ann"
    )
    with started as campaign:
        (target,) = campaign.ask(1)
        p = np.array(list(target.probabilities.values()))
        assert target.score == pytest.approx(1.0 - np.sum(p**2), abs=1e-6)
        campaign.label([Given(int(campaign.table.ids[target.row]), "psr", "ann")])
    with Campaign(folder) as again:
        (other,) = again.ask(1)
        assert other.row != target.row
        model = GPClassifier.load(sorted((folder / "models").glob("*.npz"))[-1])
    assert type(model.model_.likelihood) is BoehningSoftmax
    assert type(model.model_.input_noise) is RegressionCalibration


def test_the_default_inference_takes_the_likelihoods_first_rule(extended, problem):
    """Böhning's curvature is above that of softmax everywhere: its bound is lower."""
    X, y, X_err = problem
    bounds = {
        name: GPClassifier(name, input_noise="none", max_rounds=0).fit(X, y, X_err).bound_
        for name in ("boehning_softmax", "softmax")
    }
    assert -np.log(3) < bounds["boehning_softmax"] < bounds["softmax"] - 1e-3


def test_rows_of_the_treatment_are_the_best_linear_prediction_of_x(extended, problem):
    """Σ (Σ + V)⁻¹ (x̃ − μ) + μ by NumPy, for the population that was fitted."""
    X, y, X_err = problem
    model = GPClassifier(input_noise="regression_calibration", max_rounds=0).fit(X, y, X_err)
    population, sources = model.model_.population, (X - model.offset_) / model.width_
    errors = X_err / model.width_
    mean, covariance = population.means[0], population.covariances[0]
    gain = covariance @ np.linalg.inv(covariance + np.eye(2) * errors[:, None] ** 2)
    expected = mean + np.einsum("nde,ne->nd", gain, sources - mean)
    exact = GPClassifier(input_noise="none", max_rounds=0).fit(X, y)  # the same scaling
    gp, posterior = model.model_.gp, model.model_.posterior
    np.testing.assert_allclose(
        model.predict_proba(X, X_err),
        model.model_.likelihood.predict_proba(*gp.marginals(posterior, expected)),
        atol=1e-8,
    )
    assert np.abs(model.predict_proba(X, X_err) - exact.predict_proba(X)).max() > 0.01


def test_both_stand_on_the_page_and_in_the_refusals(extended):
    page = capabilities.markdown()
    assert "| `boehning_softmax` | two or more | no | closed-form bound |" in page
    assert "| Böhning 1992 |" in page
    assert "| `regression_calibration` | a measurement replaced by what is expected of it |" in page
    with pytest.raises(InputError, match="closed-form sites for logistic_softmax only"):
        capabilities.check("boehning_softmax", "regression_calibration", "cavi", 3)
    with pytest.raises(InputError, match=r"there are: .*boehning_softmax.*softmax"):
        GPClassifier("nonsense").fit(np.eye(4), [0, 1, 0, 1])


def test_an_object_of_a_class_that_is_not_registered_works_but_is_not_saved(problem, tmp_path):
    class Mine(Softmax):
        """Without a name of its own."""

    assert "Mine" not in LIKELIHOODS
    X, y, X_err = problem
    model = GPClassifier(Mine(3), input_noise=RegressionCalibration(), max_rounds=0)
    softmax = GPClassifier("softmax", input_noise=RegressionCalibration(), max_rounds=0)
    P = model.fit(X, y, X_err).predict_proba(X, X_err)
    np.testing.assert_array_equal(P, softmax.fit(X, y, X_err).predict_proba(X, X_err))
    for classifier, name in ((model, "Mine"), (softmax, "RegressionCalibration")):
        with pytest.raises(InputError, match=f"{name} is not registered"):
            classifier.save(tmp_path / "model.npz")
    assert not list(tmp_path.iterdir())


def test_a_model_file_of_a_class_that_is_gone_says_so(extended, problem, tmp_path, monkeypatch):
    X, y, X_err = problem
    GPClassifier("boehning_softmax", max_rounds=0).fit(X, y, X_err).save(tmp_path / "model.npz")
    monkeypatch.delitem(LIKELIHOODS._classes, "boehning_softmax")
    gone = "no likelihood 'boehning_softmax'; there are: .*; install the package"
    with pytest.raises(InputError, match=gone) as refused:
        GPClassifier.load(tmp_path / "model.npz")
    assert "damaged" not in str(refused.value)


# ---- names ---------------------------------------------------------------------------------------


def test_each_class_once_and_every_name(registers):
    assert LIKELIHOODS["robust_max"] is LIKELIHOODS["step"] is LIKELIHOODS.find("robust_max")
    names = [kind.name for kind in LIKELIHOODS.classes()]
    assert names == sorted(set(LIKELIHOODS) - {"robust_max"})


@pytest.mark.parametrize("name", ["softmax", "robust_max"])
def test_a_name_of_gpals_is_not_given_away(registers, name):
    taken = type("Mine", (Softmax,), {"name": name})
    with pytest.raises(InputError, match=f"'{name}' is gpal.likelihoods.* already; give .*Mine"):
        LIKELIHOODS.register(taken)
    assert LIKELIHOODS[name].__module__.startswith("gpal.")


def test_a_class_may_be_defined_again_but_not_by_another_module(registers):
    first = LIKELIHOODS.register(type("Mine", (Softmax,), {"name": "mine"}))
    again = LIKELIHOODS.register(type("Mine", (Softmax,), {"name": "mine"}))  # a cell run twice
    assert LIKELIHOODS["mine"] is again is not first
    other = type("Mine", (Softmax,), {"name": "mine", "__module__": "elsewhere"})
    with pytest.raises(InputError, match=r"give elsewhere\.Mine another name"):
        LIKELIHOODS.register(other)


def test_a_subclass_has_neither_name_nor_aliases_of_its_base(registers):
    class NewStep(LIKELIHOODS["step"]):
        pass

    LIKELIHOODS.register(NewStep)
    assert LIKELIHOODS["NewStep"] is NewStep
    assert LIKELIHOODS["robust_max"] is LIKELIHOODS["step"] is not NewStep


def test_what_has_no_name_is_refused(registers):
    with pytest.raises(InputError, match="has no name to be a likelihood by"):
        LIKELIHOODS.register(int)


class NoStrategy:
    name = "no_strategy"


@pytest.mark.parametrize("register", [LIKELIHOODS, INPUT_NOISES, INFERENCES, REFERENCES])
@pytest.mark.parametrize("stranger", [GiniImpurity, GiniImpurity(), sys, len])
def test_what_is_of_another_kind_is_refused(registers, register, stranger):
    with pytest.raises(InputError, match=f"is no {register.kind}: .* derived from gpal"):
        register.register(stranger)
    assert "gini_impurity" not in register


def test_an_entry_point_of_another_kind_is_only_warned_of(registers, tmp_path, monkeypatch):
    points = {"foo": "test_registry:NoStrategy", "module": "math"}
    installed(tmp_path / "foo", "gpal.strategies", points)
    monkeypatch.syspath_prepend(tmp_path / "foo")
    monkeypatch.setattr(STRATEGIES, "_complete", False)
    with pytest.warns(UserWarning, match="cannot be used: .*derived from .*Strategy") as told:
        assert "no_strategy" not in STRATEGIES
    assert len(told) == 2


@pytest.mark.slow
def test_a_stranger_that_comes_first_does_not_take_a_name_of_gpals():
    """In a process of its own, where nothing has been looked up yet."""
    program = """
from gpal.errors import InputError
from gpal.likelihoods.base import LIKELIHOODS, ClassificationLikelihood
try:
    LIKELIHOODS.register(type("Mine", (ClassificationLikelihood,), {"name": "softmax"}))
except InputError as error:
    assert "gpal.likelihoods.softmax.Softmax already" in str(error)
    raise SystemExit(LIKELIHOODS["softmax"].__module__ != "gpal.likelihoods.softmax")
raise SystemExit("it was given away")
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_an_interrupted_look_up_begins_anew(monkeypatch):
    register = Register("likelihood", "gpal.likelihoods", "gpal.nothing")
    with monkeypatch.context() as patch:
        patch.setattr("gpal.registry.import_module", lambda name: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            len(register)
    assert not register._imported
    len(register)
    assert register._imported


# ---- entry points --------------------------------------------------------------------------------


def installed(folder: Path, group: str, points: dict[str, str]) -> None:
    """What installing a package with these entry points would leave in a folder of the path."""
    metadata = folder / f"{folder.name}-0.1.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {folder.name}\nVersion: 0.1\n"
    )
    lines = [f"[{group}]", *(f"{name} = {target}" for name, target in points.items())]
    (metadata / "entry_points.txt").write_text("\n".join(lines) + "\n")


def test_a_broken_entry_point_is_named_and_the_others_work(tmp_path, monkeypatch):
    points = {
        "boehning_softmax": "gpal_extension:BoehningSoftmax",
        "gone": "gpal_extension:Gone",
        "missing": "no_such_module:Class",
        "softmax": "gpal_extension:Softmax",
        "taken": "test_registry:Taken",
    }
    installed(tmp_path / "mixed", "gpal.likelihoods_of_a_test", points)
    monkeypatch.syspath_prepend(tmp_path / "mixed")
    monkeypatch.setattr(sys.modules[__name__], "Taken", Taken, raising=False)
    register: Register[ClassificationLikelihood] = Register(
        "likelihood", "gpal.likelihoods", "gpal.likelihoods_of_a_test"
    )
    register._classes = {"softmax": Softmax}
    register._imported = True
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert set(register) == {"softmax", "boehning_softmax"}
    told = [str(warning.message) for warning in caught if "cannot be used" in str(warning.message)]
    assert len(told) == 3
    for name in ("gone", "missing", "taken"):
        assert any(f"the likelihood '{name}' of " in line for line in told)
    assert any("is gpal.likelihoods.softmax.Softmax already" in line for line in told)


class Taken(Softmax):
    name = "softmax"


SCHEMA = """
id = "name"
class = "kind"

[classes]
default = ["agn", "psr", "snr"]

[features]
a = { column = "a", error = "e_a" }
b = { column = "b", error = "e_b" }
"""


@pytest.mark.slow
def test_the_command_line_knows_them_by_their_entry_points(problem, tmp_path):
    X, y, X_err = problem
    table = pd.DataFrame({"name": [f"S{i}" for i in range(90)], "kind": y})
    table[["a", "b"]], table[["e_a", "e_b"]] = X, X_err
    table.loc[::9, "kind"] = ""
    table.to_csv(tmp_path / "sources.csv", index=False)
    (tmp_path / "sources.toml").write_text(SCHEMA)
    installed(tmp_path / "one", "gpal.likelihoods", {"b": "gpal_extension:BoehningSoftmax"})
    installed(tmp_path / "two", "gpal.input_noise", {"r": "gpal_extension:RegressionCalibration"})
    installed(tmp_path / "three", "gpal.likelihoods", {"broken": "no_such_module:Class"})
    paths = [tmp_path / "one", tmp_path / "two", tmp_path / "three", EXTENSION, *sys.path]
    command = "classify sources.csv --schema sources.toml --folds 2 --n-inducing 10"
    options = "--likelihood boehning_softmax --input-noise regression_calibration"
    done = subprocess.run(
        [sys.executable, "-m", "gpal", *command.split(), *options.split()],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(str(path) for path in paths if path)},
    )
    assert done.returncode == 0, done.stderr
    assert "the likelihood 'broken' of no_such_module:Class cannot be used" in done.stderr
    model = json.loads((tmp_path / "results" / "metrics.json").read_text())["settings"]["model"]
    assert model["likelihood"]["name"] == "boehning_softmax"
    assert model["treatment"]["name"] == "regression_calibration"
    table = pd.read_csv(tmp_path / "results" / "probabilities.csv", comment="#")
    np.testing.assert_allclose(table[["p_agn", "p_psr", "p_snr"]].sum(axis=1), np.ones(90))
