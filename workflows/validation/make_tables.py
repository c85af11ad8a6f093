"""The tables of docs/validation.md from the results of measure_pairs.py.

python workflows/validation/make_tables.py [results.json]
"""

import json
import sys
from pathlib import Path

HERE = Path(__file__).parent
results = json.loads(Path(sys.argv[1] if len(sys.argv) > 1 else HERE / "results.json").read_text())
pairs = results["pairs"]
VARIANTS = ("without variability", "with variability")
MIXES = {
    "train": "labelled",
    "all targets": "all targets",
    "by origin": "by origin",
    "examined only": "examined only",
}


def table(header, rows):
    print("| " + " | ".join(header) + " |")
    print("|" + "---|" * len(header))
    for row in rows:
        print("| " + " | ".join(map(str, row)) + " |")
    print()


def number(value):
    return f"{value['mean']:.3f}"


def difference(value):
    sign = f"{value['mean']:+.3f} ({value['lower']:+.3f} to {value['upper']:+.3f})"
    return sign.replace("-", "−")


print("### Test sizes\n")
table(
    ["pair", "labelled", "targets", "examined", "by origin", "by class"],
    [
        [
            name,
            pair["n_labelled"],
            pair["n_targets"],
            pair["n_examined"],
            ", ".join(f"{n} {origin}" for origin, n in pair["n_per_origin"].items()),
            ", ".join(f"{n} {kind}" for kind, n in pair["n_per_class"].items()),
        ]
        for name, pair in pairs.items()
    ],
)
for correction in ("train", "by origin"):
    print(f"### NLL, class fractions: {MIXES[correction]}\n")
    models = list(next(iter(pairs.values()))["with variability"]["scores"][correction])
    table(
        ["model", *(f"{name}, {variant}" for name in pairs for variant in VARIANTS)],
        [
            [
                model,
                *(
                    number(pair[variant]["scores"][correction][model]["nll"])
                    for pair in pairs.values()
                    for variant in VARIANTS
                ),
            ]
            for model in models
        ],
    )
print("### GPClassifier: where the class fractions come from\n")
table(
    ["pair", "variability", *MIXES.values(), "standard error", "seed to seed"],
    [
        [
            name,
            variant.split()[0],
            *(number(pair[variant]["scores"][c]["GPClassifier"]["nll"]) for c in MIXES),
            f"{pair[variant]['scores']['by origin']['GPClassifier']['nll']['se']:.3f}",
            f"{pair[variant]['scores']['by origin']['GPClassifier']['nll']['seed_sd']:.4f}",
        ]
        for name, pair in pairs.items()
        for variant in VARIANTS
    ],
)
print("### Paired differences in NLL, GPClassifier minus\n")
table(
    ["pair", "variability", "fractions", "logistic regression", "quadratic", "random forest"],
    [
        [
            name,
            variant.split()[0],
            MIXES[c],
            *(
                difference(pair[variant]["differences"][c][model]["nll"])
                for model in (
                    "logistic regression",
                    "quadratic logistic regression",
                    "random forest",
                )
            ),
        ]
        for name, pair in pairs.items()
        for variant in VARIANTS
        for c in ("train", "by origin")
    ],
)
print("### By origin, with variability\n")
table(
    ["pair", "origin", "examined", "NLL, labelled", "NLL, by origin", "error, by origin"],
    [
        [
            name,
            origin,
            part["n"],
            *(number(part["scores"][c]["GPClassifier"]["nll"]) for c in ("train", "by origin")),
            number(part["scores"]["by origin"]["GPClassifier"]["error"]),
        ]
        for name, pair in pairs.items()
        for origin, part in pair["with variability"]["by_origin"].items()
    ],
)
print("### Controls on error bars: own errors minus control, NLL\n")
controls = ("zero", "constant", "permuted")
table(
    ["pair", "fractions", *(f"own − {control}" for control in controls)],
    [
        [name, MIXES[c], *(difference(found["own minus"][control]) for control in controls)]
        for name, pair in pairs.items()
        for c, found in pair["errors"].items()
    ],
)
print("### Cross-validation on the old release beside what came out\n")
table(
    ["pair", "plain", "importance-weighted", "effective sources", "examined"],
    [
        [
            name,
            f"{pair['cross-validation']['plain']:.3f}",
            f"{pair['cross-validation']['weighted']:.3f}",
            f"{pair['cross-validation']['effective_sample_size']:.0f}",
            number(pair["with variability"]["scores"]["train"]["GPClassifier"]["nll"]),
        ]
        for name, pair in pairs.items()
    ],
)
for name, pair in pairs.items():
    if "not in 4FGL-DR2" in pair:
        part = pair["not in 4FGL-DR2"]
        print(f"### {name}: the {part['n']} sources that no setting was chosen on\n")
        table(
            ["model", "NLL, labelled", "NLL, by origin"],
            [
                [m, *(number(part["scores"][c][m]["nll"]) for c in ("train", "by origin"))]
                for m in part["scores"]["train"]
            ],
        )
