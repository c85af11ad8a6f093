"""Settings of GPClassifier on the development sets: what its defaults are chosen by.

    python workflows/benchmarks/choose_defaults.py                       what is missing
    python workflows/benchmarks/choose_defaults.py --splits 0 --settings default matern32
    python workflows/benchmarks/choose_defaults.py --table               the table, and no run

A cell (data set, setting, split) is one line of results/defaults.jsonl with test NLL, error, bound
and CPU seconds; those that are there are skipped. The settings of a data set share a process with
one thread, so that the first pays for graphs which others share: seconds are a rough guide.
"""

from __future__ import annotations

import one_thread  # noqa: F401

# isort: split
import argparse
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from cells import read, write
from data_sets import DEVELOPMENT, load
from heavy_tails import LightTails
from plain_learners import boosting, tuned_logistic_regression
from scoring import scored_fit, scores

TABLE = Path(__file__).parent / "results" / "defaults.jsonl"

# Every argument is written out: the defaults of the class change with what is found here. "before"
# is 100 inducing points above 400 sources.
BEFORE: dict[str, Any] = {
    "likelihood": "softmax",
    "kernel": "rbf",
    "shared_kernel": True,
    "n_inducing": "before",
    "temperature": 1.0,
    "learn_by": "bound",
}
FIRST: dict[str, dict[str, Any]] = {
    "before": BEFORE,
    "learned": {**BEFORE, "learn_inducing": True},
    "m300": {**BEFORE, "n_inducing": 300},
    "rbf+linear": {**BEFORE, "kernel": "rbf+linear"},
    "matern32": {**BEFORE, "kernel": "matern32"},
    "matern52": {**BEFORE, "kernel": "matern52"},
    "per_class": {**BEFORE, "shared_kernel": False},
    "logit": {**BEFORE, "likelihood": "bernoulli_logit"},
    "matern32_m300": {**BEFORE, "kernel": "matern32", "n_inducing": 300},
    "prior": {**BEFORE, "kernel": "rbf", "lengthscale_prior": 1.0},
    "asinh": {**BEFORE, "asinh": True},
    "matern32+linear": {**BEFORE, "kernel": "matern32+linear"},
    "rbf+dot_product": {**BEFORE, "kernel": "rbf+dot_product"},
    "isotropic": {**BEFORE, "kernel": "isotropic_rbf+dot_product"},
    "chosen": {**BEFORE, "kernel": "auto", "n_inducing": None},
    "rbf, learned": {**BEFORE, "n_inducing": None, "learn_inducing": True},
    "chosen+learned": {**BEFORE, "kernel": "auto", "n_inducing": None, "learn_inducing": True},
}
CHOSEN = FIRST["chosen+learned"] | {"learn_inducing": None}  # by these, on 24 November
LEFT_OUT: dict[str, Any] = {
    **CHOSEN,
    "likelihood": "auto",
    "temperature": "leave_one_out",
    "learn_by": "auto",
}
SECOND: dict[str, dict[str, Any]] = {
    "november": CHOSEN,
    "yeo-johnson": {**CHOSEN, "tails": "yeo-johnson"},
    "asinh of tails": {**CHOSEN, "tails": "asinh"},
    "one latent": {**CHOSEN, "likelihood": "bernoulli_logit"},
    "one kernel each": {**CHOSEN, "shared_kernel": False},
    "matern32+linear, learned": {**CHOSEN, "kernel": "matern32+linear"},
    "temperature": {**CHOSEN, "likelihood": "auto", "three_folds": True},
    "200 points": {**CHOSEN, "n_inducing": 200, "learn_inducing": True},
    "leave one out": {**CHOSEN, "likelihood": "auto", "temperature": "leave_one_out"},
    "leave one out, kernel too": LEFT_OUT,
    "400 points": {**CHOSEN, "n_inducing": 400, "learn_inducing": True},
    # The arguments of "leave one out, kernel too". Since 26 November more than 1,000 sources are
    # learned from anew; all others that leave n_inducing open are of fits that went on from the
    # kernel of a trial.
    "started anew": LEFT_OUT,
    # The same arguments once more. Since 29 November kernel="auto" takes powers of features with
    # heavy tails where the labels ask for them; those above that leave it open did not.
    "powers": LEFT_OUT,
}
SETTINGS = FIRST | SECOND
BINARY = ("logit", "one latent")
PLAIN = {"logistic": tuned_logistic_regression, "boosting": boosting}


def classifier(settings: dict[str, Any], sources: int, num_features: int) -> Any:
    """GPClassifier, or a pipeline with it, from constructor arguments and four more:

    lengthscale_prior  deviation of a normal prior on log(lengthscale), about its start
    asinh              values are measured in interquartile ranges from the median, then asinh
    tails              features with heavy tails are changed, see `heavy_tails.py`
    three_folds        p^τ, normalised, τ by the predictions of three folds of the training rows
    """
    import gpflow
    import tensorflow_probability as tfp
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer, RobustScaler

    from gpal import GPClassifier
    from gpal.inference.kernels import make_kernel

    own = ("lengthscale_prior", "asinh", "tails", "three_folds")
    arguments = {k: v for k, v in settings.items() if k not in own}
    if arguments["n_inducing"] == "before":
        arguments["n_inducing"] = 100 if sources > 400 else None
    if "lengthscale_prior" in settings:
        arguments["kernel"] = make_kernel(settings["kernel"], num_features)
        for part in arguments["kernel"].kernels:
            if hasattr(part, "lengthscales"):
                part.lengthscales.prior = tfp.distributions.Normal(
                    np.float64(np.log(num_features) / 2), np.float64(settings["lengthscale_prior"])
                )
                part.lengthscales.prior_on = gpflow.base.PriorOn.UNCONSTRAINED
    model = GPClassifier(**arguments)
    if settings.get("three_folds"):
        return CalibratedClassifierCV(model, method="temperature", cv=3, ensemble=False)
    if "tails" in settings:
        return make_pipeline(LightTails(settings["tails"]), model)
    if settings.get("asinh"):
        return make_pipeline(RobustScaler(), FunctionTransformer(np.arcsinh), model)
    return model


def measure(data_set: str, name: str, seed: int) -> None:
    split = load(data_set, seed)
    if name in BINARY and split.num_classes > 2:
        return
    settings = SETTINGS.get(name)
    model = PLAIN[name](seed) if settings is None else classifier(settings, *split.X.shape)
    record = {
        "data_set": data_set,
        "method": name,
        "seed": seed,
        **scored_fit(model, split),
    }
    if settings is not None:
        record["settings"] = settings
        fitted = getattr(model, "steps", [("", model)])[-1][1]
        if hasattr(model, "calibrated_classifiers_"):
            calibrated = model.calibrated_classifiers_[0]
            fitted, (calibrator,) = calibrated.estimator, calibrated.calibrators
            record["tau"] = float(calibrator.beta_)
        record["bound"] = float(fitted.bound_)
        record["inducing_points"] = fitted.settings_["inducing_points"]
        record["converged"] = fitted.converged_
        if settings["temperature"] != 1.0:
            record["temperature"] = fitted.temperature_
            record["leave_one_out"] = fitted.settings_["leave_one_out"]
            fitted.model_.temperature = 1.0
            record["nll_at_temperature_1"] = scores(model, split)["nll"]
    write(record, TABLE)
    print(data_set, name, seed, *(f"{k} {record[k]:.4f}" for k in ("nll", "seconds")), flush=True)


def show() -> None:
    import pandas as pd

    frame = pd.DataFrame(list(read(TABLE).values()))
    order = [name for name in (*SETTINGS, *PLAIN) if name in set(frame["method"])]
    for value in ("nll", "seconds"):
        table = frame.pivot_table(index="data_set", columns="method", values=value)
        rows = [name for name in DEVELOPMENT if name in table.index]
        print(table.loc[rows, order].round(4 if value == "nll" else 1).to_string())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    names = [*SETTINGS, *PLAIN]
    parser.add_argument("--settings", nargs="+", choices=names, default=names)
    parser.add_argument("--data-sets", nargs="+", choices=DEVELOPMENT, default=list(DEVELOPMENT))
    parser.add_argument("--splits", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--here", action="store_true", help="in this process")
    parser.add_argument("--table", action="store_true", help="the table only")
    arguments = parser.parse_args()
    if arguments.table:
        return show()
    for seed in arguments.splits:
        for data_set in arguments.data_sets:
            missing = [n for n in arguments.settings if (data_set, n, seed) not in read(TABLE)]
            if not missing:
                continue
            if arguments.here:
                for name in missing:
                    measure(data_set, name, seed)
                continue
            what = ["--data-sets", data_set, "--splits", str(seed), "--settings", *missing]
            subprocess.run([sys.executable, __file__, "--here", *what], check=False)
    return None


if __name__ == "__main__":
    main()
