"""Active learning on waveform: entropy against random at four levels of input noise.

    python workflows/active_learning/waveform.py [--repeats 20] [--noise 0 0.25] [--jobs 1]

The setting of Villacampa-Calvo et al. (2021, section 5.5): 100 initial labels, a pool of 400, 500
for testing, 100 queries, 50 inducing points; waveform sources from our own generator, noise added
to the standardised features. Here the noise is told to the model as error bars; the paper infers
it. Results go to results/active_learning/waveform-NOISE; a run that was stopped goes on.
"""

from __future__ import annotations

import argparse
from functools import partial

from gpal import GPClassifier
from gpal.active.simulate import simulate, waveform_problem

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--repeats", type=int, default=20)
parser.add_argument("--noise", type=float, nargs="+", default=[0.0, 0.25, 0.1, 0.5])
parser.add_argument("--strategies", nargs="+", default=["entropy", "random"])
parser.add_argument("--input-noise", default="first_order")
parser.add_argument("--jobs", type=int, default=1)
parser.add_argument("--out", default="results/active_learning/waveform")
arguments = parser.parse_args()

for noise in arguments.noise:
    study = simulate(
        partial(waveform_problem, noise=noise),
        GPClassifier(n_inducing=50, input_noise=arguments.input_noise, population="flat"),
        f"{arguments.out}-{noise:g}",
        strategies=arguments.strategies,
        repeats=arguments.repeats,
        queries=100,
        test_every=5,
        relearn_every=50,
        jobs=arguments.jobs,
        settings={"problem": "waveform", "noise": noise, "initial": 100, "pool": 400, "test": 500},
    )
    for strategy, result in study.summary().items():
        print(f"noise {noise:g} {strategy}: error {result['error']} area {result['error_area']}")
        if "against_random" in result:
            for key, value in result["against_random"].items():
                print(f"    {key}: {value}")
