"""`python -m gpal` is the command `gpal`."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """The program, which Ctrl-C ends without a word while its modules are being imported, too."""
    try:
        from gpal.cli import main as program

        program()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
