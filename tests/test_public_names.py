"""gpal.<TAB>: what is there, and what looking at it loads."""

from __future__ import annotations

import subprocess
import sys

import gpal

HEAVY = {"tensorflow", "gpflow", "pandas", "sklearn", "matplotlib", "astropy", "numpy"}


def test_what_people_look_for_is_there():
    assert dir(gpal) == sorted(gpal.__all__)
    wanted = {"classify", "predict", "validate", "cross_validate", "plot", "metrics"}
    assert wanted | {"GPClassifier", "Measurements", "load_catalog"} <= set(dir(gpal))
    for name in gpal.__all__:
        assert getattr(gpal, name) is not None


def test_only_what_is_used_is_loaded():
    steps = ("import gpal; dir(gpal)", "gpal.metrics.brier", "gpal.plot.reliability")
    shown = f"import sys; print(*({HEAVY!r} & set(sys.modules)))"
    code = "\n".join(f"{step}\n{shown}" for step in steps)
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    nothing, metrics, plot = (set(line.split()) for line in ran.stdout.splitlines())
    assert nothing == set()
    assert "sklearn" in metrics and not metrics & {"tensorflow", "gpflow", "matplotlib"}
    assert "matplotlib" in plot and not plot & {"tensorflow", "gpflow"}


def test_names_of_the_evaluation_are_no_modules():
    """Whatever was imported before: a function may have the name of its module."""
    code = (
        "import gpal.evaluation.noise_controls, gpal.evaluation as e, types\n"
        "import gpal.evaluation.any_classifier, sys\n"
        "print(*{'sklearn.ensemble', 'sklearn.linear_model'} & set(sys.modules))\n"
        "print(*(n for n in e.__all__ if isinstance(getattr(e, n), types.ModuleType)))\n"
        "print(*(n for n in e.__all__ if isinstance(getattr(e, n), types.ModuleType)))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == []
