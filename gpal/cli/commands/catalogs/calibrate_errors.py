"""`gpal catalogs calibrate-errors`: how far a release's errors can be trusted, by another one."""

from __future__ import annotations

from math import isnan
from pathlib import Path
from typing import Annotated

import typer

from gpal.cli.catalogs import feature_names
from gpal.cli.options import Cuts, Features, New, NewSchema, Old, OldSchema, Seed
from gpal.errors import InputError


def run(
    old: Old,
    new: New,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE.toml", show_default="OLD-errors.toml"),
    ] = None,
    old_schema: OldSchema = None,
    new_schema: NewSchema = None,
    features: Features = "default",
    cuts: Cuts = None,
    independent: Annotated[
        bool,
        typer.Option("--independent", help="NEW was measured without the data of OLD."),
    ] = False,
    seed: Seed = 0,
) -> None:
    """Measure by how much OLD's errors are too small, from the same sources in NEW.

    NEW is taken to hold OLD's data and more, as the Fermi-LAT releases do. Cuts are on OLD, say
    "Variability_Index < 18". FILE.toml is used when asked for:
    `gpal validate OLD NEW --error-scale FILE.toml`, or
    `load_catalog(OLD, error_scale="FILE.toml")`.

    ```
    gpal catalogs calibrate-errors 4fgl 4fgl-dr4
    ```
    """
    from gpal.catalog import load_catalog
    from gpal.catalog.error_calibration import calibrate, write_calibration
    from gpal.files.output import check_apart

    if out is not None and out.suffix.lower() != ".toml":
        raise InputError(f"'{out.name}' should end in .toml: that is the format")
    names = feature_names(features or "default")
    before = load_catalog(old, schema=old_schema, features=names, cuts=cuts)
    after = load_catalog(new, schema=new_schema, features=names)
    path = out or Path(f"{before.schema.name}-errors.toml")
    check_apart([path], [old, new, old_schema, new_schema])
    found = calibrate(before, after, nested=not independent, random_state=seed)
    write_calibration(path, found, before, after)
    typer.echo(f"{'feature':20s} {'pairs':>6s}  {'scale (95 %)':22s} small, middling, large errors")
    for name, scale in found.scale.items():
        interval = f"{scale.value:.2f} ({scale.lower:.2f} to {scale.upper:.2f})"
        by_size = ", ".join("–" if isnan(value) else f"{value:.2f}" for value in scale.by_size)
        typer.echo(f"{name:20s} {scale.n:6d}  {interval:22s} {by_size}")
    for (first, second), ρ in found.correlation.items():
        typer.echo(f"correlation of {first} and {second}: {ρ:+.2f}")
    typer.echo(path)
