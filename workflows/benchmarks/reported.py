"""GPClassifier() without arguments beside four others, on the reported data sets.

    python workflows/benchmarks/reported.py                      what is missing, split by split
    python workflows/benchmarks/reported.py --splits 0 --methods logistic boosting
    python workflows/benchmarks/reported.py --table              docs/defaults.md from the results

No setting is chosen here: `choose_defaults.py` does that on other data sets. A cell (data set,
method, split) is one line of results/reported.jsonl; cells that are there are skipped. Each is a
process of its own with one thread; the clock counts CPU seconds of `fit` after the imports, with
the making of graphs.

    default    GPClassifier()
    logistic   multinomial logistic regression, the penalty chosen by five folds
    boosting   histogram gradient boosting, stopped early by a tenth of its rows
    gpflow     SVGP, 2,000 steps of Adam .01 on batches of 256, 100 learned inducing points
    gpc        scikit-learn's GaussianProcessClassifier (Laplace, one against the rest) with one
               lengthscale per feature, from two starts, on `GPC_ROWS` rows drawn at random: its
               cost is cubic
"""

from __future__ import annotations

import one_thread  # noqa: F401

# isort: split
import argparse
import subprocess
import sys
from pathlib import Path

from cells import read, write
from data_sets import REPORTED, load
from plain_learners import boosting, gpc, tuned_logistic_regression
from scoring import STEPS, Split, scored_fit

sys.path.append(str(Path(__file__).parents[1]))
from studies import source_digest

TABLE = Path(__file__).parent / "results" / "reported.jsonl"
METHODS = ("default", "logistic", "boosting", "gpflow", "gpc")
SPLITS = range(10)


def of_estimator(method: str, split: Split, seed: int) -> dict:
    """Scores of an estimator of scikit-learn's kind."""
    make = {"logistic": tuned_logistic_regression, "boosting": boosting, "gpc": gpc}
    if method == "default":
        from gpal import GPClassifier
        from gpal.model import fit  # noqa: F401  (imported before the clock starts)

        model = GPClassifier()
    else:
        model = make[method](seed)
    record = scored_fit(model, split)
    if method == "default":
        record["inducing_points"] = model.settings_["inducing_points"]
        record["kernels"] = [kernel["class"] for kernel in model.settings_["kernels"]]
        record["gpal_source"] = source_digest()
    return record


def measure(data_set: str, method: str, seed: int) -> None:
    from gpal.provenance import provenance

    split = load(data_set, seed)
    if method == "gpflow":
        from compare import gpflow_svgp

        record = gpflow_svgp(split.standardised(), seed, every=STEPS)[-1]
    else:
        record = of_estimator(method, split, seed)
    cell = {"data_set": data_set, "method": method, "seed": seed, **record}
    cell["provenance"] = provenance(settings={"method": method}, random_state=seed)
    write(cell, TABLE)
    print(*cell.values(), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--data-sets", nargs="+", choices=REPORTED, default=list(REPORTED))
    parser.add_argument("--splits", nargs="+", type=int, default=list(SPLITS))
    parser.add_argument("--here", action="store_true", help="in this process")
    parser.add_argument("--table", action="store_true", help="write docs/defaults.md only")
    arguments = parser.parse_args()
    if arguments.table:
        from reported_table import write_page

        return write_page()
    for seed in arguments.splits:
        for data_set in arguments.data_sets:
            for method in arguments.methods:
                if arguments.here:
                    measure(data_set, method, seed)
                elif (data_set, method, seed) not in read(TABLE):
                    what = ["--data-sets", data_set, "--splits", str(seed), "--methods", method]
                    subprocess.run([sys.executable, __file__, "--here", *what], check=False)
    return None


if __name__ == "__main__":
    main()
