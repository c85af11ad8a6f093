"""Scripts under workflows/ go with the package: what they import is there, what they time runs."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import numpy as np
import pytest

WORKFLOWS = Path(__file__).parents[1] / "workflows"
SCRIPTS = sorted(WORKFLOWS.rglob("*.py"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: str(path.relative_to(WORKFLOWS)))
def test_what_a_script_imports_of_gpal_is_there(script):
    """Imports inside of functions, too, which nobody sees fail until the function is called."""
    for node in ast.walk(ast.parse(script.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "gpal":
            module = importlib.import_module(node.module)
            for alias in node.names:
                if not hasattr(module, alias.name):
                    importlib.import_module(f"{node.module}.{alias.name}")


@pytest.mark.parametrize("shared_kernel", [True, False])
def test_what_the_cost_of_a_treatment_is_measured_on_runs(shared_kernel, monkeypatch):
    monkeypatch.syspath_prepend(WORKFLOWS / "benchmarks")
    treatment_cost = importlib.import_module("treatment_cost")
    for name, value in (("N", 40), ("M", 8), ("BATCH", 10)):
        monkeypatch.setattr(treatment_cost, name, value)
    treatment_cost.training_step("latent", "softmax", shared_kernel)()
    sweep = treatment_cost.sweep("first_order", "softmax", shared_kernel)
    assert np.isfinite(sweep()) and sweep() == sweep()
    bound, gradient = treatment_cost.gradient("analytic", "softmax", shared_kernel)()
    assert np.isfinite(bound) and all(np.isfinite(part).all() for part in gradient)
