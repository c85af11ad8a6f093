"""Options that several commands have, declared once.

`CatalogOptions` and `ModelOptions` are groups: a command with a parameter of that type has all of
their options (see gpal.cli.groups).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gpal.cli.catalogs import feature_names, open_catalog
from gpal.errors import InputError
from gpal.tensorflow_start import check_start, start_tensorflow

if TYPE_CHECKING:
    from gpal.catalog import Catalog
    from gpal.classifier import GPClassifier
    from gpal.jobs.hats import HatsRows

__all__ = [
    "CATALOG",
    "MANY",
    "Beside",
    "CatalogOptions",
    "Classes",
    "Cuts",
    "ErrorScale",
    "Exhaustive",
    "Faint",
    "Features",
    "ModelOptions",
    "New",
    "NewSchema",
    "Old",
    "OldSchema",
    "Out",
    "Schema",
    "Seed",
    "Source",
]

OTHER = "other"  # class of all that the classes told apart leave out
OPEN = "open"  # set of features for sources that may be of any class
MANY = 1_000_000  # more than any count can sensibly be: beyond, one would wait for ever
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
Old = Annotated[str, typer.Argument(metavar="OLD", show_default=False, help=CATALOG)]
New = Annotated[str, typer.Argument(metavar="NEW", show_default=False, help=CATALOG)]
OldSchema = Annotated[
    str | None, typer.Option(metavar="NAME|FILE.toml", help="How to read OLD, as in classify.")
]
NewSchema = Annotated[
    str | None, typer.Option(metavar="NAME|FILE.toml", help="How to read NEW, as in classify.")
]
Features = Annotated[
    str | None,
    typer.Option(
        metavar="SET|NAME,...",
        show_default="default",
        help="A feature set of the schema, or a comma list; without it `default`, in classify and"
        " validate with a class `other` the set `open` where there is one.",
    ),
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
Exhaustive = Annotated[
    bool,
    typer.Option(
        "--open",
        help="In place of --class: classes that leave none out, as the schema names them;"
        " of a Fermi-LAT release agn, pulsar, other.",
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
Faint = Annotated[
    bool | None,
    typer.Option(
        "--faint/--no-faint",
        rich_help_panel="Model",
        show_default="with a class `other`",
        help="Learn from labelled sources also as they would look if as faint as the others.",
    ),
]
Beside = Annotated[
    list[str] | None,
    typer.Option(
        metavar="tabpfn|tabicl",
        rich_help_panel="Validation",
        help="A further classifier to stand beside, of a package that you have installed with its"
        " weights; repeatable.",
    ),
]
Out = Annotated[Path, typer.Option("--out", "-o", metavar="FOLDER", help="Where the results go.")]
Seed = Annotated[int, typer.Option(min=0, help="Same seed, same answer.")]


@dataclass(frozen=True)
class CatalogOptions:
    """Which features of which sources, and which classes to tell apart."""

    features: Features = None
    classes: Classes = None
    exhaustive: Exhaustive = False
    cuts: Cuts = None
    error_scale: ErrorScale = None

    @property
    def given(self) -> bool:
        """Whether any of them is other than the default."""
        return any((self.features, self.classes, self.exhaustive, self.cuts, self.error_scale))

    def open(self, source: str, schema: str | None) -> Catalog:
        """The catalog `source`, so read."""
        return open_catalog(
            *(source, schema, self.features or "default", self.cuts, self.classes),
            *(self.error_scale, self.exhaustive),
        )

    def open_for_all(self, source: str, schema: str | None, least: int = 0) -> Catalog:
        """As `open`, for a job whose targets may be of any class: where one of the classes is
        `other` and no features are named, those of the set `open`, if the schema has one.

        least  of a release whose schema names classes that leave none out, `other` is put beside
               the default ones where so many sources are of it and no classes are named; 0: never
        """
        catalog, chosen = self.open(source, schema), self
        named = self.classes or self.exhaustive or not catalog.schema.classes.exhaustive
        if least and not named and int(catalog.is_of_another_class.sum()) >= least:
            chosen = replace(chosen, classes=[*catalog.classes, OTHER])
        some_are_other = catalog.leaves_none_out or chosen is not self
        if some_are_other and not self.features and OPEN in catalog.schema.feature_sets:
            chosen = replace(chosen, features=OPEN)
        return catalog if chosen is self else chosen.open(source, schema)

    def rows(self, schema: str | None) -> HatsRows:
        """How the rows of a catalog in HATS layout are read."""
        from gpal.catalog.registry import find_schema
        from gpal.jobs.hats import HatsRows

        if self.exhaustive:
            raise InputError("--open is not for catalogs in HATS layout; name classes (--class)")
        if schema is None:
            raise InputError("a catalog in HATS layout needs a schema; give one (--schema)")
        return HatsRows(
            find_schema(schema),
            feature_names(self.features or "default"),
            self.cuts,
            True if self.error_scale == "stored" else self.error_scale,
        )


@dataclass(frozen=True)
class ModelOptions:
    """The model, where it is not to be the recommended one."""

    likelihood: Annotated[
        str | None,
        typer.Option(metavar="NAME", rich_help_panel="Model", help="p(class | latent functions)."),
    ] = None
    input_noise: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            rich_help_panel="Model",
            help="What the error bars do, `none` to ignore them.",
        ),
    ] = None
    inference: Annotated[
        str | None,
        typer.Option(metavar="NAME", rich_help_panel="Model", help="How the posterior is found."),
    ] = None
    n_inducing: Annotated[
        int | None,
        typer.Option(
            "--n-inducing",
            min=1,
            max=MANY,
            rich_help_panel="Model",
            help="Inducing points of the sparse model; the full model while that is better.",
        ),
    ] = None

    def check(self) -> None:
        """Refuse what could never be fitted, before any data are read."""
        check_start()
        if self.chosen():
            start_tensorflow()
            self.classifier().check_settings()

    def chosen(self) -> dict[str, Any]:
        """The options that were given; the others keep the library's defaults."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    def classifier(self, **parameters: Any) -> GPClassifier:
        """The recommended model with these options and further parameters."""
        from gpal.classifier import GPClassifier
        from gpal.recommended import RECOMMENDED_MODEL

        return GPClassifier(**{**RECOMMENDED_MODEL, **self.chosen(), **parameters})
