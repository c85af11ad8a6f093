"""Which strategy to recommend for three classes: strategies compared on 3FGL.

    python workflows/active_learning/strategies.py [--catalog 3fgl] [--repeats 40] [--jobs 1]

The setting of `fermi.py` on another release and with another model, a logistic regression that
ignores error bars: what is recommended must not be chosen on the curves that are reported for it.
Results go to results/active_learning/strategies; a run that was stopped goes on.
"""

from __future__ import annotations

import argparse
from functools import partial

from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gpal import load_catalog
from gpal.active.simulate import catalog_problem, simulate

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--catalog", default="3fgl")
parser.add_argument("--repeats", type=int, default=40)
parser.add_argument("--jobs", type=int, default=1)
parser.add_argument("--out", default="results/active_learning/strategies")
arguments = parser.parse_args()

catalog = load_catalog(arguments.catalog)
study = simulate(
    partial(catalog_problem, catalog, initial=60),
    make_pipeline(SimpleImputer(), StandardScaler(), LogisticRegression(max_iter=500)),
    arguments.out,
    strategies=("entropy", "margin", "least_confidence", "random"),
    repeats=arguments.repeats,
    queries=200,
    test_every=10,
    jobs=arguments.jobs,
    settings={"initial": 60, "test": 0.3, "catalog_provenance": catalog.provenance},
)
for strategy, result in study.summary().items():
    print(f"{strategy}: error {result['error']} area {result['error_area']}")
    for key in ("error", "error_area"):
        if "against_random" in result:
            print(f"    {key} against random: {result['against_random'][key]}")
