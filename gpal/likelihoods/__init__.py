"""p(y | f): one file per family of likelihoods.

`LIKELIHOODS` maps the names a user types to the classes. A class is imported when it is looked up,
so that listing the names does not load TensorFlow.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

from gpal.errors import InputError

__all__ = ["LIKELIHOODS", "likelihood_from_data", "make_likelihood"]


class _LazyClasses(Mapping[str, type]):
    """Name → class, given as "module:class"."""

    def __init__(self, locations: dict[str, str]) -> None:
        self._locations = locations

    def __getitem__(self, name: str) -> type:
        module, attribute = self._locations[name].split(":")
        return getattr(import_module(f"gpal.likelihoods.{module}"), attribute)

    def __contains__(self, name: object) -> bool:
        return name in self._locations

    def __iter__(self) -> Iterator[str]:
        return iter(self._locations)

    def __len__(self) -> int:
        return len(self._locations)


LIKELIHOODS: Mapping[str, type] = _LazyClasses(
    {
        "softmax": "softmax:Softmax",
        "gumbel_softmax": "gumbel_softmax:GumbelSoftmax",
        "logistic_softmax": "logistic_softmax:LogisticSoftmax",
        "step": "additive_noise:Step",
        "robust_max": "additive_noise:Step",
        "probit": "additive_noise:Probit",
        "logit": "additive_noise:Logit",
        "bernoulli_logit": "bernoulli_logit:BernoulliLogit",
        "dirichlet": "dirichlet:Dirichlet",
    }
)


def make_likelihood(likelihood: Any, num_classes: int, **options: Any) -> Any:
    """A likelihood from its name and options, or a ready object, checked, as it is.

    Raises InputError for an unknown name, a number of classes the likelihood cannot have, or an
    object made for another number of classes.
    """
    if isinstance(likelihood, str):
        if likelihood not in LIKELIHOODS:
            raise InputError(
                f"unknown likelihood {likelihood!r}: choose one of {', '.join(LIKELIHOODS)}"
            )
        return LIKELIHOODS[likelihood](num_classes, **options)
    made_for = getattr(likelihood, "num_classes", num_classes)
    if made_for != num_classes:
        raise InputError(
            f"likelihood {type(likelihood).__name__} was made for {made_for} classes, the labels "
            f"have {num_classes}: make it for {num_classes}, or give its name"
        )
    return likelihood


def likelihood_from_data(data: dict[str, Any]) -> Any:
    """The likelihood that wrote `data` by `to_data`; learned parameters are assigned afterwards."""
    options = {key: value for key, value in data.items() if key not in ("name", "num_classes")}
    return make_likelihood(data["name"], data["num_classes"], **options)
