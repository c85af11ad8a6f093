"""The frozen settings, for the scripts that report with them: frozen.toml and, of classes that
leave none out, frozen_open.toml."""

import sys
from pathlib import Path

from gpal import GPClassifier, load_catalog
from gpal.catalog import Fainter
from gpal.evaluation import FaintTraining

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

HERE = Path(__file__).parent
FROZEN = tomllib.loads((HERE / "frozen.toml").read_text())
FROZEN_OPEN = tomllib.loads((HERE / "frozen_open.toml").read_text())
PAIRS = (("4fgl", "4fgl-dr4"), ("4fgl", "fl16y"), ("4fgl-dr4", "fl16y"))
MODEL = "GPClassifier"


def release(name, exhaustive):
    """A release with bll, fsrq and psr, or with agn, pulsar and other."""
    catalog = load_catalog(
        name,
        features=FROZEN["catalog"]["features"],
        error_scale=FROZEN["catalog"]["error_scale"],
    )
    return catalog.with_exhaustive_classes() if exhaustive else catalog


def model(old, exhaustive):
    """The frozen classifier for that release, with the names of its features."""
    plain = GPClassifier(**FROZEN["model"])
    if not exhaustive:
        return plain, old.feature_names
    return FaintTraining(plain, Fainter.of(old)), old.schema.feature_sets["open"]


def corrections(exhaustive):
    """Without a correction of class fractions, and the frozen one."""
    return "train", (FROZEN_OPEN if exhaustive else FROZEN)["prior"]["correction"]
