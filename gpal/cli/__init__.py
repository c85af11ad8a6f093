"""The command line: thin, it parses, calls the library and prints."""

from gpal.cli.main import app, main

__all__ = ["app", "main"]
