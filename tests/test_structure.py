"""What the contracts of import-linter (pyproject.toml, `make lint`) do not see."""

from __future__ import annotations

from graphlib import TopologicalSorter

import grimp


def test_no_circle_of_files():
    """Packages' __init__ files counted: a file of a package must not need what its package gathers
    from it. CycleError names the circle."""
    graph = grimp.build_graph("gpal", cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    assert len(list(TopologicalSorter(imports).static_order())) == len(graph.modules) > 100
