"""What a treatment of input noise costs, relative to none: a training step, an engine sweep and an
evaluation of the collapsed bound with its gradient.

    python workflows/benchmarks/treatment_cost.py [--quick]

The problem is that of Villacampa-Calvo et al. 2021, section 5.2: n = 1000 sources, D = 2 features,
C = 3 classes, m = 100 inducing points, batches of 200, one error bar for all. A step is one of
`inference="svgp"` with Adam; a sweep is one of `inference="sites"` over all sources, a gradient is
that in its hyper-parameters. All once with gpal's default, one kernel for all classes and softmax,
and once with the paper's, a kernel per class and the step likelihood. CPU seconds of the process
with one thread, which other load disturbs least; treatments take turns, and a ratio is the median
over the rounds of ratios within a round.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from sweep_rate import limit_threads

RESULTS = Path(__file__).parent / "results" / "treatment_cost.json"
N, D, C, M, BATCH = 1000, 2, 3, 100, 200
MODELS = {"one kernel, softmax": ("softmax", True), "kernel per class, step": ("step", False)}
TARGETS = {"first_order": 1.3, "latent": 1.3, "amortized": 1.1}


def prepared(name: str, likelihood: str, shared_kernel: bool, inference: str):
    """(gp, likelihood, rule, data, treatment) as a fit would set them up."""
    from gpal import GPClassifier
    from gpal.arrays import as_measurements
    from gpal.inference.input_rows import InputRows
    from gpal.inference.kernels import make_kernels
    from gpal.input_noise import make_input_noise
    from gpal.likelihoods import make_likelihood
    from gpal.likelihoods.site_rules import NaturalGradient
    from gpal.model.fit import make_true_input
    from gpal.model.gaussian_process import make_gp, noisy_features

    rng = np.random.default_rng(0)
    X_err = np.full((N, D), 0.35)
    X = rng.uniform(-1.7, 1.7, size=(N, D)) + X_err * rng.normal(size=(N, D))
    labels = rng.integers(C, size=N)
    options = GPClassifier(
        likelihood, input_noise=name, shared_kernel=shared_kernel, inference=inference, n_inducing=M
    )
    sources, treatment = as_measurements(X, X_err), make_input_noise(name)
    inputs = InputRows(make_true_input(options, sources, 0.0, 0), treatment)
    data = inputs.data(sources, labels)
    kernels = make_kernels("rbf", D, C, shared_kernel)
    noisy = noisy_features(inputs, sources, data)
    gp = make_gp(options, kernels, inputs, data, C, M, 0, noisy=noisy)
    return gp, make_likelihood(likelihood, C), NaturalGradient(), data, treatment


def training_step(name: str, likelihood: str, shared_kernel: bool):
    """A function that takes one step of Adam."""
    import tensorflow as tf

    from gpal.inference.svgp import SVGP

    gp, p, rule, data, treatment = prepared(name, likelihood, shared_kernel, "svgp")
    q = treatment.posterior(N, D, C, 0) if treatment.gradient_only else None
    model = SVGP(gp, p, rule, N, input_posterior=q)
    rng = np.random.default_rng(0)

    def step():
        sources = rng.choice(N, BATCH, replace=False)
        model.step(data, tf.constant(sources), tf.constant(0))

    return step


def started(name: str, likelihood: str, shared_kernel: bool):
    """(gp, likelihood, rule, data, q(f) for the rule's first sites) of the engine."""
    from gpal.inference.rows import first_sites

    gp, p, rule, data, _ = prepared(name, likelihood, shared_kernel, "sites")
    sites = first_sites(rule, p, data.Y, gp.nodes)
    gp.refresh(data)
    return gp, p, rule, data, gp.posterior(data, sites)


def gradient(name: str, likelihood: str, shared_kernel: bool):
    """A function that evaluates the collapsed bound and its gradient."""
    gp, p, rule, data, posterior = started(name, likelihood, shared_kernel)
    sites, _ = gp.met(rule, p, data, posterior)
    return lambda: gp.bound_and_gradient(data, sites)


def sweep(name: str, likelihood: str, shared_kernel: bool):
    """A function that runs one sweep of the engine over all sources."""
    gp, p, rule, data, posterior = started(name, likelihood, shared_kernel)

    def once() -> float:
        new, terms = gp.met(rule, p, data, posterior)
        return float(terms - gp.posterior(data, new).kl)

    return once


def measure(functions: dict, rounds: int, calls: int) -> dict[str, dict[str, float]]:
    """CPU seconds of a call, and its ratio to that of "none", medians over rounds."""
    for function in functions.values():
        function()
        function()
    seconds = np.empty((rounds, len(functions)))
    for i in range(rounds):
        for j, function in enumerate(functions.values()):
            start = time.process_time()
            for _ in range(calls):
                function()
            seconds[i, j] = (time.process_time() - start) / calls
    ratio = seconds / seconds[:, [list(functions).index("none")]]
    return {
        name: {"seconds": float(np.median(s)), "ratio": float(np.median(r))}
        for name, s, r in zip(functions, seconds.T, ratio.T, strict=True)
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few rounds, to try the script")
    options = parser.parse_args()
    limit_threads(1)
    from gpal.inference.base import INFERENCES
    from gpal.inference.capabilities import why_not
    from gpal.input_noise import INPUT_NOISES
    from gpal.likelihoods import LIKELIHOODS

    rows = []
    print("| what | model | input noise | ms | relative to none | target |")
    print("|---|---|---|---|---|---|")
    for what, make, inference in (
        ("training step", training_step, "svgp"),
        ("engine sweep", sweep, "sites"),
        ("bound and gradient", gradient, "sites"),
    ):
        for model, settings in MODELS.items():
            names = [
                name
                for name, kind in INPUT_NOISES.items()
                if not why_not(LIKELIHOODS[settings[0]], kind(), INFERENCES[inference])
            ]
            functions = {name: make(name, *settings) for name in names}
            for name, row in measure(functions, 5 if options.quick else 100, 3).items():
                target = TARGETS.get(name, "") if what == "training step" else ""
                rows.append({"what": what, "model": model, "input_noise": name, **row})
                print(
                    f"| {what} | {model} | {name} | {1e3 * row['seconds']:.2f} "
                    f"| {row['ratio']:.2f} | {target} |",
                    flush=True,
                )
    if not options.quick:
        save(rows)


def save(rows: list[dict]) -> None:
    from gpal.files.output import atomic_path
    from gpal.provenance import provenance, to_json

    record = {"rows": rows, "threads": 1, "provenance": provenance()}
    with atomic_path(RESULTS) as path:
        path.write_text(to_json(record))


if __name__ == "__main__":
    main()
