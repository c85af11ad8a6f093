"""Which likelihood works with which input noise and which inference, and why where it does not.

Nothing is written down here: the facts stand on the classes, and the estimator's errors, the page
of the documentation and the tests are derived by walking the registers. GPflow's likelihoods of one
latent function, which are no classes of gpal, have theirs in `single_latent.SINGLE_LATENT`.
"""

from __future__ import annotations

from typing import Any, Protocol

import gpflow

from gpal.errors import InputError
from gpal.inference.base import INFERENCES, Inference
from gpal.inference.reference import REFERENCES
from gpal.inference.single_latent import OTHER, SINGLE_LATENT, facts_of
from gpal.input_noise.base import INPUT_NOISES, InputNoise, make_input_noise
from gpal.likelihoods.base import LIKELIHOODS, ClassificationLikelihood
from gpal.likelihoods.site_rules import SiteRule

__all__ = ["LikelihoodFacts", "check", "markdown", "why_not"]


class LikelihoodFacts(Protocol):
    """What a subclass of `ClassificationLikelihood` and a row of `SINGLE_LATENT` have in common."""

    @property
    def name(self) -> str: ...

    @property
    def classes(self) -> str: ...

    @property
    def log_concave(self) -> bool: ...

    @property
    def site_rules(self) -> tuple[SiteRule[Any], ...]: ...

    @property
    def takes_sets(self) -> bool: ...

    def is_coupled(self) -> bool: ...


def why_not(
    likelihood: LikelihoodFacts,
    input_noise: InputNoise,
    inference: type[Inference],
    num_classes: int = 3,
    partial_labels: bool = False,
) -> str:
    """'' where the combination works, else the reason why it does not.

    likelihood   a class of likelihoods, or a row of `SINGLE_LATENT`
    num_classes  of the labels; 0 where the response is no class
    partial_labels  whether some labels are sets of classes, or have weights
    """
    if likelihood.classes == "two" and num_classes != 2:
        return (
            f"likelihood '{likelihood.name}' tells two classes apart, the labels have {num_classes}"
        )
    if inference.rule is not None and not _has_rule(likelihood, inference.rule):
        served = [kind.name for kind in LIKELIHOODS.classes() if _has_rule(kind, inference.rule)]
        return f"inference '{inference.name}' has closed-form sites for {', '.join(served)} only"
    if input_noise.gradient_only and not inference.draws_inputs:
        follow = [method.name for method in INFERENCES.classes() if method.draws_inputs]
        return (
            f"input noise '{input_noise.name}' draws inputs at every step, which only"
            f" {', '.join(follow)} follow"
        )
    if inference.one_node and input_noise.training_nodes > 1:
        return f"inference '{inference.name}' {inference.one_node}"
    if inference.exact_inputs and input_noise.uses_root and not input_noise.closed_form_moments:
        return f"inference '{inference.name}' takes inputs as exact"
    averaged = input_noise.training_nodes > 1 and likelihood.is_coupled()
    if inference.log_concave and (averaged or not likelihood.log_concave):
        how = " averaged over an uncertain input" if likelihood.log_concave else ""
        return (
            f"likelihood '{likelihood.name}'{how} is not log-concave: a natural-gradient step of"
            f" '{inference.name}' can leave the positive-definite matrices"
        )
    if partial_labels and not likelihood.takes_sets:
        return (
            f"likelihood '{likelihood.name}' takes no label that is a set of classes or has weights"
        )
    if partial_labels and (inference.rule is not None or inference.log_concave):
        needs = "a label of one class" if inference.rule else "a log-concave likelihood"
        return f"inference '{inference.name}' needs {needs}: it takes no sets and no weights"
    return ""


def _has_rule(likelihood: LikelihoodFacts, name: str) -> bool:
    return name in [rule.name for rule in likelihood.site_rules]


def check(
    likelihood: Any,
    input_noise: str | InputNoise,
    inference: str,
    num_classes: int,
    learn_errors: str = "none",
    partial_labels: bool = False,
) -> None:
    """Raise InputError, naming reason and alternatives, for what is not supported.

    likelihood   a name, a ClassificationLikelihood (registered or not), or a likelihood of GPflow
    num_classes  of the labels; 0 where the response is no class
    partial_labels  whether some labels are sets of classes, or have weights
    """
    facts, treatment = _facts(likelihood), make_input_noise(input_noise)
    reason = why_not(facts, treatment, INFERENCES.find(inference), num_classes, partial_labels)
    if learn_errors != "none" and not treatment.uses_errors:
        raise InputError(
            "learn_errors needs a treatment that uses errors; choose input_noise='integrated'"
        )
    if reason:
        works = _works(facts, treatment, num_classes, partial_labels)
        remedy = f"inferences that work here: {', '.join(works)}" if works else "choose softmax"
        raise InputError(f"{reason}; {remedy}")


def _facts(likelihood: Any) -> LikelihoodFacts:
    if isinstance(likelihood, ClassificationLikelihood):
        return type(likelihood)
    if isinstance(likelihood, gpflow.likelihoods.ScalarLikelihood):
        return facts_of(likelihood)
    return LIKELIHOODS.find(likelihood)


def _works(
    likelihood: LikelihoodFacts,
    treatment: InputNoise,
    num_classes: int,
    partial_labels: bool = False,
) -> list[str]:
    """Names of the inferences that work with both."""
    return [
        method.name
        for method in INFERENCES.classes()
        if not why_not(likelihood, treatment, method, num_classes, partial_labels)
    ]


def markdown() -> str:
    """docs/capabilities.md: the tables, and the reason for every gap in them."""
    treatments = [kind() for kind in INPUT_NOISES.classes()]
    likelihoods, responses = LIKELIHOODS.classes(), [*SINGLE_LATENT.values(), OTHER]
    lines = [
        "# What works with what",
        "",
        "Generated by `python -m gpal.inference.capabilities` from the facts on the classes.",
        "",
        *_table(
            *("likelihood", "classes", "sets and weights as labels", "expectation", "prediction"),
            *("inference", "source"),
        ),
    ]
    for kind in likelihoods:
        name = " or ".join(f"`{name}`" for name in (kind.name, *vars(kind).get("aliases", ())))
        works = _code(_works(kind, make_input_noise("none"), 2 if kind.classes == "two" else 3))
        lines.append(
            _row(
                *(name, kind.classes, "yes" if kind.takes_sets else "no", kind.expectation),
                *(kind.prediction, works, kind.source),
            )
        )
    lines += [
        "",
        "With `NoisyInputGP`, GPflow's likelihoods of one latent function:",
        "",
        *_table("likelihood", "response", "expectation", "prediction", "inference"),
    ]
    for row in responses:
        works = _code(_works(row, make_input_noise("none"), 0))
        lines.append(_row(f"`{row.name}`", row.response, row.expectation, row.prediction, works))
    lines += ["", *_table("input noise", "what it does", "source")]
    lines += [_row(f"`{noise.name}`", noise.summary, noise.source) for noise in treatments]
    lines += ["", *_table("inference", "what it is", "source")]
    lines += [_row(f"`{m.name}`", m.summary, m.source) for m in INFERENCES.classes()]
    lines += [
        "",
        "What a Gaussian q(f) is compared with (`gpal.model.reference`), exact inputs only:",
        "",
        *_table("reference", "what it is", "likelihoods", "source"),
    ]
    for reference in REFERENCES.classes():
        taken = _code([kind.name for kind in likelihoods if not reference.why_not(kind)])
        lines.append(_row(f"`{reference.name}`", reference.summary, taken, reference.source))
    reasons: dict[str, None] = {}  # each once, in order
    every: list[LikelihoodFacts] = [*likelihoods, *responses]
    for facts in every:
        num_classes = 2 if facts.classes == "two" else 3
        for method in INFERENCES.classes():
            for noise in treatments:
                for partial_labels in (False, facts in likelihoods):
                    reasons.setdefault(why_not(facts, noise, method, num_classes, partial_labels))
    reasons.update(dict.fromkeys(noise.kernel_gap for noise in treatments))
    for reference in REFERENCES.classes():
        reasons.update(dict.fromkeys(reference.why_not(kind) for kind in likelihoods))
    lines += ["", "## Gaps, and why", "", *(f"- {reason}." for reason in reasons if reason)]
    return "\n".join(lines) + "\n"


def _table(*columns: str) -> list[str]:
    return [_row(*columns), "|" + "---|" * len(columns)]


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _code(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


if __name__ == "__main__":
    print(markdown(), end="")
