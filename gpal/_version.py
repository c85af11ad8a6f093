"""The version, apart from everything else: files and pages carry it."""

__version__ = "0.2.0"
