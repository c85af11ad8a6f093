"""None of these: does what the populations of the known classes leave unexplained tell `other`?

    python workflows/validation/select_none.py gll_psc_v27.fit [--old gll_psc_v16.fit]

Densities of the true features, Gaussian mixtures deconvolved from each source's own errors, of agn
and of pulsars, f_k(x), 3 Gaussians each, learned as the frozen model is from labelled sources and
their fainter copies; of the exemplars of `other`, one Gaussian; and of all sources without a class,
3 Gaussians, f(x). With class fractions π of the labelled sources, two ways:

    feature   the frozen model with one feature more, s = log f(x) − log Σ_k π_k f_k(x), of labelled
              sources by densities that did not see them
    mixture   ½ that of the frozen model + ½ π_c f_c(x) / Σ π f, where of `other` the density is
              ½ exemplars + ½ f(x)

Rule, written before the first run. One of the two is taken if, with the labelled sources' class
fractions, on 3FGL -> 4FGL-DR2 and 4FGL -> 4FGL-DR2 its NLL is nowhere more than .01 above that of
the frozen model, the area of `other` is higher by .024 or more in the mean of both, which is what
lacks to the best plain classifier, and three folds of 4FGL's labelled sources are not predicted
worse by more than .01. If both do, that with the lower mean NLL. Only then are the three reported
pairs run, once. For 4FGL-DR2 the full file is needed. Takes ten minutes on one core.
"""

import argparse

import numpy as np
from frozen import model, release
from scipy.special import logsumexp
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import StratifiedKFold

from gpal import load_catalog
from gpal.evaluation import any_classifier
from gpal.evaluation.prospective import prospective_split
from gpal.input_noise.population import Population
from gpal.measurements import Measurements

OTHER, COMPONENTS = "other", {"agn": 3, "pulsar": 3, "other": 1}
FROZEN, FEATURE, DENSITIES, MIXTURE = "frozen", "feature", "densities alone", "mixture"
N_BOOTSTRAP = 2000


def stacked(sources, fainter, seed):
    """Sources and their fainter copies."""
    return Measurements.stack([sources, fainter(sources, seed)])


class Densities:
    """log f_c(x) of labelled sources' classes and log f(x) of all, by each source's own errors."""

    def __init__(self, both, y, targets):
        every = targets.X
        self.offset, self.width = np.nanmean(every, axis=0), np.nanstd(every, axis=0)
        self.classes = np.unique(y)
        self.fractions = np.mean(y[:, None] == self.classes, axis=0)
        y = np.tile(y, 2)
        self.of_class = [self._fit(both[y == c], COMPONENTS[c]) for c in self.classes]
        self.of_all = self._fit(targets, 3)

    def _scaled(self, sources):
        missing = ~sources.measured
        X = np.where(missing, 0.0, (sources.X - self.offset) / self.width)
        return X, np.where(missing, np.inf, sources.X_err / self.width)

    def _fit(self, sources, num_components):
        return Population.fit(*self._scaled(sources), num_components=num_components)

    def __call__(self, sources):
        """(n, C) log f_c and (n,) log f."""
        X, X_err = self._scaled(sources)
        each = [p.condition(X, X_err).log_evidence.numpy() for p in (*self.of_class, self.of_all)]
        return np.stack(each[:-1], axis=1), each[-1]

    def score(self, sources):
        """(n,) s."""
        of_class, of_all = self(sources)
        known = self.classes != OTHER
        weights = self.fractions[known] / self.fractions[known].sum()
        return of_all - logsumexp(of_class[:, known], axis=1, b=weights)

    def predict_proba(self, sources):
        of_class, of_all = self(sources)
        c = np.flatnonzero(self.classes == OTHER)[0]
        of_class[:, c] = np.logaddexp(of_class[:, c], of_all) - np.log(2)
        log_p = of_class + np.log(self.fractions)
        return np.exp(log_p - logsumexp(log_p, axis=1, keepdims=True))


def with_score(sources, score):
    """The sources with one exact feature more."""
    return Measurements(
        np.column_stack([sources.X, score]),
        np.column_stack([sources.X_err, np.zeros(len(score))]),
        names=(*sources.names, "unexplained"),
    )


def predictions(old, known, y, targets, asked):
    """Way -> (m, C) of `asked`, learned from `known`; of the old release's `targets` no class."""
    taught, features = model(old, exhaustive=True)
    known, targets, asked = (s.select(features) for s in (known, targets, asked))
    both = stacked(known, taught.fainter, taught.random_state)
    densities = Densities(both, y, targets)
    score = np.zeros(len(both))
    for train, test in StratifiedKFold(3, shuffle=True, random_state=0).split(y, y):
        unseen = Densities(both[np.r_[train, train + len(y)]], y[train], targets)
        rows = np.r_[test, test + len(y)]
        score[rows] = unseen.score(both[rows])
    informed = any_classifier.fit(
        taught.classifier,
        with_score(both, score),
        np.tile(y, 2),
        sample_weight=np.full(len(both), 0.5),
    )
    found = {FEATURE: informed.predict_proba(with_score(asked, densities.score(asked)))}
    found[FROZEN] = any_classifier.fit(taught, known, y).predict_proba(asked)
    found[DENSITIES] = densities.predict_proba(asked)
    found[MIXTURE] = (found[FROZEN] + found[DENSITIES]) / 2
    return {way: found[way] for way in (FROZEN, FEATURE, DENSITIES, MIXTURE)}


def area_and_error(is_other, p, minus):
    """Area of `other`, its difference to another one and that's bootstrap error."""
    rng, drawn = np.random.default_rng(0), []
    for _ in range(N_BOOTSTRAP):
        rows = rng.integers(len(p), size=len(p))
        if 0 < is_other[rows].sum() < len(rows):
            drawn.append(
                roc_auc_score(is_other[rows], p[rows]) - roc_auc_score(is_other[rows], minus[rows])
            )
    area = roc_auc_score(is_other, p)
    return area, area - roc_auc_score(is_other, minus), np.std(drawn)


def report(title, classes, y, found):
    c = classes.tolist().index(OTHER)
    print(f"{title}: {dict(zip(classes.tolist(), np.bincount(y).tolist(), strict=True))}")
    for way, P in found.items():
        area, gain, error = area_and_error(y == c, P[:, c], found[FROZEN][:, c])
        print(
            f"  {way:15s} NLL {log_loss(y, P):.3f}, area of other {area:.3f}"
            f" ({gain:+.3f} ± {error:.3f})",
            flush=True,
        )


def in_folds(known, predict):
    """Classes, class indices and way -> probabilities, (n, C), of `predict(train, test)`."""
    classes, y = np.unique(known.y, return_inverse=True)
    folds = StratifiedKFold(3, shuffle=True, random_state=0).split(y, y)
    parts = [(test, predict(known[train], known[test])) for train, test in folds]
    order = np.concatenate([test for test, _ in parts])
    together = {way: np.concatenate([found[way] for _, found in parts]) for way in parts[0][1]}
    return classes, y[order], together


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("dr2", help="the full file of 4FGL-DR2")
    parser.add_argument("--old", default="3fgl", help="3FGL, or its full file")
    arguments = parser.parse_args()
    new = load_catalog(arguments.dr2).with_exhaustive_classes()
    for name in (arguments.old, "4fgl"):
        old = release(name, exhaustive=True)
        split = prospective_split(old, new)
        known, targets = split.labelled, split.targets.measurements
        found = predictions(old, known.measurements, known.y, targets, targets[split.examined])
        report(f"{old.schema.name} -> 4fgl-dr2", split.classes, split.y, found)

    def of_fold(train, test):
        return predictions(old, train.measurements, train.y, targets, test.measurements)

    report("4fgl, folds", *in_folds(old.labelled(), of_fold))


if __name__ == "__main__":
    main()
