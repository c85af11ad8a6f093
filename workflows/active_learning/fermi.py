"""Active learning on 4FGL-DR4: how many labels reach the error of 600 random ones?

    python workflows/active_learning/fermi.py [--agn] [--repeats 10] [--jobs 1]

Classes are bll, fsrq and psr or, with --agn, active galactic nuclei (bll and fsrq) and pulsars.
Every labelled source's class is known; 30 % of each class are for testing. From 60 random labels,
a strategy asks for 200 more, random for 540 more. Results go to results/active_learning/fermi or
fermi-agn; a run that was stopped goes on.
"""

from __future__ import annotations

import argparse
from functools import partial

from gpal import GPClassifier, load_catalog
from gpal.active.simulate import catalog_problem, simulate

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--repeats", type=int, default=10)
parser.add_argument("--strategies", nargs="+", default=["entropy", "margin", "random"])
parser.add_argument("--jobs", type=int, default=1)
parser.add_argument("--agn", action="store_true", help="bll and fsrq as one class")
parser.add_argument("--out", help="default: results/active_learning/fermi, or fermi-agn")
arguments = parser.parse_args()

catalog = load_catalog("4fgl-dr4")
name = "fermi"
if arguments.agn:
    catalog = catalog.with_classes({"agn": ["bll", "fsrq"], "psr": ["psr", "msp"]})
    name = "fermi-agn"
study = simulate(
    partial(catalog_problem, catalog, initial=60),
    GPClassifier(n_inducing=50, input_noise="first_order", population="flat"),
    arguments.out or f"results/active_learning/{name}",
    strategies=arguments.strategies,
    repeats=arguments.repeats,
    queries={s: 540 if s == "random" else 200 for s in arguments.strategies},
    test_every=10,
    relearn_every=50,
    jobs=arguments.jobs,
    settings={"initial": 60, "test": 0.3, "catalog_provenance": catalog.provenance},
)
for strategy, result in study.summary().items():
    print(f"{strategy}: {result['n_labels']} labels, error {result['error']}")
    if "against_random" in result:
        for key, value in result["against_random"].items():
            print(f"    {key}: {value}")
