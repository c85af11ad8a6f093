"""What a retrospective study found: the learning curves of every strategy against random.

learning curve      test error and NLL after every k labels
area                mean of the curve over the labels, lower is better: a test counts for half the
                    labels between its neighbours, the first and the last for those to their own
against random      paired differences, repeat by repeat: mean ± standard error
factor              labels that random needs for the error that it ends with, over those that the
                    strategy needs for it; on the mean curves, made monotone: 1 for random itself,
                    also where its curve ends level. Its interval is by the bootstrap over repeats
labels saved        labels that random needs for the error that the strategy ends with, less
                    those that the strategy needed for it
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gpal.files.csv import write_csv
from gpal.files.output import atomic_path
from gpal.metrics import METRICS as EVERY
from gpal.plot import learning_curves, save
from gpal.provenance import to_json

__all__ = ["CONTROL", "METRICS", "Study", "labels_to_reach", "write_study"]

METRICS = {name: EVERY[name] for name in ("error", "nll")}
CONTROL = "random"  # the strategy that the others are compared with
RESAMPLES = 1000


@dataclass(frozen=True)
class Study:
    """Curves of every strategy.

    labels  strategy -> (L,) number of labels at which it was tested
    curves  strategy -> metric -> (R, L)
    """

    labels: Mapping[str, np.ndarray]
    curves: Mapping[str, Mapping[str, np.ndarray]]

    def summary(self) -> dict[str, Any]:
        """Per strategy and metric {"mean", "se"} at the end, area, labels saved, differences."""
        report: dict[str, Any] = {}
        for strategy, curves in self.curves.items():
            report[strategy] = {
                **{name: _estimate(curve[:, -1]) for name, curve in curves.items()},
                **{
                    f"{name}_area": _estimate(_area(self.labels[strategy], curve))
                    for name, curve in curves.items()
                },
                "n_labels": int(self.labels[strategy][-1]),
            }
            if CONTROL in self.curves and strategy != CONTROL:
                report[strategy]["against_random"] = self._against_control(strategy)
        return report

    def _against_control(self, strategy: str) -> dict[str, Any]:
        labels, control = self.labels[strategy], self.labels[CONTROL]
        both, mine, theirs = np.intersect1d(labels, control, return_indices=True)
        difference = {
            name: self.curves[strategy][name][:, mine] - self.curves[CONTROL][name][:, theirs]
            for name in METRICS
        }
        curve, random = (self.curves[name]["error"] for name in (strategy, CONTROL))
        both_curves = (labels, curve.mean(0)), (control, random.mean(0))
        needed, by_random = (_to_the_end_of(random.mean(0), one) for one in both_curves)
        by_itself, random_needs = (_to_the_end_of(curve.mean(0), one) for one in both_curves)
        assert by_random is not None and by_itself is not None  # a curve comes to its own end
        start = int(labels[0])
        return {
            **{name: _estimate(value[:, -1]) for name, value in difference.items()},
            **{f"{name}_area": _estimate(_area(both, value)) for name, value in difference.items()},
            "compared_at": int(both[-1]),
            "labels_for_final_error_of_random": needed,
            "labels_random_ends_with": int(control[-1]),
            "labels_random_needs_for_its_final_error": by_random,
            "factor": None if needed is None else float(by_random / needed),
            "factor_interval": _factor_interval(labels, curve, control, random),
            "factor_of_queries": None
            if needed is None or needed <= start
            else float((by_random - start) / (needed - start)),
            "labels_random_needs_for_final_error": random_needs,
            "labels_saved": None if random_needs is None else random_needs - by_itself,
        }


def _area(labels: np.ndarray, curve: np.ndarray) -> np.ndarray:
    """(R,) means of curves (R, L) over the labels."""
    if len(labels) < 2:
        return curve.mean(axis=1)
    return np.average(curve, axis=1, weights=np.gradient(labels.astype(float)))


def _to_the_end_of(curve: np.ndarray, by: tuple[np.ndarray, np.ndarray]) -> int | None:
    """Labels of another strategy, (labels, its curve), for the error that a curve ends with."""
    return labels_to_reach(*by, _monotone(curve)[-1])


def _factor_interval(
    labels: np.ndarray, curve: np.ndarray, control: np.ndarray, random: np.ndarray
) -> list[float | None]:
    """95 % interval of the factor, by resampling repeats; None on the low side: never reached, on
    both: a single repeat, which tells of none."""
    if len(curve) < 2:
        return [None, None]
    rng = np.random.default_rng(0)
    factors = np.zeros(RESAMPLES)
    for k in range(RESAMPLES):
        rows = rng.integers(len(curve), size=len(curve))
        ends = random[rows].mean(0)
        by_random = _to_the_end_of(ends, (control, ends))
        needed = _to_the_end_of(ends, (labels, curve[rows].mean(0)))
        factors[k] = 0.0 if needed is None or by_random is None else by_random / needed
    return [float(v) or None for v in np.quantile(factors, (0.025, 0.975), method="nearest")]


def _monotone(curve: np.ndarray) -> np.ndarray:
    """The falling curve closest in least squares: a mean error rises by chance only."""
    from sklearn.isotonic import isotonic_regression

    return isotonic_regression(curve, increasing=False)


def labels_to_reach(labels: np.ndarray, curve: np.ndarray, level: float) -> int | None:
    """Labels at which the monotone curve first comes to `level`, interpolated; None: never."""
    smooth = _monotone(np.asarray(curve, float))
    below = np.flatnonzero(smooth <= level + 1e-12)
    if not len(below):
        return None
    k = int(below[0])
    if k == 0:
        return int(labels[0])
    share = (smooth[k - 1] - level) / (smooth[k - 1] - smooth[k])
    return int(np.ceil(labels[k - 1] + share * (labels[k] - labels[k - 1]) - 1e-9))


def _estimate(values: np.ndarray) -> dict[str, float | None]:
    se = float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else None
    return {"mean": float(values.mean()), "se": se}


def write_study(study: Study, folder: Path, origin: Mapping[str, Any]) -> None:
    """Files curves.csv, metrics.json and learning_curve.png."""
    columns: dict[str, list[Any]] = {}
    for strategy, curves in study.curves.items():
        for k, count in enumerate(study.labels[strategy]):
            row: dict[str, Any] = {"strategy": strategy, "labels": int(count)}
            for name, curve in curves.items():
                estimate = _estimate(curve[:, k])
                row |= {name: estimate["mean"], f"{name}_se": estimate["se"]}
            for name, value in row.items():
                columns.setdefault(name, []).append(value)
    with atomic_path(folder / "curves.csv") as temporary:
        write_csv(temporary, columns, [f"provenance: {to_json(origin)}"])
    report = {**study.summary(), "settings": origin["settings"], "provenance": origin}
    with atomic_path(folder / "metrics.json") as temporary:
        temporary.write_text(to_json(report, indent=1) + "\n")
    axes = learning_curves(study.labels, study.curves)
    save(axes, folder / "learning_curve.png", origin)
