"""Two problems in the plane and the errors of the likelihoods (Liu et al. 2019, figures 2 and 5).

    python workflows/paper_000/toy.py [--quick] [--table]

banana (KEEL) has two classes; "three functions" draws three functions from a GP prior and takes the
largest for the label. m = 32, a Matérn-3/2 kernel, inducing points that are learned from k-means
centres, by 5,000 steps of Adam as in the paper or by the site engine. A cell is a problem, a
likelihood and an inference: error and NLL of test sources, and how sure the classifier is, the
probability of the class that is most probable, on average over the inducing points before and after
learning. Results go to results/toy.jsonl, cell by cell; a run that was stopped goes on. The tables
and the figure of docs/papers/000.md are written at the end.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from gpflow.kernels import Matern32
from scipy import optimize, stats

from gpal import GPClassifier
from gpal.metrics import METRICS

sys.path.append(str(Path(__file__).parents[1]))
from paper_sets import Split, available, draw
from studies import Size, arguments, grid, largest, of, put_tables, run

RESULTS = Path(__file__).parent / "results" / "toy.jsonl"
DOCS = Path(__file__).parents[2] / "docs"
PAGE, FIGURE = DOCS / "papers" / "000.md", "images/paper_000_toy.png"
KEY = ("size", "data_set", "method", "inference")
SIZES = {"quick": Size(200, 8, 1), "full": Size(None, 32, 1)}
STEPS = {"quick": 50, "full": 5000}
METHODS = {"GPC-I": "step", "GPC-II": "probit", "GPC-III": "logit", "GPCsm": "gumbel_softmax"}
INFERENCES = {"Adam": "svgp", "sites": "sites"}
DRAWN, SOURCES = "three functions", 2000
DATA_SETS = (DRAWN, "banana")
GRID = 40  # of the figure, along each axis
LOGIT_VARIANCE = 2.897  # the paper's, of the normal error nearest to the logistic one


# ---- measuring -----------------------------------------------------------------------------------


def three_functions(n: int, seed: int = 0) -> Split:
    """argmax of three draws of a GP with ℓ = 1 on [−2, 2]²; a fifth of the sources to test."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2.0, 2.0, (n, 2))
    K = Matern32()(X).numpy() + 1e-8 * np.eye(n)
    y = (np.linalg.cholesky(K) @ rng.normal(size=(n, 3))).argmax(axis=1)
    return Split(X[n // 5 :], y[n // 5 :], X[: n // 5], y[: n // 5])


def problem(data_set: str, size: str) -> Split:
    if data_set == DRAWN:
        return three_functions(SIZES[size].rows or SOURCES)
    return draw(data_set, 0, SIZES[size].rows, 0.2)


def classifier(size: str, method: str, inference: str, **options: object) -> GPClassifier:
    steps = {"steps": STEPS[size], "batch_size": 1024} if inference == "Adam" else None
    return GPClassifier(
        METHODS[method],
        inference=INFERENCES[inference],
        inference_options=steps,
        input_noise="none",
        kernel=Matern32(),
        n_inducing=SIZES[size].points,
        random_state=0,
        **options,
    )


def inducing_points(fitted: GPClassifier) -> np.ndarray:
    """[m, d], in the units of the features."""
    Z = fitted.posterior_.to_gpflow().inducing_variable.Z.numpy()
    return Z * fitted.width_ + fitted.offset_


def measure(cell: tuple[str, str, str, str]) -> dict:
    size, data_set, method, inference = cell
    split = problem(data_set, size)
    fitted = classifier(size, method, inference, learn_inducing=True).fit(split.X, split.y)
    start = classifier(size, method, "sites", learn_inducing=False, max_rounds=1)
    centres = inducing_points(start.fit(split.X, split.y))
    P, Z = fitted.predict_proba(split.X_test), inducing_points(fitted)
    shown = inference == "Adam"  # by the figure
    drawn = np.round(fitted.predict_proba(mesh(split.X)), 2).tolist() if shown else []
    return {
        "error": round(float(METRICS["error"](split.y_test, P)), 6),
        "nll": round(float(METRICS["nll"](split.y_test, P)), 6),
        "tested": len(split.y_test),
        "sure at centres": round(float(fitted.predict_proba(centres).max(axis=1).mean()), 4),
        "sure at points": round(float(fitted.predict_proba(Z).max(axis=1).mean()), 4),
        "sure at sources": round(float(P.max(axis=1).mean()), 4),
        "points": np.round(Z, 4).tolist(),
        "probabilities": drawn,
    }


def mesh(X: np.ndarray) -> np.ndarray:
    """[GRID², 2] over the range of X."""
    axes = [np.linspace(low, high, GRID) for low, high in zip(X.min(axis=0), X.max(axis=0))]
    return np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2)


# ---- the page ------------------------------------------------------------------------------------


def scores(table: pd.DataFrame) -> Iterator[str]:
    def rows() -> Iterator[list[str]]:
        for (data_set, method, inference), cell in table.iterrows():
            sure = [cell[f"sure at {where}"] for where in ("sources", "centres", "points")]
            numbers = [f"{value:.3f}" for value in (cell.error, cell.nll, *sure)]
            yield [data_set, method, inference, *numbers]

    header = ["data set", "method", "inference", "error", "NLL", "sure at test sources"]
    yield from grid([*header, "at k-means centres", "at learned inducing points"], rows())


def nearest_normal() -> tuple[float, float]:
    """Variance of the normal distribution nearest to the logistic one, and its distance: the
    largest difference of their cumulative distribution functions, least of all variances."""
    x = np.linspace(0.0, 15.0, 20_001)
    found = optimize.minimize_scalar(
        lambda a: np.abs(stats.logistic.cdf(x) - stats.norm.cdf(x, scale=np.sqrt(a))).max(),
        bounds=(1.0, 5.0),
        method="bounded",
        options={"xatol": 1e-6},
    )
    return float(found.x), float(found.fun)


def errors() -> Iterator[str]:
    variance, distance = nearest_normal()
    what = "variance of the normal error nearest to the logistic one"
    off = f"{variance:.3f}, at most {distance:.4f} off in cumulative probability"
    yield from grid(["what", "the paper", "here"], [[what, f"{LOGIT_VARIANCE:.3f}", off]])


def draw_problems(table: pd.DataFrame) -> None:
    """Sources, learned inducing points, and where no class has probability 1/2, by Adam."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    shown = table.xs("Adam", level="inference")
    sets = [s for s in DATA_SETS if s in shown.index.get_level_values("data_set")]
    figure, axes = plt.subplots(
        len(sets), len(METHODS), figsize=(9.6, 2.5 * len(sets)), layout="constrained", squeeze=False
    )
    for row, data_set in zip(axes, sets):
        split = problem(data_set, "full")
        x, z = mesh(split.X).reshape(GRID, GRID, 2).transpose(2, 0, 1)
        (left, low), (right, high) = split.X.min(axis=0), split.X.max(axis=0)
        for axis, method in zip(row, METHODS):
            if not len(of(table, data_set, method, "nll")):
                axis.axis("off")
                continue
            axis.set(xticks=[], yticks=[], title=method, xlim=(left, right), ylim=(low, high))
            cell = shown.loc[(data_set, method)]
            axis.scatter(*split.X[:1000].T, c=split.y[:1000], s=2, cmap="Set2")
            for P in np.transpose(cell.probabilities):
                axis.contour(x, z, P.reshape(GRID, GRID), [0.5], colors="k", linewidths=0.9)
            axis.plot(*np.transpose(cell.points), "ko", mfc="none", ms=4)
    figure.savefig(DOCS / FIGURE, dpi=110)
    plt.close(figure)


def write_page(path: Path) -> None:
    about, table = largest(path, KEY, SIZES)
    draw_problems(table)
    tables = [("toy size", [about]), ("toy scores", scores(table)), ("errors", errors())]
    put_tables(PAGE, tables)


def main() -> None:
    options = arguments(__doc__, RESULTS, SIZES, available(DATA_SETS), METHODS)
    if options.table:
        return write_page(options.out)
    quick = options.size == "quick"
    cells = [
        (options.size, data_set, method, inference)
        for data_set in options.data_sets
        for method in options.methods
        for inference in INFERENCES
        if data_set == DRAWN or not (quick or method == "GPCsm")
    ]
    failed = run(options.out, KEY, cells, measure, options.jobs)
    if options.page:
        write_page(options.out)
    return sys.exit(failed > 0)


if __name__ == "__main__":
    main()
