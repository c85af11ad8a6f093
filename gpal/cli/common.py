"""What the commands share: their options, opening catalogs, starting TensorFlow quietly."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gpal.errors import InputError

if TYPE_CHECKING:
    from gpal.catalog import Catalog

__all__ = [
    "CATALOG",
    "NOTICES",
    "Classes",
    "Cuts",
    "ErrorScale",
    "Features",
    "InputNoise",
    "Likelihood",
    "NumInducing",
    "Out",
    "Schema",
    "Seed",
    "Source",
    "chosen",
    "comma_separated",
    "feature_names",
    "open_catalog",
    "start_tensorflow",
    "with_classes",
    "without_tensorflow_notices",
]

# ---- options -------------------------------------------------------------------------------------

CATALOG = "A name that `gpal catalogs` lists, or a path to FITS, VOTable, ECSV, CSV or Parquet."
Source = Annotated[str, typer.Argument(metavar="SOURCE", show_default=False, help=CATALOG)]
Schema = Annotated[
    str | None,
    typer.Option(
        metavar="NAME|FILE.toml",
        help="How to read SOURCE: a known release's name or a TOML file of yours. A release's"
        " own file needs none.",
    ),
]
Features = Annotated[
    str, typer.Option(metavar="SET|NAME,...", help="A feature set of the schema, or a comma list.")
]
Classes = Annotated[
    list[str] | None,
    typer.Option(
        "--class",
        "-c",
        metavar="NAME",
        show_default="those of the schema",
        help="A class to tell apart, or a group of classes, `agn=bll+fsrq`; repeat it, or give a"
        " comma list.",
    ),
]
Cuts = Annotated[
    list[str] | None,
    typer.Option(
        "--cut",
        metavar="CONDITION",
        help='Keep only sources with, say, "Signif_Avg > 30"; or a cut of the schema by name;'
        " repeatable.",
    ),
]
ErrorScale = Annotated[
    str | None,
    typer.Option(
        metavar="stored|FILE.toml",
        help="Scale the errors as `gpal catalogs calibrate-errors` found: as the release's schema"
        " has it stored, or as in the file.",
    ),
]
Out = Annotated[Path, typer.Option("--out", "-o", metavar="FOLDER", help="Where the results go.")]
Seed = Annotated[int, typer.Option(help="Same seed, same answer.")]
Likelihood = Annotated[
    str | None,
    typer.Option(metavar="NAME", rich_help_panel="Model", help="p(class | latent functions)."),
]
InputNoise = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        rich_help_panel="Model",
        help="What the error bars do, `none` to ignore them.",
    ),
]
NumInducing = Annotated[
    int | None,
    typer.Option(
        "--n-inducing",
        min=1,
        rich_help_panel="Model",
        help="Inducing points of the sparse model; the full model while that is better.",
    ),
]


def chosen(**options: Any) -> dict[str, Any]:
    """The options that were given; the others keep the library's defaults."""
    return {name: value for name, value in options.items() if value is not None}


def comma_separated(values: list[str]) -> list[str]:
    """`--class bll,fsrq --class psr` as three names."""
    return [name.strip() for value in values for name in value.split(",") if name.strip()]


def feature_names(text: str) -> str | list[str]:
    """A feature set's name, or a comma list of features."""
    return comma_separated([text]) if "," in text else text


# ---- catalogs ------------------------------------------------------------------------------------


def open_catalog(
    source: str,
    schema: str | None,
    features: str,
    cuts: str | list[str] | None,
    classes: list[str] | None,
    error_scale: str | None = None,
) -> Catalog:
    """The catalog that a command's options name."""
    from gpal.catalog import load_catalog

    catalog = load_catalog(
        source,
        schema=schema,
        features=feature_names(features),
        cuts=cuts,
        error_scale=True if error_scale == "stored" else error_scale,
    )
    return with_classes(catalog, classes) if classes else catalog


def with_classes(catalog: Catalog, options: list[str]) -> Catalog:
    """`psr` as the schema of `catalog` groups it; `agn=bll+fsrq+bcu` as a group of its own."""
    names = comma_separated(options)
    plain = [name for name in names if "=" not in name]
    groups = dict(catalog.with_classes(plain).groups) if plain else {}
    for name in names:
        if "=" in name:
            group, members = (part.strip() for part in name.split("=", 1))
            labels = tuple(member.strip() for member in members.split("+") if member.strip())
            if not group or not labels or group in groups:
                raise InputError(
                    f"--class {name}: write a new group with its classes, e.g. agn=bll+fsrq"
                )
            groups[group] = labels
    return catalog.with_classes(groups)


# ---- TensorFlow ----------------------------------------------------------------------------------

# Notices that TensorFlow prints by itself on a machine without a graphics card.
NOTICES = (
    "WARNING: All log messages before absl::InitializeLog()",
    "oneDNN custom operations are on",
    "Could not find cuda drivers",
    "failed call to cuInit: INTERNAL: CUDA error: Failed call to cuInit: UNKNOWN ERROR (303)",
)
_FILTER = """
import sys
for line in sys.stdin:
    if not any(notice in line for notice in sys.argv[1:]):
        sys.stderr.write(line)
"""


@contextmanager
def without_tensorflow_notices() -> Iterator[None]:
    """Drop NOTICES from stderr while TensorFlow starts; every other line passes.

    Before its log level counts, TensorFlow's native code writes to file descriptor 2. A small
    process of its own filters that, so the last words of a crash during the import get through. In
    a session of its own: Ctrl-C is for gpal, and the filter ends with its input.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    sys.stderr.flush()
    stderr = os.dup(2)
    with subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _FILTER, *NOTICES],
        stdin=subprocess.PIPE,
        stderr=stderr,
        start_new_session=True,
    ) as filtered:
        assert filtered.stdin is not None
        os.dup2(filtered.stdin.fileno(), 2)
        try:
            yield
        finally:
            sys.stderr.flush()
            os.dup2(stderr, 2)
            os.close(stderr)


def start_tensorflow(verbose: bool = False) -> None:
    """Import TensorFlow, without the notices that it prints by itself."""
    with without_tensorflow_notices():
        import tensorflow

        tensorflow.config.list_physical_devices()
        tensorflow.get_logger().setLevel(logging.INFO if verbose else logging.ERROR)
