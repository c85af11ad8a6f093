"""Refit after a few labels at a small part of the cost of a fit.

Kept from the last full fit: scaling, population prior, kernel hyper-parameters, inducing points.
Only q(f) is met anew, by the site engine started at the previous posterior: a few sweeps instead of
a search over hyper-parameters. The sites have one fixed point for given hyper-parameters where the
likelihood is log-concave and the input is not integrated over: there the result is that of a cold
start, elsewhere near it.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import numpy as np

from gpal.errors import InputError

__all__ = ["can_refit", "refit"]

SWEEPS = 20


def can_refit(classifier: Any, y: np.ndarray, X_err: np.ndarray | None) -> bool:
    """Whether `refit` can do it: a fitted GPClassifier on the site engine, the same classes, and
    error bars on no feature that had none."""
    if not hasattr(classifier, "model_") or not hasattr(classifier, "class_fractions_"):
        return False
    from gpal.inference.capabilities import INFERENCES

    if INFERENCES[classifier.inference].path != "engine":
        return False
    if set(np.unique(y).tolist()) - set(classifier.classes_.tolist()):
        return False
    noisy = () if X_err is None else np.flatnonzero((np.asarray(X_err) > 0).any(axis=0))
    if len(noisy) and not classifier.X_err_given_:
        return False
    treatment = classifier.model_.input_noise
    if treatment.uses_root:
        return set(noisy) <= set(classifier.model_.gp.noisy)
    return treatment.name == classifier.input_noise or not len(noisy)


def refit(classifier: Any, X: np.ndarray, y: np.ndarray, X_err: np.ndarray | None = None) -> Any:
    """A new classifier fitted to X, y, X_err with the hyper-parameters of `classifier`, which stays
    as it is.

    Raises InputError on labels that `classifier` does not know.
    """
    from gpal.inference.capabilities import INFERENCES
    from gpal.inference.full import FullGP
    from gpal.inference.input_rows import InputRows
    from gpal.inference.sites import fit_sites
    from gpal.inference.sparse import SparseGP
    from gpal.likelihoods.site_rules import SITE_RULES

    fitted = copy.copy(classifier)
    X, y, X_err = fitted._validated(X, y, X_err, reset=False)
    unknown = np.setdiff1d(y, fitted.classes_)
    if len(unknown):
        raise InputError(
            f"class {unknown[0]!r} is not one of {fitted.classes_.tolist()}; fit from the start"
        )
    labels = np.searchsorted(fitted.classes_, y)
    model = fitted.model_
    inputs = InputRows(model.true_input, model.input_noise)
    X, X_err = fitted._scaled(X, X_err)
    data = inputs.data(X, X_err, None, labels)
    gp = model.gp
    if isinstance(gp, FullGP):  # its sources become the inducing points
        gp = SparseGP(gp.kernels, gp.Z.numpy(), gp.num_latent, nodes=gp.nodes)
    own = "dirichlet" if model.likelihood.name == "dirichlet" else "natural_gradient"
    rule = SITE_RULES[INFERENCES[fitted.inference].rule or own]
    fit = fit_sites(
        gp,
        model.likelihood,
        rule,
        data,
        start=model.posterior,
        rounds=0,
        initial_sweeps=0,
        final_sweeps=SWEEPS,
    )
    fitted.model_ = replace(model, gp=gp, posterior=fit.posterior, bound=fit.bound / len(y))
    fitted.bound_ = fitted.model_.bound
    fitted.class_fractions_ = np.bincount(labels, minlength=len(fitted.classes_)) / len(labels)
    return fitted
