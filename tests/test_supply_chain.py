"""What gpal stands on: the bill of materials is complete, and what is unmaintained stands alone."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[1]


def test_the_bill_of_materials_has_every_dependency_in_a_version_that_is_allowed():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    bill = json.loads((ROOT / "docs" / "sbom.cdx.json").read_text())
    listed = {canonicalize_name(part["name"]): part["version"] for part in bill["components"]}
    for requirement in map(Requirement, project["dependencies"]):
        if requirement.marker is None or requirement.marker.evaluate():
            assert listed[canonicalize_name(requirement.name)] in requirement.specifier


def test_the_bill_of_materials_names_no_place_but_packages():
    text = (ROOT / "docs" / "sbom.cdx.json").read_text()
    assert '"purl": "pkg:pypi/numpy@' in text
    assert "externalReferences" not in text and "file:" not in text


def test_modal_is_imported_in_one_file_only():
    importing = []
    for path in sorted((ROOT / "gpal").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if any(name.split(".")[0] == "modAL" for name in names):
                importing.append(path.relative_to(ROOT).as_posix())
    assert set(importing) == {"gpal/active/learner.py"}


def test_campaigns_and_the_command_line_do_without_modal():
    code = (
        "import sys; sys.modules['modAL'] = None\n"
        "import gpal.cli, gpal.active.strategies, gpal.active.campaign.export\n"
        "import gpal.active.posterior, gpal.report.campaign, gpal.jobs.classification\n"
        "try:\n    import gpal.active.learner\nexcept ImportError:\n    sys.exit(0)\nsys.exit(1)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
