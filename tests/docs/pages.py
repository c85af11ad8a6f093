"""Runs the code of a page."""

from __future__ import annotations

from pathlib import Path

from markdown_it import MarkdownIt


def blocks(page: Path, language: str) -> list[tuple[int, str]]:
    """Line and text of the fenced blocks in a language."""
    fences = (token for token in MarkdownIt().parse(page.read_text()) if token.type == "fence")
    return [(token.map[0] + 1, token.content) for token in fences if token.info == language]


def run(page: Path, language: str = "python") -> None:
    """All blocks of a language, in order, in one namespace; a traceback shows the page's own
    lines."""
    namespace = {"__name__": f"page_{page.stem.replace('-', '_')}"}
    for line, text in blocks(page, language):
        exec(compile("\n" * line + text, page, "exec"), namespace)
