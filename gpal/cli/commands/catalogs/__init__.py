"""`gpal catalogs`: the releases that gpal knows."""

from __future__ import annotations


def run() -> None:
    """List the releases that gpal knows.

    *Embedded*: an extract with all that `gpal classify` needs comes with gpal, or with the package
    that the catalog is from. *Local*: the full release is on this machine. Any other is fetched on
    first use.
    """
    from rich.console import Console
    from rich.table import Table

    from gpal.catalog import known_catalogs

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for header in ("name", "sources", "embedded", "local", "reference"):
        table.add_column(header, justify="right" if header == "sources" else "left")
    for info in known_catalogs():
        table.add_row(
            info.name,
            str(info.n_sources or ""),
            "yes" if info.embedded else "",
            "yes" if info.cached else "",
            info.reference,
        )
    Console().print(table)
