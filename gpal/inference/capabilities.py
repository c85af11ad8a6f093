"""Which likelihood works with which input noise and which inference, and why where it does not.

The estimator's errors, the page of the documentation and the tests are generated from these tables.
A new likelihood, treatment or inference is one row here.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpal.errors import InputError

__all__ = [
    "GRADIENT_ONLY",
    "INFERENCES",
    "INPUT_NOISES",
    "KERNEL_GAPS",
    "LIKELIHOODS",
    "SINGLE_LATENT",
    "check",
    "markdown",
    "why_not",
]


@dataclass(frozen=True)
class LikelihoodRow:
    """classes it can tell apart, how E_q log p(y|f) is taken, which site rules it has."""

    classes: str  # "two or more", "two"; of a single-latent likelihood the kind of response
    expectation: str
    prediction: str
    source: str
    rules: tuple[str, ...] = ("natural_gradient",)
    log_concave: bool = True
    coupled: bool = False  # all nodes of an uncertain input are met together (`averaged.coupled`)


@dataclass(frozen=True)
class InferenceRow:
    """rule: site rule it needs (None: any likelihood's own); path: function that runs it."""

    summary: str
    path: str
    rule: str | None
    source: str
    one_node: bool = False  # cannot take several nodes per source
    exact_inputs: bool = False  # cannot take a slope variance either
    log_concave: bool = False  # needs E_q log p(y|f) with ∂E/∂v ≤ 0 everywhere


LIKELIHOODS: dict[str, LikelihoodRow] = {
    "softmax": LikelihoodRow(
        "two or more", "fixed quasi-random", "fixed quasi-random", "Bridle 1990", coupled=True
    ),
    "gumbel_softmax": LikelihoodRow(
        "two or more", "closed-form bound", "fixed quasi-random", "Liu et al. 2019"
    ),
    "logistic_softmax": LikelihoodRow(
        "two or more",
        "fixed quasi-random",
        "fixed quasi-random",
        "Galy-Fajou et al. 2019",
        ("natural_gradient", "cavi"),
        log_concave=False,
        coupled=True,
    ),
    "step": LikelihoodRow(
        "two or more",
        "closed form (two), quadrature",
        "closed form (two), quadrature",
        "Liu et al. 2019",
        log_concave=False,
    ),
    "robust_max": LikelihoodRow(
        "two or more",
        "closed form (two), quadrature",
        "closed form (two), quadrature",
        "another name of step",
        log_concave=False,
    ),
    "probit": LikelihoodRow(
        "two or more",
        "closed form (two), quadrature",
        "closed form (two), quadrature",
        "Liu et al. 2019",
        log_concave=False,
    ),
    "logit": LikelihoodRow(
        "two or more",
        "closed form (two), quadrature",
        "closed form (two), quadrature",
        "Liu et al. 2019",
        log_concave=False,
    ),
    "bernoulli_logit": LikelihoodRow(
        "two",
        "normal mixture, to 1e-10",
        "normal mixture, to 1e-10",
        "Izmailov & Kropotov 2016",
        ("natural_gradient", "jaakkola_jordan", "taylor"),
        coupled=True,
    ),
    "dirichlet": LikelihoodRow(
        "two or more",
        "closed form",
        "fixed quasi-random",
        "Milios et al. 2018",
        ("natural_gradient", "dirichlet"),
    ),
}

# GPflow's likelihoods of one latent function, for `NoisyInputGP`; "other": any further subclass of
# gpflow.likelihoods.ScalarLikelihood. GPflow's probit has a floor of 10⁻³ for outliers: with it
# bernoulli and ordinal are not log-concave.
SINGLE_LATENT: dict[str, LikelihoodRow] = {
    name: LikelihoodRow(response, expectation, prediction, "GPflow", log_concave=log_concave)
    for name, response, expectation, prediction, log_concave in (
        ("gaussian", "real", "closed form", "closed form", True),
        ("student_t", "real, with outliers", "quadrature", "quadrature", False),
        ("poisson", "counts", "closed form", "quadrature", True),
        ("exponential", "positive", "closed form", "quadrature", True),
        ("gamma", "positive", "closed form", "quadrature", True),
        ("beta", "between 0 and 1", "quadrature", "quadrature", False),
        ("bernoulli", "0 or 1", "quadrature", "closed form", False),
        ("ordinal", "grades 0, 1, …", "quadrature", "quadrature", False),
        ("other", "any", "GPflow's", "GPflow's", False),
    )
}

INFERENCES: dict[str, InferenceRow] = {
    "sites": InferenceRow(
        "natural-gradient Gaussian sites over all rows (the default)",
        "engine",
        None,
        "Khan & Lin 2017",
    ),
    "stochastic_sites": InferenceRow(
        "natural-gradient sites on mini-batches", "stochastic", None, "Hoffman et al. 2013"
    ),
    "jaakkola_jordan": InferenceRow(
        "vi-JJ: Jaakkola-Jordan bound, also Pólya-Gamma coordinate ascent",
        "engine",
        "jaakkola_jordan",
        "Izmailov & Kropotov 2016",
    ),
    "jaakkola_jordan_hybrid": InferenceRow(
        "vi-JJ-hybrid: closed-form local parameters, then L-BFGS on them and the kernel",
        "local_hybrid",
        "jaakkola_jordan",
        "Izmailov & Kropotov 2016",
        True,
        True,
    ),
    "jaakkola_jordan_full": InferenceRow(
        "vi-JJ-full: L-BFGS on local parameters and kernel together",
        "local_full",
        "jaakkola_jordan",
        "Izmailov & Kropotov 2016",
        True,
        True,
    ),
    "taylor": InferenceRow(
        "vi-Taylor: second-order expansion, not a bound",
        "engine",
        "taylor",
        "Izmailov & Kropotov 2016",
    ),
    "cavi": InferenceRow(
        "coordinate ascent on the augmented logistic-softmax: quick, loose bound",
        "engine",
        "cavi",
        "Galy-Fajou et al. 2019",
    ),
    "stochastic_cavi": InferenceRow(
        "cavi on mini-batches", "stochastic", "cavi", "Galy-Fajou et al. 2019"
    ),
    "svgp": InferenceRow("mini-batch SVGP with Adam", "svgp_adam", None, "Hensman et al. 2015"),
    "svgp_adadelta": InferenceRow(
        "mini-batch SVGP with AdaDelta", "svgp_adadelta", None, "Izmailov & Kropotov 2016"
    ),
    "svgp_natgrad": InferenceRow(
        "mini-batch SVGP, natural gradients on q(u), Adam on the rest",
        "svgp_natgrad",
        None,
        "Salimbeni et al. 2018",
        log_concave=True,
    ),
}

INPUT_NOISES: dict[str, str] = {
    "none": "error bars ignored",
    "first_order": "slope variance added to Var f (Villacampa-Calvo et al. 2021, NIMGP_FO)",
    "integrated": "likelihood averaged over fixed nodes of x given its measurement",
    "latent": "a Gaussian q(x) learned for each source (Villacampa-Calvo et al. 2021, NIMGP)",
    "amortized": "the same q(x) from one neural network (the same paper, NIMGP_NN)",
    "resampled": "x drawn anew for every mini-batch (the same paper's baseline, appendix B.1)",
    "analytic": "moments of f over a Gaussian x in closed form (psi statistics)",
}

# Treatments that need a kernel of a certain form; every other one takes any kernel.
KERNEL_GAPS: dict[str, str] = {
    "analytic": "input noise 'analytic' has closed forms for sums of linear, constant and one"
    " squared-exponential kernel",
}

# Inputs drawn at every step, from a q(x) that is trained like everything else on this path.
GRADIENT_ONLY = ("latent", "amortized", "resampled")


def why_not(likelihood: str, input_noise: str, inference: str, num_classes: int = 3) -> str:
    """'' where the combination works, else the reason why it does not."""
    row, method = {**LIKELIHOODS, **SINGLE_LATENT}[likelihood], INFERENCES[inference]
    if row.classes == "two" and num_classes != 2:
        return f"likelihood '{likelihood}' tells two classes apart, the labels have {num_classes}"
    if method.rule is not None and method.rule not in row.rules:
        served = [name for name, other in LIKELIHOODS.items() if method.rule in other.rules]
        return f"inference '{inference}' has closed-form sites for {', '.join(served)} only"
    if input_noise in GRADIENT_ONLY and not method.path.startswith("svgp"):
        return f"input noise '{input_noise}' draws inputs at every step, which only svgp follows"
    if method.one_node and input_noise == "integrated":
        return f"inference '{inference}' has one local parameter per source, not per node"
    if method.exact_inputs and input_noise == "first_order":
        return f"inference '{inference}' takes inputs as exact"
    averaged = input_noise == "integrated" and row.coupled
    if method.log_concave and (averaged or not row.log_concave):
        how = " averaged over an uncertain input" if row.log_concave else ""
        return (
            f"likelihood '{likelihood}'{how} is not log-concave: a natural-gradient step of"
            f" '{inference}' can leave the positive-definite matrices"
        )
    return ""


def check(
    likelihood: str,
    input_noise: str,
    inference: str,
    num_classes: int,
    learn_errors: str = "none",
    likelihoods: dict[str, LikelihoodRow] = LIKELIHOODS,
) -> None:
    """Raise InputError, naming reason and alternatives, for what is not supported."""
    for argument, value, table in (
        ("likelihood", likelihood, likelihoods),
        ("input_noise", input_noise, INPUT_NOISES),
        ("inference", inference, INFERENCES),
    ):
        if value not in table:
            raise InputError(f"no {argument} '{value}'; there are: {', '.join(table)}")
    if learn_errors != "none" and input_noise == "none":
        raise InputError(
            "learn_errors needs a treatment that uses errors; choose input_noise='integrated'"
        )
    reason = why_not(likelihood, input_noise, inference, num_classes)
    if reason:
        works = [
            name for name in INFERENCES if not why_not(likelihood, input_noise, name, num_classes)
        ]
        remedy = f"inferences that work here: {', '.join(works)}" if works else "choose softmax"
        raise InputError(f"{reason}; {remedy}")


def markdown() -> str:
    """docs/capabilities.md: the tables, and the reason for every gap in them."""
    lines = [
        "# What works with what",
        "",
        "Generated by `python -m gpal.inference.capabilities`.",
        "",
        "| likelihood | classes | expectation | prediction | inference | source |",
        "|---|---|---|---|---|---|",
    ]
    for name, row in LIKELIHOODS.items():
        num_classes = 2 if row.classes == "two" else 3
        works = [i for i in INFERENCES if not why_not(name, "none", i, num_classes)]
        lines.append(
            f"| `{name}` | {row.classes} | {row.expectation} | {row.prediction} |"
            f" {', '.join(f'`{i}`' for i in works)} | {row.source} |"
        )
    lines += [
        "",
        "With `NoisyInputGP`, GPflow's likelihoods of one latent function:",
        "",
        "| likelihood | response | expectation | prediction | inference |",
        "|---|---|---|---|---|",
    ]
    for name, row in SINGLE_LATENT.items():
        works = [i for i in INFERENCES if not why_not(name, "none", i)]
        lines.append(
            f"| `{name}` | {row.classes} | {row.expectation} | {row.prediction} |"
            f" {', '.join(f'`{i}`' for i in works)} |"
        )
    lines += ["", "| input noise | what it does |", "|---|---|"]
    lines += [f"| `{name}` | {summary} |" for name, summary in INPUT_NOISES.items()]
    lines += ["", "| inference | what it is | source |", "|---|---|---|"]
    for name, method in INFERENCES.items():
        lines.append(f"| `{name}` | {method.summary} | {method.source} |")
    lines += ["", "## Gaps, and why", ""]
    reasons: dict[str, None] = {}
    for likelihood, row in {**LIKELIHOODS, **SINGLE_LATENT}.items():
        for inference in INFERENCES:
            for noise in INPUT_NOISES:
                reason = why_not(likelihood, noise, inference, 2 if row.classes == "two" else 3)
                reasons.setdefault(reason)
    reasons.update(dict.fromkeys(KERNEL_GAPS.values()))
    lines += [f"- {reason}." for reason in reasons if reason]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(markdown(), end="")
