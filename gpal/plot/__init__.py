"""Every figure as a function: from arrays or from a result, into axes that it returns.

    axes = gpal.plot.reliability(result, width="column")      a result, for a journal's column
    axes = gpal.plot.reliability("results")                   the folder of a result
    gpal.plot.confusion_matrix(y, P, classes, ax=ax)          arrays, into axes of one's own
    gpal.plot.save(axes, "reliability.pdf", "results")        a file with its provenance

Without `ax` or `axes` a figure is made, for a screen, or as wide as `width` says: one of WIDTHS,
such as "column" and "page", or inches. It belongs to no window; in a notebook `ax.figure` shows it.
"""

from gpal.plot.classification import confusion_matrix, reliability, sky_map
from gpal.plot.learning import learning_curves
from gpal.plot.saving import save
from gpal.plot.sources import light_curve, spectra, spectrum
from gpal.plot.style import WIDTHS
from gpal.plot.thresholds import purity_completeness, roc
from gpal.plot.two_features import features
from gpal.plot.validation import calibration, reliability_by_origin, scores

__all__ = [
    "WIDTHS",
    "calibration",
    "confusion_matrix",
    "features",
    "learning_curves",
    "light_curve",
    "purity_completeness",
    "reliability",
    "reliability_by_origin",
    "roc",
    "save",
    "scores",
    "sky_map",
    "spectra",
    "spectrum",
]
