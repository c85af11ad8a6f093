"""The command line: it parses, calls a job and prints.

A command is a file in gpal/cli/commands: a function `run`, whose docstring is the help; a folder
there is a group of commands. Options that several commands have are declared in options.py.
"""

from gpal.cli.main import app, main

__all__ = ["app", "main"]
