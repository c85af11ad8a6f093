"""Sphinx configuration: MyST pages, API reference from the docstrings."""

from __future__ import annotations

import re
import textwrap

import gpal

project = "gpal"
author = "The gpal developers"
copyright = "2026, The gpal developers"
version = release = gpal.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.viewcode",
]
exclude_patterns = ["_build"]
default_role = "code"

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
nb_execution_mode = "off"

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_default_options = {
    "members": True,
    "show-inheritance": True,
    # scikit-learn generates these for every estimator
    "exclude-members": "set_fit_request, set_predict_request, set_predict_proba_request,"
    " set_predict_proba_std_request, set_score_request",
}


def show_as_written(app, what, name, obj, options, lines: list[str]) -> None:
    """Docstrings are plain text: prose as prose, formulas and aligned tables as they stand."""
    shown: list[str] = []
    for block in "\n".join(lines).strip("\n").split("\n\n"):
        if re.search(r"^ |\S   ", block, re.MULTILINE):
            shown += [".. code-block:: text", "", textwrap.indent(textwrap.dedent(block), "   ")]
        else:
            shown += [re.sub(r"(`[^`]*`)|([|*_])", lambda m: m[1] or f"\\{m[2]}", block)]
        shown += [""]
    lines[:] = "\n".join(shown).split("\n")


def setup(app) -> None:
    app.connect("autodoc-process-docstring", show_as_written)


html_theme = "furo"
html_title = f"gpal {release}"
