"""p(y | f): one file per family of likelihoods, with the family's own site rules.

Adding one is one file, here or in another package: a subclass of `ClassificationLikelihood` with
the facts on it and `@LIKELIHOODS.register` above it (another package also names it as an entry
point in the group "gpal.likelihoods").
"""

from __future__ import annotations

import inspect
from typing import Any

from gpal.errors import InputError
from gpal.files.saved_data import check_fields, check_keys
from gpal.likelihoods.base import LIKELIHOODS, ClassificationLikelihood
from gpal.likelihoods.of_gpflow import of_gpflow

__all__ = [
    "LIKELIHOODS",
    "ClassificationLikelihood",
    "chosen_likelihood",
    "is_auto",
    "likelihood_from_data",
    "likelihood_to_data",
    "make_likelihood",
    "of_gpflow",
]


FIELDS = {"name": str, "num_classes": int}  # and the constructor's other arguments


def make_likelihood(likelihood: Any, num_classes: int, **options: Any) -> ClassificationLikelihood:
    """A likelihood from its name and options, or a ready object, checked, as it is; of GPflow's the
    same of gpal's.

    Raises InputError for an unknown name, a number of classes the likelihood cannot have, or an
    object made for another number of classes.
    """
    likelihood = of_gpflow(likelihood)
    if not isinstance(likelihood, ClassificationLikelihood):
        make: Any = LIKELIHOODS.find(likelihood)
        taken = inspect.signature(make).parameters
        known = [name for name in taken if name != "num_classes"]
        if any(each.kind is each.VAR_KEYWORD for each in taken.values()):
            known = [*options]
        if unknown := [name for name in options if name not in known]:
            raise InputError(
                f"likelihood '{likelihood}' has no option '{unknown[0]}'; it has:"
                f" {', '.join(known) or 'none'}"
            )
        return make(num_classes, **options)
    if likelihood.num_classes != num_classes:
        raise InputError(
            f"likelihood {type(likelihood).__name__} was made for {likelihood.num_classes} classes,"
            f" the labels have {num_classes}: make it for {num_classes}, or give its name"
        )
    return likelihood


def chosen_likelihood(likelihood: Any, num_classes: int, one_each: bool = False) -> Any:
    """What "auto" is for so many classes; a likelihood of GPflow as gpal's, any other as it is.

    "softmax", and "bernoulli_logit" for two classes, which is the same model: with f_0 and f_1 of
    kernel k the difference f_1 - f_0 is one latent function of kernel 2 k. q(f_1 - f_0) has half
    the latent functions and a tighter bound than q(f_0) q(f_1), which cannot say that labels tell
    about the difference only.

    one_each   whether two classes need a latent function each as well
    """
    if is_auto(likelihood):
        return "bernoulli_logit" if num_classes == 2 and not one_each else "softmax"
    return of_gpflow(likelihood)


def is_auto(likelihood: Any) -> bool:
    """Whether the likelihood is left open."""
    return isinstance(likelihood, str) and likelihood == "auto"


def likelihood_to_data(likelihood: ClassificationLikelihood) -> dict[str, Any]:
    """For a model file; InputError for a class that could not be found again by its name."""
    LIKELIHOODS.name_of(type(likelihood))
    return likelihood.to_data()


def likelihood_from_data(data: dict[str, Any]) -> ClassificationLikelihood:
    """Inverse of `likelihood_to_data`; learned parameters are assigned afterwards."""
    check_fields({key: data.get(key) for key in FIELDS}, FIELDS, "the likelihood")
    options = {key: value for key, value in data.items() if key not in FIELDS}
    likelihood = make_likelihood(data["name"], data["num_classes"], **options)
    check_keys(data, likelihood.to_data(), "the likelihood")
    return likelihood
