"""Sphinx configuration: MyST pages, API reference from the docstrings."""

from __future__ import annotations

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
    """The docstrings are aligned plain text with formulas, so they are shown as they stand."""
    if any(lines):
        lines[:] = [".. code-block:: text", "", *(f"    {line}" for line in lines), ""]


def setup(app) -> None:
    app.connect("autodoc-process-docstring", show_as_written)


html_theme = "furo"
html_title = f"gpal {release}"
