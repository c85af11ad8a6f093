"""Villacampa-Calvo et al. (2021), all studies together: claims, and numbers that are off.

    python workflows/paper_001/off_paper.py      # from what was measured, into docs/papers/001.md

A number is off where z = (ours − the paper's) / √(s.e.² + the paper's s.e.²) is beyond ±2. Each has
a reason here, or is "unexplained". With fewer than three splits, or where all are alike, their
spread is taken from the paper, ten times its standard error, which is that of a hundred splits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import fermi454
import injected
import numpy as np
import pandas as pd
import synthetic
import toy
from fermi_tables import CONFUSED, confusions, corrected_error, paper_share, share
from measured import difference, paper_model, shown
from measured import scores as of_model
from models import KEY
from paper_numbers import (
    FERMI,
    FERMI_CLASSES,
    FERMI_CONFUSION,
    FERMI_FOUR,
    FERMI_FOUR_CONFUSION,
    GIVEN,
    GIVEN_ERROR,
    TOY,
    VARIED,
    Number,
)
from problems import EQUAL_NOISE, Setting
from studies import GAP, grid, largest, load, made, mean_error, put_tables, verdict

__all__ = ["REASONS", "claims", "of_confusion", "of_injected", "off"]

REASONS = {
    "toy": "unexplained: the paper does not give its kernel, and this is another draw of functions,"
    " but MGP is where the paper has it",
    "synthetic": "unexplained",
    "dimensions": "another problem: with no reading of its lengthscale are ours as easy as the"
    " paper's in 5 and 10 dimensions; and in 10 step with δ = .001 learns of one data set that f"
    " says nothing, from whichever start",
    "D10-N100": "in one of the data sets a class is missing among the training sources",
    "classes": "three draws of functions that are easier: the oracle's own errors are .02 to .06"
    " below those of the paper's best",
    "454": "other splits, and the s.e. take splits for independent: with the corrected ones, twice"
    " as large, it is within two",
    "454 count": "the paper's test sets hold another number of this class; the share of it is"
    " within two standard errors of ours",
    "454 share": "unexplained: as a share of its class, too, it is more than two of our standard"
    " errors off; the paper tells no error of a share",
    "injected": "unexplained: another size than the paper's, 300 sources at most, 20 inducing"
    " points and 500 steps; what each of them does was not measured",
    "in full": "unexplained: all sources, 100 inducing points and 1,500 steps",
    "wine": "unexplained: all sources, ten splits; up to V = .1 the methods have one NLL within"
    " .002 of each other here, below the paper's",
    "from 1": "unexplained: the paper does not say where its variance starts",
    "NIMGP": "unexplained: the paper's NIMGP is not below its MGP by two standard errors on this"
    " set with noise; here its mean is below MGP's, at V = .5 whether its variance starts at .01 or"
    " at 1",
    "NIMGP on satimage": "unexplained: the paper's NIMGP is below its MGP on this set, too, by"
    " .09, .07 and .04 at V = .1, .25 and .5; here by .14, .19 to .24 and .21 to .26, from either"
    " start",
    "NIMGP on synthetic": "unexplained: the paper's NIMGP learns a variance near zero (figure 4),"
    " ours one of .06 to .64; whether that is why was not measured",
    "NIMGP_FO": "the variance learned here goes to zero, and NIMGP_FO is MGP then, as in the"
    " paper's table 2 and figure 4; why not in its table 5: unexplained",
    "NIMGP_FO from 1": "the variance learned here falls to .005 or less, and NIMGP_FO is nearly MGP"
    " then, as in the paper's table 2 and figure 4; why not in its table 5: unexplained",
}
# The data sets of "injected" that were measured in full size.
IN_FULL = ("synthetic", "waveform", "vehicle", "glass", "satimage")
GIVEN_AT = {(score, Setting(v).name) for score in ("nll", "error") for v in EQUAL_NOISE}


def z(values: np.ndarray, error: float, paper: Number) -> float:
    away = float(np.mean(values) - paper[0])
    return away / float(np.hypot(error, paper[1])) if away else 0.0


def naive(values: pd.Series, paper: Number) -> float:
    """Standard error of the mean, of independent splits."""
    spread = values.std(ddof=1) if len(values) > 2 and np.ptp(values) > 0 else 10.0 * paper[1]
    return float(spread / np.sqrt(len(values)))


def reason_of_injected(data_set: str, method: str, off: float) -> str:
    """A key of REASONS."""
    own = method.removesuffix(injected.FROM_1)
    if data_set == "wine":
        return data_set
    # That reason is for a loss below the paper's.
    if own == "NIMGP" and off < 0.0:
        own_reason = f"{own} on {data_set}"
        return own_reason if own_reason in REASONS else own
    if own == "NIMGP_FO":
        return method
    if own != method:
        return "from 1"
    return "in full" if data_set in IN_FULL else "injected"


def row(
    study: str, what: str, score: str, ours: str, paper: Number, off: float, reason: str = ""
) -> list[str]:
    """`reason`: a key of REASONS, if it is not that of the study."""
    said = f"{paper[0]:.3f} ± {paper[1]:.3f}"
    if what.startswith("D10-N100-"):
        reason = "D10-N100"
    return [study, what, score, ours, said, f"{off:+.1f}", REASONS[reason or study]]


def of_toy(results: dict) -> Iterator[list[str]]:
    for model, found in results.items():
        for score in ("nll", "error"):
            paper = TOY.get((paper_model(model), score))
            if paper is None:
                continue
            mean, error = found[score], found[f"{score}_se"]
            if abs(z(mean, error, paper)) > 2.0:
                ours = f"{mean:.3f} ± {error:.3f}"
                yield row("toy", model, score.upper(), ours, paper, z(mean, error, paper))


def of_models(table: pd.DataFrame, study: str, columns: list) -> Iterator[list[str]]:
    """`columns`: (problem, what it is, score, the paper's numbers by its name of a model)."""
    for problem, what, score, numbers in columns:
        for model in sorted(set(table.index.get_level_values("model"))):
            values, paper = of_model(table, problem, model, score), numbers.get(paper_model(model))
            if paper is None or not len(values):
                continue
            away = z(values, naive(values, paper), paper)
            if abs(away) > 2.0:
                name = f"{what}, {model}" if what else model
                yield row(study, name, score.upper(), mean_error(values), paper, away)


def of_injected(table: pd.DataFrame) -> Iterator[list[str]]:
    for noise in injected.levels(table):
        cells = injected.at(table, noise)
        for data_set in injected.DATA_SETS:
            for method in injected.ALL_METHODS:
                said_of = method.removesuffix(injected.FROM_1)
                for score in ("nll", "error"):
                    values = injected.of(cells, data_set, method, score)
                    paper = injected.paper(data_set, noise, said_of, score)
                    if paper is None or not len(values):
                        continue
                    away = z(values, naive(values, paper), paper)
                    if abs(away) > 2.0:
                        what = f"{data_set}, V = {noise}, {method}"
                        ours, why = mean_error(values), reason_of_injected(data_set, method, away)
                        yield row("injected", what, score.upper(), ours, paper, away, why)


def of_confusion(table: pd.DataFrame, problem: str, what: str, numbers: Mapping) -> Iterator:
    """Of tables 10 and 18: mean numbers of test sources of a class that are given a class."""
    for model in (m for m in CONFUSED if len(of_model(table, problem, m, "confusion"))):
        counts, name = confusions(table, problem, model), paper_model(model)
        for k, predicted in enumerate(FERMI_CLASSES):
            for c, true in enumerate(FERMI_CLASSES):
                paper = numbers[predicted].get((name, true))
                if paper is None:
                    continue
                values = pd.Series(counts[:, c, k])
                away = z(values, naive(values, paper), paper)
                if abs(away) <= 2.0:
                    continue
                found, error = share(counts, c, k)
                apart = abs(found - paper_share(numbers, name, true, predicted)) > 2.0 * error
                cell = f"{what}{model}, {true} as {predicted}"
                why = "454 share" if apart else "454 count"
                yield row("454", cell, "number", mean_error(values), paper, away, why)


def by_name(numbers: dict, column: object) -> dict[str, Number]:
    return {name: number for (name, at), number in numbers.items() if at == column}


def of_varied(study: str, dimensions: tuple[int, ...]) -> list:
    """The columns of tables 13 to 16 of a study that have these dimensions."""
    return [
        (s.name, s.name, score, {m: n for (of, at, m), n in VARIED.items() if (of, at) == key})
        for s in synthetic.SETTINGS[study]
        for score in ("nll", "error")
        if s.dimension in dimensions and (key := (score, s.name)) not in GIVEN_AT
    ]


def off() -> Iterator[str]:
    """Every number more than two standard errors off the paper's, with its reason."""
    given = [
        (Setting(v).name, f"V = {v}", score, by_name(numbers, v))
        for v in EQUAL_NOISE
        for score, numbers in (("nll", GIVEN), ("error", GIVEN_ERROR))
    ]
    fermi = [
        (problem, what, score, by_name(numbers, score))
        for problem, what, numbers in (
            (fermi454.ALL, "", FERMI),
            (fermi454.FOUR, "four features", FERMI_FOUR),
        )
        for score in ("nll", "error")
    ]
    problems, splits = load(synthetic.RESULTS, KEY), load(fermi454.RESULTS, KEY)
    rows = [
        *of_toy(toy.measured()),
        *of_models(problems, "synthetic", [*given, *of_varied("dimensions", (2,))]),
        *of_models(problems, "dimensions", of_varied("dimensions", (5, 10))),
        *of_models(problems, "classes", of_varied("classes", (2,))),
        *of_models(splits, "454", fermi),
        *of_confusion(splits, fermi454.ALL, "", FERMI_CONFUSION),
        *of_confusion(splits, fermi454.FOUR, "four features, ", FERMI_FOUR_CONFUSION),
    ]
    of_paper = [model for model in synthetic.STUDIES["given"][1] if paper_model(model)]
    names = {
        s.name for study in ("given", "dimensions", "classes") for s in synthetic.SETTINGS[study]
    }
    compared = {
        "the toy": pd.DataFrame(toy.measured().values()),
        "the synthetic problems": shown(problems, names, of_paper),
        "the 454 sources": shown(splits, (fermi454.ALL, fermi454.FOUR), of_paper),
    }
    if injected.RESULTS.exists():
        learned = largest(injected.RESULTS, injected.KEY, injected.SIZES)[1]
        rows += of_injected(learned)
        compared["injected noise"] = learned
    header = ["study", "what", "score", "here", "the paper", "z", "reason"]
    yield from grid(header, rows)
    yield from measured(compared)


def measured(compared: Mapping[str, pd.DataFrame]) -> Iterator[str]:
    """Of each study, after an empty line, when and with what its cells were measured."""
    for study, cells in compared.items():
        yield ""
        yield f"Of {study}: {made(cells)}"


def claims() -> Iterator[str]:
    """Paired differences of NLL and error: over data sets of the synthetic problems with their
    noise given, over splits of the 454 sources with the corrected standard error."""
    said = [
        ("nll", "none", "latent", "NIMGP is better than MGP", "above"),
        ("nll", "none", "first_order", "NIMGP_FO is better than MGP", "above"),
        ("nll", "first_order", "latent", "NIMGP is better than NIMGP_FO", "above"),
        ("nll", "amortized", "latent", "NIMGP is best, closely before NIMGP_NN", "above"),
        ("error", "latent", "none", "errors are similar", "same"),
    ]
    problems = {f"synthetic, V = {v}": Setting(v).name for v in EQUAL_NOISE}
    tables = [(load(synthetic.RESULTS, KEY), problems)]
    of_fermi = {"454 sources": fermi454.ALL, "454, four features": fermi454.FOUR}
    tables.append((load(fermi454.RESULTS, KEY), of_fermi))

    def rows() -> Iterator[list[str]]:
        for table, names in tables:
            for problem, name in names.items():
                for score, model, minus, words, kind in said:
                    found = (
                        of_model(table, name, f"step {model}", score)
                        - of_model(table, name, f"step {minus}", score)
                    ).dropna()
                    what = f"{score}, {model} − {minus}"
                    if name in of_fermi.values():
                        mean, error = found.mean(), corrected_error(found.to_numpy())
                        apart = abs(mean) > 2.0 * error
                        judged = "reproduced" if apart == (kind == "above") else "not told apart"
                        if apart and (kind == "same" or mean < 0.0):
                            judged = "contradicted"
                        number = f"{mean:+.3f} ± {error:.3f}"
                    else:
                        judged, number = verdict(found, kind), mean_error(found, 3, "+")
                    yield [problem, what, words, number, str(len(found)), judged]
                found = difference(table, name, "step latent", "softmax none")
                number = mean_error(found, 3, "+")
                if name in of_fermi.values():
                    number = f"{found.mean():+.3f} ± {corrected_error(found.to_numpy()):.3f}"
                what = "nll, NIMGP − gpal's default without noise model"
                yield [problem, what, GAP, number, str(len(found)), GAP]

    yield from grid(["problem", "what", "the paper", "here", "number", "verdict"], rows())
    models = ["step none", "step latent", "step amortized", "step first_order", "softmax none"]
    yield from measured(
        {
            study: shown(table, names.values(), models)
            for study, (table, names) in zip(
                ("the synthetic problems", "the 454 sources"), tables, strict=True
            )
        }
    )


if __name__ == "__main__":
    put_tables(injected.PAGE, [("given", claims()), ("off", off())])
