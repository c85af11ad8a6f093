"""The HTML report: one self-contained file, rebuilt from the result folder alone."""

from __future__ import annotations

from gpal.report.render import render_report

__all__ = ["render_report"]
