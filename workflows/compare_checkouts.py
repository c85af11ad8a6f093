"""Do two checkouts of gpal give the same probabilities?

    python workflows/compare_checkouts.py OLD_CHECKOUT NEW_CHECKOUT [--quick] [--only WORD]

Both make the same fits of the library and run the same commands with the same seeds, each in
processes of its own. Printed is the largest difference of each run's probabilities; one above 1e-8
is a failure (exit status 1), unless the run is listed with the reason why it must differ; so is one
that failed in either. For a change that is to move walls and no numbers.

--quick leaves the commands out; --only keeps the runs whose name has WORD in it; --keep FOLDER
leaves results and logs there, in `old` and `new`, and takes the old checkout's from there the next
time.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

LARGEST = 1e-8
EXACT = {"input_noise": "none"}
FIRST_ORDER, INTEGRATED = {"input_noise": "first_order"}, {"input_noise": "integrated"}
FEW, STEPS = {"n_inducing": 20}, {"inference_options": {"steps": 30}}
DIRICHLET, LOGISTIC = {"likelihood": "dirichlet"}, {"likelihood": "logistic_softmax"}
OWN_KERNELS = {"shared_kernel": False}


def binary(inference: str) -> tuple:
    return 2, 120, EXACT, {"likelihood": "bernoulli_logit", "inference": inference}


def gradient(noise: str, inference: str = "svgp") -> tuple:
    return 3, 200, FEW, STEPS, {"input_noise": noise, "inference": inference}


# name -> classes, sources, and arguments of GPClassifier
FITS: dict[str, tuple] = {
    "full": (3, 150, EXACT),
    "full, not log-concave": (3, 150, EXACT, {"likelihood": "step"}),
    "full, learned label noise": (3, 150, EXACT, {"likelihood": "robust_max"}),
    "sparse": (3, 500, EXACT, FEW),
    "sparse, float32": (3, 500, EXACT, FEW, {"dtype": "float32"}),
    "sparse, learned points": (3, 300, EXACT, FEW, {"learn_inducing": True}),
    "sparse, matern52+linear": (3, 300, EXACT, FEW, {"kernel": "matern52+linear"}),
    "first order": (3, 500, FIRST_ORDER, FEW),
    "first order, own kernels": (3, 500, FIRST_ORDER, FEW, OWN_KERNELS),
    "first order, mixed precision": (4, 500, FIRST_ORDER, FEW),
    "first order, learned errors": (3, 200, FIRST_ORDER, {"learn_errors": "both"}),
    "integrated": (3, 200, INTEGRATED, FEW),
    "integrated, not coupled": (3, 200, INTEGRATED, FEW, {"likelihood": "gumbel_softmax"}),
    "integrated, mixture": (3, 200, INTEGRATED, FEW, {"population": 2}),
    "integrated, learned errors": (3, 200, INTEGRATED, FEW, {"learn_errors": "scale"}),
    "analytic": (3, 300, {"input_noise": "analytic"}, FEW),
    "analytic, own kernels": (3, 200, {"input_noise": "analytic"}, FEW, OWN_KERNELS),
    "mixed precision": (4, 700, EXACT, FEW),
    "subset first": (4, 4200, EXACT, FEW),
    "dirichlet": (3, 500, DIRICHLET, EXACT, FEW),
    "dirichlet, full": (3, 150, DIRICHLET, EXACT),
    "dirichlet, subset first": (3, 4200, DIRICHLET, EXACT, FEW),
    "dirichlet, own kernels": (3, 300, DIRICHLET, EXACT, FEW, OWN_KERNELS),
    "dirichlet, first order": (3, 300, DIRICHLET, FIRST_ORDER, FEW),
    "dirichlet, analytic": (3, 200, DIRICHLET, {"input_noise": "analytic"}, FEW),
    "dirichlet, integrated": (3, 200, DIRICHLET, INTEGRATED, FEW),
    "dirichlet, svgp": (3, 200, DIRICHLET, EXACT, FEW, STEPS, {"inference": "svgp"}),
    "logistic_softmax": (3, 200, LOGISTIC, INTEGRATED, FEW),
    "cavi": (3, 500, LOGISTIC, FIRST_ORDER, FEW, {"inference": "cavi"}),
    "jaakkola_jordan": binary("jaakkola_jordan"),
    "jaakkola_jordan_hybrid": binary("jaakkola_jordan_hybrid"),
    "jaakkola_jordan_full": binary("jaakkola_jordan_full"),
    "taylor": binary("taylor"),
    "stochastic_sites": (3, 300, FIRST_ORDER, FEW, STEPS, {"inference": "stochastic_sites"}),
    "stochastic_cavi": (3, 300, LOGISTIC, EXACT, FEW, STEPS, {"inference": "stochastic_cavi"}),
    "svgp, first order": gradient("first_order"),
    "svgp, analytic": gradient("analytic"),
    "svgp, integrated": gradient("integrated"),
    "svgp, latent": gradient("latent"),
    "svgp, amortized": gradient("amortized"),
    "svgp, resampled": gradient("resampled"),
    "svgp_adadelta": gradient("none", "svgp_adadelta"),
    "svgp_natgrad": gradient("none", "svgp_natgrad"),
}
SMALL = ["--n-inducing", "20"]
CAMPAIGN = ["--session", "s", "--who", "me"]
# In the folder of every command: errors that are too small, and uncorrelated.
SCALES = """[error_calibration.scale]
log_flux = 2.01
index = 1.151
beta = 1.229
"""
# name -> commands of gpal, one after another in one folder
COMMANDS = {
    "gpal classify": [["classify", "4fgl-dr4", "--folds", "2", *SMALL]],
    "gpal validate": [["validate", "4fgl", "4fgl-dr4", "--seeds", "1", *SMALL]],
    "gpal classify, scaled errors": [
        ["classify", "4fgl", "--folds", "2", *SMALL, "--error-scale", "scales.toml"]
    ],
    "gpal classify, correlated errors": [
        ["classify", "4fgl", "--folds", "2", *SMALL, "--error-scale", "stored"]
    ],
    "gpal learn": [
        ["learn", "start", "4fgl-dr4", *CAMPAIGN, *SMALL],
        ["learn", "next", *CAMPAIGN],
        ["learn", "label", "4FGL J1110.3-6501", "bll", *CAMPAIGN],
        ["learn", "label", "4FGL J1347.9-0618", "fsrq", *CAMPAIGN],
        ["learn", "next", *CAMPAIGN],
        ["learn", "export", "targets.fits", "--session", "s"],
    ],
}
# Runs that must differ, and why.
DIFFERENT = {
    "gpal classify, correlated errors": "since 0.2 a catalog's covariance reaches the model"
}


def problem(num_classes: int, n: int):
    """Overlapping blobs with error bars: labels, training and new sources."""
    generator = np.random.default_rng(num_classes)
    centres = 1.5 * generator.normal(size=(num_classes, 3))
    y = generator.integers(num_classes, size=n + 100)
    X_err = generator.uniform(0.05, 0.6, size=(n + 100, 3))
    X = centres[y] + generator.normal(size=X_err.shape) + X_err * generator.normal(size=X_err.shape)
    return (X[:n], y[:n], X_err[:n]), (X[n:], X_err[n:])


def make_fits(names: list[str]) -> None:
    """In a checkout: the probabilities of FITS, each in a file NAME.npz of the present folder."""
    from gpal import GPClassifier

    for name in names:
        num_classes, n, *options = FITS[name]
        (X, y, X_err), (new, new_err) = problem(num_classes, n)
        arguments = {"max_rounds": 3}
        for some in options:
            arguments |= some
        model = GPClassifier(**arguments).fit(X, y, X_err=X_err)
        np.savez(
            f"{name}.npz",
            probabilities=model.predict_proba(new, X_err=new_err),
            deviations=model.predict_proba_std(new, X_err=new_err),
        )


def run(checkout: Path, folder: Path, names: list[str]) -> None:
    """Leave the results of runs that are not there yet in `folder`, by the code of a checkout."""
    folder.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "PYTHONPATH": str(checkout), "TF_CPP_MIN_LOG_LEVEL": "3"}

    def python(arguments: list[str], where: Path) -> bool:
        command = [sys.executable, *arguments]
        with open(folder / "log.txt", "a") as log:
            return not subprocess.call(command, cwd=where, env=environment, stdout=log, stderr=log)

    missing = [name for name in names if name in FITS and not (folder / f"{name}.npz").exists()]
    if missing:
        python([str(Path(__file__).resolve()), "--fits", *missing], folder)
    for name in names:
        if name in COMMANDS and not (folder / name).exists():
            (folder / name).mkdir()
            (folder / name / "scales.toml").write_text(SCALES)
            all(python(["-m", "gpal", *part], folder / name) for part in COMMANDS[name])


def found(folder: Path, name: str) -> dict[str, np.ndarray]:
    """Every probability of a run, and whatever else is numeric; {} where it failed."""
    if name in COMMANDS:
        return tables(folder / name)
    file = folder / f"{name}.npz"
    return dict(np.load(file)) if file.exists() else {}


def tables(folder: Path) -> dict[str, np.ndarray]:
    """The columns of numbers of every FITS table in a folder of results."""
    from astropy.table import Table

    columns = {}
    for file in sorted(folder.rglob("*.fits")):
        table = Table.read(file)
        for column in table.colnames:
            if table[column].dtype.kind == "f":
                where = f"{file.relative_to(folder)}:{column}"
                columns[where] = np.ma.filled(table[column], np.nan)
    return columns


def difference(old: dict[str, np.ndarray], new: dict[str, np.ndarray]) -> tuple[float, str]:
    """The largest one, and where; infinite where one of them has no such numbers."""
    worst, where = 0.0, ""
    if not old or not new:
        return np.inf, "a run failed: --keep leaves the log"
    if apart := sorted(set(old) ^ set(new)):
        return np.inf, f"{apart[0]} is in one of them alone"
    for name in old:
        if old[name].shape != new[name].shape:
            return np.inf, f"{name} is of another length"
        off = np.abs(old[name] - new[name])
        off[np.isnan(old[name]) & np.isnan(new[name])] = 0.0
        largest = np.inf if np.isnan(off).any() else float(np.max(off, initial=0.0))
        if largest > worst:
            worst, where = largest, name
    return worst, where


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkouts", nargs="*", metavar="CHECKOUT", help="the old, the new")
    parser.add_argument("--quick", action="store_true", help="leave the commands out")
    parser.add_argument("--only", default="", metavar="WORD", help="runs with WORD in their name")
    parser.add_argument("--keep", metavar="FOLDER", help="for results and logs")
    parser.add_argument("--fits", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.fits:
        return make_fits(options.fits)
    if len(options.checkouts) != 2:
        parser.error("give two checkouts, the old and the new")
    names = [*FITS, *([] if options.quick else COMMANDS)]
    names = [name for name in names if options.only in name]
    if not names:
        parser.error(f"no run has '{options.only}' in its name")
    checkouts = [Path(checkout).resolve() for checkout in options.checkouts]
    if options.keep and any((Path(options.keep) / w / "gpal").is_dir() for w in ("old", "new")):
        parser.error(f"--keep {options.keep}: 'old' or 'new' there is a checkout")
    failures = 0
    with tempfile.TemporaryDirectory() as temporary:
        old, new = (Path(options.keep or temporary) / which for which in ("old", "new"))
        for name in names:  # those of another state of the new checkout
            shutil.rmtree(new / name, ignore_errors=True)
            (new / f"{name}.npz").unlink(missing_ok=True)
        for checkout, folder in zip(checkouts, (old, new), strict=True):
            run(checkout, folder, names)
        print(f"{'run':34s} difference")
        for name in names:
            worst, where = difference(found(old, name), found(new, name))
            reason = DIFFERENT.get(name)
            failures += not (np.isfinite(worst) if reason else worst <= LARGEST)
            print(f"{name:34s} {worst:8.1e}  {reason or (where if worst > LARGEST else '')}")
    print(f"{failures} of {len(names)} runs differ by more than {LARGEST:g} without a reason")
    sys.exit(failures > 0)


if __name__ == "__main__":
    main()
