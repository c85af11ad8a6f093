"""Class probabilities for the sources of a Fermi-LAT release, step by step.

    python workflows/classify_fermi.py

`gpal classify 4fgl-dr4 --class bll,fsrq,psr` does the same; this script is there to be read and
changed.
"""

from __future__ import annotations

from gpal import GPClassifier, load_catalog
from gpal.jobs import classify
from gpal.jobs.probability_catalogue import read_probabilities
from gpal.recommended import RECOMMENDED_MODEL

CLASSES = ("bll", "fsrq", "psr")  # psr takes the millisecond pulsars along

# The sources, each value with its error bar. What was not measured stays, and is counted.
catalog = load_catalog("4fgl-dr4", features="default")
print(f"{len(catalog)} sources, features: {', '.join(catalog.feature_names)}")
for decision in catalog.decisions:
    print(f"  {decision.column}: {decision.rule} ({decision.count} sources)")

# Cross-validation, fit, probabilities, figures and report. The recommended model names likelihood,
# input noise and kernel: change them here.
classifier = GPClassifier(**RECOMMENDED_MODEL, random_state=0)
result = classify(catalog, "results", classifier=classifier, classes=CLASSES)
for model in result.metrics["models"]:
    nll, error = result.metrics[model]["nll"], result.metrics[model]["error"]
    print(f"{model}: NLL {nll['mean']:.3f} ± {nll['se']:.3f}, error {error['mean']:.3f}")

# The table, as its file has it (another program's reader may mask a class that is not there, and
# find none of these): the ten likeliest pulsars among the sources without a class.
table = read_probabilities(result.folder / "probabilities.fits")
unassociated = table[table["catalog_class"] == ""]
unassociated.sort("p_psr", reverse=True)
unassociated["name", "glon", "glat", "p_psr", "p_psr_std", "entropy"][:10].pprint()
