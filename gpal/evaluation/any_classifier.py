"""Any classifier, given Measurements: ours as they are, others what they can take of them.

    GPClassifier (`takes_measurements`)   the Measurements themselves
    a method with an argument X_err       arrays X and X_err, and X_cov if it has that argument too
    any other of scikit-learn's           the values X

So that whoever cross-validates, ranks or compares classifiers need not know which is which. A
covariance or limits that a classifier with errors has no argument for are not dropped in silence: a
warning says so.

An array or data frame stands for values that come without errors: it is handed on alone, so that a
model fitted with errors can refuse it, and may hold what its classifier understands ([X | X_err],
NaN, names of columns).
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from gpal.arrays import as_measurements
from gpal.errors import InputError, as_python, shown
from gpal.measurements import Measurements
from gpal.names import check_seed
from gpal.plain_values import plain
from gpal.provenance import to_json

__all__ = [
    "Sources",
    "as_sources",
    "check_settings",
    "error_arguments",
    "fit",
    "has_deviation",
    "predict_proba",
    "predict_proba_std",
    "predict_proba_with_std",
    "refuse_own_fractions",
    "rows_of",
    "sample_proba",
    "save",
    "takes_errors",
    "takes_prior",
    "takes_weights",
]

Sources = Measurements | np.ndarray  # or a data frame, of which type checkers know nothing


def as_sources(X: Any, X_err: Any = None, X_cov: Any = None) -> Sources:
    """What a caller has, as one object: Measurements, or an array (n, d) where no errors are given;
    arguments as in `gpal.arrays.as_measurements`."""
    if isinstance(X, Measurements) or X_err is not None or X_cov is not None:
        values = X if isinstance(X, Measurements) or hasattr(X, "columns") else np.atleast_2d(X)
        return as_measurements(values, X_err, X_cov)
    return np.atleast_2d(np.asarray(plain("X", X)))


def rows_of(sources: Sources, rows: np.ndarray) -> Sources:
    """Some of the sources, by their numbers."""
    return sources.iloc[rows] if isinstance(sources, pd.DataFrame) else sources[rows]


def takes_errors(classifier: Any) -> bool:
    """Whether the classifier is told the error bars."""
    return _takes_measurements(classifier) or _has(classifier.fit, "X_err")


def check_settings(classifier: Any, num_classes: int, num_features: int) -> None:
    """InputError for settings that no such data could be fitted with, where the classifier knows of
    any."""
    seed = getattr(classifier, "random_state", None)
    if isinstance(seed, int | np.integer):
        check_seed(seed)
    if hasattr(classifier, "check_settings"):
        classifier.check_settings(num_classes, num_features)


def fit(classifier: Any, sources: Sources, y: np.ndarray, **options: Any) -> Any:
    """`classifier` itself, fitted to n sources and labels y (n,); `options` of its own `fit`.

    InputError where its classes come out in another order than sorted, as all of scikit-learn's
    are: columns of its probabilities would be taken for those of other classes. So where it would
    hand a classifier in it the values of Measurements without their errors.
    """
    if not isinstance(sources, Measurements) or _takes_measurements(classifier):
        fitted = classifier.fit(sources, y, **options)
    else:
        _refuse_one_inside(classifier, classifier.fit, sources)
        errors = error_arguments(classifier.fit, sources)
        fitted = classifier.fit(sources.X, y, **errors, **options)
    classes = getattr(fitted, "classes_", None)
    classes = None if classes is None else np.asarray(classes)
    if classes is not None and not np.array_equal(classes, np.sort(classes)):
        raise InputError(
            f"the classes of {type(classifier).__name__} are {shown(as_python(classes), 200)}, not"
            " in sorted order: sort its classes_, and the columns of predict_proba with them"
        )
    return fitted


def _refuse_one_inside(classifier: Any, method: Callable, sources: Measurements) -> None:
    """Of a pipeline, a search or other composite of one of ours."""
    if _has(method, "X_err") or not hasattr(classifier, "get_params"):
        return
    parts = classifier.get_params(deep=True).values()
    inside = [part for part in parts if _takes_measurements(part)]
    packed = any(getattr(part, "packed", False) for part in inside)
    if inside and (packed or (sources.X_err > 0).any()):
        remedy = "" if packed else "give that packed=True, and "
        raise InputError(
            f"{type(classifier).__name__} would hand the {type(inside[0]).__name__} in it values"
            f" without their errors: {remedy}give .pack() of the Measurements, [X | X_err], which"
            " has them as features"
        )


def refuse_own_fractions(classifier: Any) -> None:
    """InputError where probabilities refer to class fractions of the classifier's own already, for
    whoever refers them to others."""
    for key, value in classifier.get_params().items():
        is_set = isinstance(value, Mapping | np.ndarray | list | tuple)
        if is_set and key.split("__")[-1] in ("prior", "priors"):
            raise InputError(
                f"{type(classifier).__name__} has class fractions of its own, {key}="
                f"{shown(as_python(value), 100)}, and would be given others on top of them: leave"
                " them out, and give the job `prior`"
            )


def predict_proba(classifier: Any, sources: Sources) -> np.ndarray:
    """(n, C) class probabilities in the order of `classes_`."""
    return _call(classifier, classifier.predict_proba, sources)


def has_deviation(classifier: Any) -> bool:
    """Whether the classifier knows the standard deviation of its probabilities."""
    return hasattr(classifier, "predict_proba_std")


def takes_weights(classifier: Any) -> bool:
    """Whether it takes Measurements, and weights of them."""
    return _takes_measurements(classifier) and _has(classifier.fit, "sample_weight")


def takes_prior(classifier: Any) -> bool:
    """Whether it knows that deviation for other class fractions, too."""
    return has_deviation(classifier) and _has(classifier.predict_proba_std, "prior")


def predict_proba_std(
    classifier: Any, sources: Sources, prior: Mapping[Any, float] | None = None
) -> np.ndarray:
    """(n, C) standard deviations of the probabilities; `prior` for other class fractions."""
    options = {} if prior is None else {"prior": prior}
    return _call(classifier, classifier.predict_proba_std, sources, **options)


def predict_proba_with_std(classifier: Any, sources: Sources) -> tuple[np.ndarray, np.ndarray]:
    """Both, at once where the classifier can."""
    if hasattr(classifier, "predict_proba_with_std"):
        return _call(classifier, classifier.predict_proba_with_std, sources)
    return predict_proba(classifier, sources), predict_proba_std(classifier, sources)


def sample_proba(
    classifier: Any, sources: Sources, num_samples: int, seed: int = 0
) -> np.ndarray | None:
    """(num_samples, n, C) probabilities drawn from a posterior, jointly for all sources; None of a
    classifier that has none, or none that is joint."""
    if not hasattr(classifier, "sample_proba"):
        return None
    options = {"num_samples": num_samples, "seed": seed}
    try:
        return _call(classifier, classifier.sample_proba, sources, **options)
    except InputError:  # an input noise without covariances between sources
        return None


def settings_text(classifier: Any) -> str:
    """Its class and what it was made with, as text: an object among that, if it is none of gpal's
    or GPflow's, by its class alone."""

    def described(value: Any) -> Any:
        if isinstance(value, list | tuple):
            return [described(part) for part in value]
        if isinstance(value, Mapping):
            return {str(key): described(part) for key, part in value.items()}
        plain = (str, int, float, bool, type(None), np.ndarray, np.generic)
        return value if isinstance(value, plain) else _object_data(value)

    parts = {name: described(value) for name, value in classifier.get_params(deep=True).items()}
    return f"{type(classifier).__module__}.{type(classifier).__qualname__} {to_json(parts)}"


def _object_data(value: Any) -> Any:
    """A kernel, likelihood or input noise as data of a model file, anything else by its class."""
    if type(value).__module__.partition(".")[0] in ("gpal", "gpflow"):
        from gpal.model.parameters import parameters_to_data

        with suppress(InputError):  # of a class that no file can hold
            return parameters_to_data({"": value})[""]
    return type(value).__name__


def save(classifier: Any, path: Path, provenance: Mapping[str, Any]) -> None:
    """Write the fitted classifier, if it can `save` itself, with what made it, if it keeps that."""
    if hasattr(classifier, "save"):
        options = {"provenance": provenance} if _has(classifier.save, "provenance") else {}
        classifier.save(path, **options)


def _call(classifier: Any, method: Callable, sources: Sources, **options: Any) -> Any:
    if not isinstance(sources, Measurements) or _takes_measurements(classifier):
        return method(sources, **options)
    _refuse_one_inside(classifier, method, sources)
    return method(sources.X, **error_arguments(method, sources), **options)


def _takes_measurements(classifier: Any) -> bool:
    return getattr(classifier, "takes_measurements", False)


def error_arguments(method: Callable, sources: Measurements) -> dict[str, np.ndarray]:
    """The errors as the arguments X_err or X_cov of a classifier's method, those that it has."""
    if not _has(method, "X_err"):
        return {}
    if sources.limits is not None:
        warnings.warn(
            f"{_owner(method)} takes error bars but no limits: a value of which a limit is known"
            " counts as not measured",
            stacklevel=4,
        )
    if sources.covariance is None:
        return {"X_err": sources.X_err}
    if _has(method, "X_cov"):
        return {"X_cov": sources.covariance}
    warnings.warn(
        f"{_owner(method)} takes error bars but no covariance: the correlations of the errors are"
        " not used",
        stacklevel=4,
    )
    return {"X_err": sources.X_err}


def _owner(method: Callable) -> str:
    return type(getattr(method, "__self__", method)).__name__


def _has(method: Callable, argument: str) -> bool:
    return argument in inspect.signature(method).parameters
