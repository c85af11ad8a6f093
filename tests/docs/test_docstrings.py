"""Docstrings of the public names: their sections name every parameter, their examples run.

Public is what `gpal.__all__` names, what the modules in it name, and the classes of what these
return. A class that matplotlib, astropy or NumPy made has its own pages.
"""

from __future__ import annotations

import doctest
import inspect
import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from types import ModuleType
from typing import Any

import pytest

import gpal
from gpal.catalog import Catalog, Decision
from gpal.evaluation import CrossValidation, ProbabilityList
from gpal.evaluation.cross_validation import Estimate
from gpal.jobs import ClassificationResult, ComparisonResult, ValidationResult
from gpal.metrics import ReliabilityCurve
from gpal.summary import Summary

RETURNED = (
    *(Catalog, Decision, ClassificationResult, ValidationResult, CrossValidation, Estimate),
    *(ReliabilityCurve, Summary, ComparisonResult, ProbabilityList),
)
# Whose example is that of the function which returns them.
MADE = {
    "ClassificationResult": "classify",
    "ComparisonResult": "compare",
    "ValidationResult": "validate",
}
HEADINGS = ("Parameters", "Attributes", "Returns", "Yields", "Raises", "Warns", "Notes", "Examples")


def public() -> dict[str, Any]:
    """Name -> function or class."""
    found = {each.__name__: each for each in RETURNED}
    for name in gpal.__all__:
        value = getattr(gpal, name)
        if isinstance(value, ModuleType):
            parts = {f"{name}.{part}": getattr(value, part) for part in value.__all__}
            found |= {k: v for k, v in parts.items() if callable(v) and v not in RETURNED}
        elif callable(value):
            found[name] = value
    return found


def members(owner: type) -> Iterator[tuple[str, Any]]:
    """Methods and properties of a class of gpal's, its own and those of its bases in gpal."""
    for name, value in inspect.getmembers_static(owner):
        of = next(base for base in owner.__mro__ if name in vars(base))
        if not name.startswith("_") and of.__module__.startswith("gpal."):
            value = value.__func__ if isinstance(value, classmethod | staticmethod) else value
            if inspect.isfunction(value) or isinstance(value, property):
                yield name, value


NAMES = public()
METHODS = {
    f"{name}.{member}": value
    for name, owner in NAMES.items()
    if inspect.isclass(owner)
    for member, value in members(owner)
}


def sections(value: Any) -> dict[str, str]:
    """Heading -> text, the summary under ''."""
    text = inspect.getdoc(value) or ""
    parts = re.split(r"^(\w+)\n-+$", text, flags=re.MULTILINE)
    found = {"": parts[0], **dict(zip(parts[1::2], parts[2::2], strict=True))}
    assert set(found) <= {"", *HEADINGS}, f"sections {list(found)}"
    return found


def described(section: str) -> dict[str, str]:
    """Name -> type, of the entries `name, other : type` of a section."""
    entries = re.findall(r"^(\*{0,2}\w[\w, *]*) : (\S.*)$", section, flags=re.MULTILINE)
    return {name.strip(" *"): kind for names, kind in entries for name in names.split(",")}


def documented(value: Any, name: str) -> None:
    assert inspect.getdoc(value), f"{name} has no docstring"
    found = sections(value)
    if isinstance(value, property):
        return
    if inspect.isclass(value) and (is_dataclass(value) or hasattr(value, "_fields")):
        named = {f.name for f in fields(value)} if is_dataclass(value) else set(value._fields)
        given = described(found.get("Attributes", "")) | described(found.get("Parameters", ""))
        assert set(given) >= {each for each in named if not each.startswith("_")}, name
        return
    signature = inspect.signature(value)
    taken = [each for each in signature.parameters if each not in ("self", "cls")]
    given = described(found.get("Parameters", ""))
    assert list(given) == taken, f"{name} takes {taken}, its docstring says {list(given)}"
    returned = signature.return_annotation
    if inspect.isfunction(value) and returned not in ("None", None, inspect.Signature.empty):
        assert {"Returns", "Yields"} & set(found), f"{name} does not say what it returns"


@pytest.mark.parametrize("name", [*NAMES, *METHODS])
def test_sections_name_every_parameter(name):
    documented((NAMES | METHODS)[name], name)


SLOW = ("candidates", "validate")
EXAMPLES = [
    pytest.param(name, marks=pytest.mark.slow if name in SLOW else ())
    for name in sorted(set(NAMES) - set(MADE))
]


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_runs(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    value = NAMES[name]
    globals_of = {"__name__": "example"}
    examples = doctest.DocTestFinder(recurse=False).find(value, name, globs=globals_of)
    assert examples and examples[0].examples, f"{name} has no example"
    if name in MADE.values():
        assert any("result." in each.source for each in examples[0].examples)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    said: list[str] = []
    runner.run(examples[0], out=said.append)
    assert not runner.failures, "".join(said)
