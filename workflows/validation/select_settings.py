"""Which features, kernel, noise treatment and prior? Tried before the test pairs are run.

    python workflows/validation/select_settings.py gll_psc_v27.fit [NAME ...]

Two examinations: five-fold cross-validation on the labelled sources of 4FGL, and the pair
4fgl -> 4fgl-dr2, for which the full file of 4FGL-DR2 is needed. The choice made is frozen.toml.
"""

import argparse

from gpal import GPClassifier, load_catalog
from gpal.evaluation import (
    cross_validate,
    gradient_boosting,
    logistic_regression,
    quadratic_logistic_regression,
    random_forest,
)
from gpal.evaluation.prospective import CORRECTIONS, prospective_split, prospective_validation
from gpal.metrics import negative_log_predictive_density

DEFAULT = (
    *("log_flux", "log_significance", "log_pivot_energy", "index", "beta", "curvature"),
    "log_variability",
)
HARDNESS = tuple(f"hardness_{energy}" for energy in ("300MeV", "1GeV", "3GeV", "10GeV", "30GeV"))


def gp(**options):
    """First order about the measurement itself, unless told otherwise."""
    return GPClassifier(**{"input_noise": "first_order", "population": "flat", **options})


# name -> classifier, features, factor on the errors
TRIED = {
    "logistic regression": (logistic_regression(), DEFAULT, 1),
    "logistic regression, hardness": (logistic_regression(), DEFAULT + HARDNESS, 1),
    "quadratic logistic regression": (quadratic_logistic_regression(), DEFAULT, 1),
    "quadratic, hardness": (quadratic_logistic_regression(), DEFAULT + HARDNESS, 1),
    "random forest": (random_forest(), DEFAULT, 1),
    "gradient boosting": (gradient_boosting(), DEFAULT, 1),
    "GP": (gp(), DEFAULT, 1),
    "GP, hardness": (gp(), DEFAULT + HARDNESS, 1),
    "GP, no noise": (gp(input_noise="none"), DEFAULT, 1),
    "GP, integrated noise": (gp(input_noise="integrated"), DEFAULT, 1),
    "GP, one Gaussian": (gp(population=1), DEFAULT, 1),
    "GP, three Gaussians": (gp(population=3), DEFAULT, 1),
    "GP, errors x 1.25": (gp(), DEFAULT, 1.25),
    "GP, errors x 1.5": (gp(), DEFAULT, 1.5),
    "GP, Matern 5/2": (gp(kernel="matern52"), DEFAULT, 1),
    "GP, rbf + linear": (gp(kernel="rbf+linear"), DEFAULT, 1),
    "GP, 200 points": (gp(n_inducing=200), DEFAULT, 1),
    "GP, separate kernels": (gp(shared_kernel=False), DEFAULT, 1),
    "GP, separate kernels, errors x 1.25": (gp(shared_kernel=False), DEFAULT, 1.25),
}

parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
parser.add_argument("dr2", help="the full file of 4FGL-DR2")
parser.add_argument("names", nargs="*", help="only these of the settings tried")
arguments = parser.parse_args()
new = load_catalog(arguments.dr2)

print(f"{'':36s} {'features':20s} {'CV':>6s}  " + "  ".join(CORRECTIONS))
for name in arguments.names or TRIED:
    model, features, factor = TRIED[name]
    for without in ((), ("log_variability",)):
        chosen = [feature for feature in features if feature not in without]
        scale = dict.fromkeys(chosen, factor)
        old = load_catalog("4fgl", features=chosen, error_scale=scale)
        known = old.labelled()
        validation = cross_validate({"it": model}, known.measurements, known.y, n_splits=5)
        cv = validation.estimate(negative_log_predictive_density, "it").mean
        split = prospective_split(old, new)
        later = prospective_validation(split, {"it": (model, chosen)}, n_seeds=1)
        scores = [f"{later.scores('it', c)['nll']['mean']:.3f}" for c in CORRECTIONS]
        print(
            f"{name:36s} {'without variability' if without else 'all':20s} {cv:6.4f}  "
            + "  ".join(scores),
            flush=True,
        )
