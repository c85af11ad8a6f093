"""Sphinx configuration: MyST pages, API reference from the docstrings."""

from __future__ import annotations

import re
import textwrap
from importlib import import_module
from pkgutil import iter_modules

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.ext.napoleon import Config, NumpyDocstring
from sphinx.util.docutils import SphinxDirective

from gpal._version import __version__

project = "gpal"
author = "The gpal developers"
copyright = "2026, The gpal developers"
version = release = __version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.viewcode",
]
exclude_patterns = ["_build"]
default_role = "code"

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
# The gallery is run, from nothing and each page in a folder of its own; an error ends the build.
nb_execution_mode = "force"
nb_execution_in_temp = True
nb_execution_raise_on_error = True
nb_execution_timeout = 600
nb_merge_streams = True
nb_output_stderr = "remove"  # where TensorFlow announces itself; a warning fails the tests

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_default_options = {
    "members": True,
    "show-inheritance": True,
}


SECTION = re.compile(r"^\w+\n-{4,}$", re.MULTILINE)
UNDERLINE = re.compile(r"-{4,}")


def _apart(quoted: re.Match) -> str:
    """`quoted`(x): reStructuredText wants something between the two."""
    return f"{quoted[1]}\\ {quoted['next']}" if quoted["next"] else quoted[1]


def _as_text(prose: str) -> str:
    """Without markup, but for `code`."""
    text = re.sub(r"(`[^`]*`)|([|*_])", lambda m: m[1] or f"\\{m[2]}", prose)
    return re.sub(r"(`[^`]*`)(?P<next>[\w(])?", _apart, text)


def _as_written(text: str) -> list[str]:
    """Prose as prose, formulas and aligned tables as they stand."""
    shown: list[str] = []
    for block in text.strip("\n").split("\n\n"):
        if re.search(r"^ |\S   ", block, re.MULTILINE):
            shown += [".. code-block:: text", "", textwrap.indent(textwrap.dedent(block), "   ")]
        else:
            shown += [_as_text(block)]
        shown += [""]
    return "\n".join(shown).split("\n")


def _sections(text: str) -> list[str]:
    """numpydoc's sections, their descriptions as text; examples stay as they are."""
    shown: list[str] = []
    heading = ""
    lines = text.split("\n")
    for line, below in zip(lines, [*lines[1:], ""], strict=True):
        if UNDERLINE.fullmatch(below) and line.strip():
            heading = line.strip()
        kept = heading == "Examples" or UNDERLINE.fullmatch(line) or not line.startswith(" ")
        prose = heading == "Notes" and not UNDERLINE.fullmatch(line)
        shown += [line if kept and not prose else _as_text(line)]
    attributes = [("Attributes", "params_style")]
    config = Config(napoleon_use_rtype=False, napoleon_custom_sections=attributes)
    return NumpyDocstring(shown, config).lines()


def show_as_written(app, what, name, obj, options, lines: list[str]) -> None:
    """Docstrings are plain text, before their sections in the manner of numpydoc."""
    text = "\n".join(lines)
    first = SECTION.search(text)
    sections = _sections(text[first.start() :]) if first else []
    lines[:] = _as_written(text[: first.start()] if first else text) + sections


def without_requests(app, what, name, obj, skip: bool, options) -> bool | None:
    """scikit-learn generates set_fit_request and the like for every estimator."""
    return True if re.fullmatch(r"set_\w+_request|get_metadata_routing", name) else None


class Package(SphinxDirective):
    """`.. package:: gpal.likelihoods`: a section for the package and for each of its files, so that
    a new file is on its page without a line written for it."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        package = self.arguments[0]
        files = iter_modules(import_module(package).__path__, f"{package}.")
        names = [package, *(file.name for file in files if not file.ispkg)]
        return [self.section(name) for name in names]

    def section(self, name: str) -> nodes.section:
        section = nodes.section(ids=[nodes.make_id(name)])
        section += nodes.title("", "", nodes.literal(text=name))
        # What a package takes from its files is on their sections.
        lines = [f".. automodule:: {name}", "   :ignore-module-all:"]
        directive = StringList(lines, source=self.get_source_info()[0])
        self.state.nested_parse(directive, self.content_offset, section)
        return section


def setup(app) -> None:
    app.add_directive("package", Package)
    app.connect("autodoc-process-docstring", show_as_written)
    app.connect("autodoc-skip-member", without_requests)


html_theme = "furo"
html_title = f"gpal {release}"
