"""The metrics of a comparison of lists: the content of metrics.json, and what a person reads."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np

from gpal.evaluation.list_comparison import ListComparison
from gpal.evaluation.prospective import ProspectiveValidation
from gpal.summary import Summary, counted, estimated

__all__ = ["comparison_metrics", "summaries"]

CORRECTION = "train"  # none: as printed


def comparison_metrics(
    comparison: ListComparison, settings: Mapping[str, Any], origin: Mapping[str, Any]
) -> dict[str, Any]:
    """Scores of every list, all paired differences, confusion, reliability, and what was done."""
    validation, every = comparison.validation, comparison.split
    split, titles = validation.split, list(comparison.lists)
    origins = split.origin[split.examined]
    rows = np.full(len(split.y), True)
    return {
        "kind": "comparison",
        **_scores(validation, rows),
        "by_origin": {
            str(name): {"n": int((origins == name).sum()), **_scores(validation, origins == name)}
            for name in np.unique(origins)
        },
        "confusion": {title: comparison.confusion(title).tolist() for title in titles},
        "reliability": {t: validation.reliability(t, CORRECTION, rows) for t in titles},
        "lists": {title: dict(comparison.facts[title]) for title in titles},
        "n_matched": every.matched,
        "n_targets": len(every.targets),
        "n_examined": int(every.examined.sum()),
        "n_targets_in_all": len(split.targets),
        "n_compared": len(split.y),
        "n_compared_per_class": {
            str(name): int((split.y == c).sum()) for c, name in enumerate(split.classes)
        },
        "settings": dict(settings),
        "provenance": dict(origin),
    }


def _scores(validation: ProspectiveValidation, rows: np.ndarray) -> dict[str, Any]:
    """Of some of the compared sources; a list has no seeds that scatter."""
    titles = validation.models
    scores = {title: validation.scores(title, CORRECTION, rows) for title in titles}
    for of in scores.values():
        del of["nll"]["seed_sd"]
    differences = {
        f"{one} - {other}": validation.scores(one, CORRECTION, rows, minus=(other, CORRECTION))
        for one, other in combinations(titles, 2)
    }
    return {"scores": scores, "differences": differences}


def summaries(metrics: Mapping[str, Any]) -> list[Summary]:
    """The scores, the paired differences, how often classes were confused, what became of rows."""
    facts = {
        "classified since": f"{metrics['n_examined']:,} of {metrics['n_targets']:,} sources",
        "in all lists": f"{metrics['n_compared']:,}: {counted(metrics['n_compared_per_class'])}",
        "floor": f"{metrics['settings']['floor']:.3g}, of a probability of the true class",
    }
    names = {"nll": "NLL", "error": "error", "brier": "Brier", "ece": "ECE"}
    rows = [
        [title, *(estimated(of[name]["mean"], of[name]["se"]) for name in names)]
        for title, of in metrics["scores"].items()
    ]
    found = [Summary("Comparison of lists", facts, ["list", *names.values()], rows)]
    paired = [name for name in names if name != "ece"]
    rows = [
        [title, *(_interval(of[name]) for name in paired)]
        for title, of in metrics["differences"].items()
    ]
    if rows:
        columns = ["lists", *(names[name] for name in paired)]
        found.append(Summary("Paired differences, with 95 % intervals", {}, columns, rows))
    classes = metrics["settings"]["classes"]
    rows = [
        [title, name, *map(str, of_class)]
        for title, table in metrics["confusion"].items()
        for name, of_class in zip(classes, table, strict=True)
    ]
    columns = ["list", "class", *(f"as {name}" for name in classes)]
    found.append(Summary("Sources by class and most probable class", {}, columns, rows))
    counts = {
        "n_rows": "rows",
        "n_without_probabilities": "empty",
        "n_not_in_old": "unmatched",
        "n_targets": "without a class",
        "n_examined": "classified since",
        "n_renormalised": "sum not 1",
        "n_below_floor": "below floor",
        "n_tied": "ties",
    }
    rows = [[title, *(f"{of[k]:,}" for k in counts)] for title, of in metrics["lists"].items()]
    found.append(Summary("What the lists hold", {}, ["list", *counts.values()], rows))
    return found


def _interval(value: Mapping[str, float]) -> str:
    mean, lower, upper = (round(value[key], 3) + 0.0 for key in ("mean", "lower", "upper"))
    return f"{mean:+.3f} ({lower:+.3f} to {upper:+.3f})"
