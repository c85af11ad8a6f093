"""Retrospective studies: how fast would a strategy have learned, against random?

Every source has its label already; a strategy sees it only after asking. Each repeat is a fresh
division into initial labels, pool and test, the same for all strategies; test error and NLL are
taken after every k labels (`study` sums them up). Every run is kept as one file as soon as it is
done; a study that was stopped goes on where it was.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import joblib
import numpy as np
from sklearn.base import clone
from tqdm import tqdm

from gpal.active.loop import LearningLoop
from gpal.active.strategies import Strategy, as_strategy
from gpal.active.study import CONTROL, METRICS, Study, write_study
from gpal.errors import InputError
from gpal.evaluation import any_classifier
from gpal.evaluation.any_classifier import Sources, as_sources
from gpal.files.output import atomic_path
from gpal.files.saved_data import whole_number
from gpal.names import check_classes, check_file_name, check_names, check_seed
from gpal.parallel import in_parallel
from gpal.provenance import provenance, to_json

if TYPE_CHECKING:
    from gpal.catalog import Catalog

__all__ = ["Problem", "catalog_problem", "simulate", "waveform_problem"]

STUDY = "study.json"
DIGEST = "problem_digest"
Task = tuple[Strategy, int, int]  # of one run: strategy, repeat, labels to ask for


@dataclass(frozen=True)
class Problem:
    """One repeat: a table with all labels, and which of its rows are what.

    sources  Measurements, or an array (n, d) of exact values
    y        (n,) labels
    initial, pool, test  row numbers without overlap
    """

    sources: Sources
    y: np.ndarray
    initial: np.ndarray
    pool: np.ndarray
    test: np.ndarray


def waveform_problem(
    repeat: int,
    *,
    noise: float = 0.0,
    initial: int = 100,
    pool: int = 400,
    test: int = 500,
    random_state: int = 0,
) -> Problem:
    """Waveform sources with Gaussian noise of variance `noise` on the standardised features, which
    the error bars tell (Villacampa-Calvo et al. 2021, section 5.5)."""
    from gpal.active.waveform import waveform

    n = initial + pool + test
    seeds = np.random.SeedSequence([random_state, repeat]).generate_state(2)
    X, y = waveform(n, int(seeds[0]))
    rng = np.random.default_rng(int(seeds[1]))
    first = X[: initial + pool]
    X = (X - first.mean(axis=0)) / first.std(axis=0) + np.sqrt(noise) * rng.normal(size=X.shape)
    rows = np.arange(n)
    return Problem(
        as_sources(X, np.sqrt(noise) if noise > 0 else None),
        y,
        rows[:initial],
        rows[initial : initial + pool],
        rows[initial + pool :],
    )


def catalog_problem(
    catalog: Catalog, repeat: int, *, initial: int = 60, test: float = 0.3, random_state: int = 0
) -> Problem:
    """The labelled sources of a catalog: `test` of each class for testing, `initial` at random
    among the rest to start from, at least one of each class."""
    from sklearn.model_selection import train_test_split

    known = catalog.labelled()
    y = known.y
    seeds = np.random.SeedSequence([random_state, repeat]).generate_state(2)
    train, tested = train_test_split(
        np.arange(len(y)), test_size=test, stratify=y, random_state=int(seeds[0])
    )
    if not len(np.unique(y)) <= initial < len(train):
        raise InputError(
            f"{initial} initial labels of {len(train)} sources that are not for testing; give at"
            f" least {len(np.unique(y))} and fewer than {len(train)}"
        )
    order = np.random.default_rng(int(seeds[1])).permutation(train)
    one_each = [order[y[order] == label][0] for label in np.unique(y)]
    order = np.concatenate([one_each, order[~np.isin(order, one_each)]])
    return Problem(known.measurements, y, order[:initial], order[initial:], tested)


def simulate(
    problem: Callable[[int], Problem],
    classifier: Any,
    out: str | os.PathLike,
    *,
    strategies: Sequence[str | Strategy] = ("entropy", "random"),
    repeats: int = 20,
    queries: int | Mapping[str, int] = 100,
    batch: int = 1,
    test_every: int = 5,
    relearn_every: int = 20,
    jobs: int = 1,
    settings: Mapping[str, Any] | None = None,
    random_state: int = 0,
    progress: bool | None = None,
) -> Study:
    """Run `strategies` on `repeats` divisions and write the folder `out`.

    problem     repeat -> Problem; the same repeat gives the same problem
    strategies  by name or themselves; "random" is what the others are compared with
    queries     labels to ask for, one number or strategy -> number
    batch       labels per question
    test_every  labels between two tests
    jobs        processes; repeats run in parallel
    settings    what made the problem, for the record

    Files: runs/STRATEGY-QUERIES-REPEAT.json, study.json, curves.csv, metrics.json,
    learning_curve.png. Runs that are there already with the same settings are kept. Raises
    InputError if they have others, and, before any run, on names that cannot be written (see
    gpal.names), on settings that cannot be fitted, on more queries than the first repeat's pool
    holds, and where a strategy and "random" are never tested at the same number of labels.
    """
    check_file_name(out)
    check_seed(random_state)
    chosen = [as_strategy(strategy) for strategy in strategies]
    for name, value in (("repeats", repeats), ("batch", batch), ("test_every", test_every)):
        if value < 1:
            raise InputError(f"{name} must be 1 or more, got {value}")
    wanted = _queries(chosen, queries)
    _check_tests(wanted, batch, test_every)
    first = problem(0)
    _check_problem(first, classifier)
    _check_pool(max(wanted.values()), first)
    folder = Path(out)
    options: dict[str, Any] = {
        "batch": batch,
        "test_every": test_every,
        "relearn_every": relearn_every,
        "random_state": random_state,
        "classifier": {"class": type(classifier).__name__, **classifier.get_params(deep=False)},
        "problem": dict(settings or {}),
        DIGEST: _digest(first),
    }
    _claim(folder, options)
    _check_runs(folder, chosen)
    tasks = [
        (strategy, repeat, wanted[strategy.name])
        for repeat in range(repeats)
        for strategy in chosen
        if not _run_file(folder, strategy.name, repeat, wanted[strategy.name]).exists()
    ]
    run = partial(_run, problem, classifier, folder, options=options)
    hidden = True if progress is False else None
    with tqdm(total=len(tasks), desc="simulating", unit="run", disable=hidden) as bar:
        for _ in in_parallel(run, tasks, jobs):
            bar.update()
    study = _collect(folder, wanted, repeats)
    origin = provenance(
        options["problem"].get("catalog_provenance"),
        {**options, "repeats": repeats, "queries": wanted},
        random_state,
    )
    write_study(study, folder, origin)
    return study


def _queries(strategies: Sequence[Strategy], queries: int | Mapping[str, int]) -> dict[str, int]:
    """Strategy -> labels to ask for; InputError for two of a name, and for what is no number."""
    names = [strategy.name for strategy in strategies]
    if twice := [name for name in names if names.count(name) > 1]:
        raise InputError(f"two strategies are called '{twice[0]}'; give one another name")
    given = queries if isinstance(queries, Mapping) else dict.fromkeys(names, queries)
    if missing := [name for name in names if name not in given]:
        raise InputError(f"queries has no number for strategy '{missing[0]}'; give one for each")
    return {name: whole_number(given[name], f"queries of '{name}'", 1) for name in names}


def _tests(queries: int, batch: int, test_every: int) -> set[int]:
    """After how many labels the model is tested."""
    asked = {*range(batch, queries, batch), queries}
    return {n for n in asked if n == queries or n // test_every > (n - batch) // test_every}


def _check_tests(wanted: Mapping[str, int], batch: int, test_every: int) -> None:
    """InputError for a strategy that could be compared with the control at the start only."""
    if CONTROL not in wanted:
        return
    of_control = _tests(wanted[CONTROL], batch, test_every)
    for name, queries in wanted.items():
        if not of_control & _tests(queries, batch, test_every):
            raise InputError(
                f"'{name}' with {queries} queries and '{CONTROL}' with {wanted[CONTROL]} are never"
                " tested at the same number of labels; give a smaller batch or test_every, or the"
                " same queries"
            )


def _read(file: Path) -> dict[str, Any]:
    """What a study wrote; InputError where it is damaged."""
    try:
        return json.loads(file.read_text())
    except ValueError:
        raise InputError(f"'{file}' is damaged; delete it, and run the study again") from None


def _digest(problem: Problem) -> str:
    """Of all that the problem is, so that settings that nobody stated count as well."""
    sources = problem.sources
    content = sources if isinstance(sources, np.ndarray) else vars(sources)
    return str(joblib.hash([content, problem.y, problem.initial, problem.pool, problem.test]))


def _check_problem(problem: Problem, classifier: Any) -> None:
    classes = np.unique(problem.y).astype(str).tolist()
    check_classes(classes)
    sources = problem.sources
    if not isinstance(sources, np.ndarray):
        check_names("feature", sources.names)
    num_features = sources.shape[1] if isinstance(sources, np.ndarray) else len(sources.names)
    any_classifier.check_settings(classifier, len(classes), num_features)


def _check_pool(queries: int, problem: Problem) -> None:
    if queries > len(problem.pool):
        raise InputError(f"{queries} queries from a pool of {len(problem.pool)}; ask for fewer")


def _claim(folder: Path, options: Mapping[str, Any]) -> None:
    """The folder is for one study: its settings are the first thing written."""
    try:
        (folder / "runs").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"cannot write '{folder}': {error.strerror or error}; choose another output folder"
        ) from error
    text, file = to_json(options, indent=1), folder / STUDY
    if file.exists():
        # Studies begun before gpal kept the digest have none.
        known = {DIGEST: options[DIGEST], **_read(file)}
        if known != json.loads(text):
            other = [key for key, value in json.loads(text).items() if known.get(key) != value]
            raise InputError(
                f"'{folder}' holds a study with other settings ({', '.join(other) or 'more'}, see"
                f" {STUDY}); choose another folder"
            )
    with atomic_path(file) as temporary:
        temporary.write_text(text)


def _check_runs(folder: Path, strategies: Sequence[Strategy]) -> None:
    """InputError for runs that are there by a strategy of the same name and other parameters."""
    for strategy in strategies:
        for file in sorted((folder / "runs").glob(f"{strategy.name}-*-[0-9][0-9][0-9].json")):
            found = _read(file)
            if found["strategy"] == strategy.name and found.get("parameters", {}) != _own(strategy):
                raise InputError(
                    f"'{folder}' holds runs of a strategy '{strategy.name}' with other parameters;"
                    " give it another name, or choose another folder"
                )


def _own(strategy: Strategy) -> dict[str, Any]:
    """A strategy's parameters, in JSON's types."""
    return json.loads(to_json(vars(strategy)))


def _run_file(folder: Path, strategy: str, repeat: int, queries: int) -> Path:
    return folder / "runs" / f"{strategy}-{queries}-{repeat:03d}.json"


def _run(
    problem: Callable[[int], Problem],
    classifier: Any,
    folder: Path,
    task: Task,
    options: Mapping[str, Any],
) -> None:
    strategy, repeat, queries = task
    data = problem(repeat)
    seed = int.from_bytes(
        hashlib.sha256(f"{options['random_state']} {strategy.name} {repeat}".encode()).digest()[:4],
        "little",
    )
    table = np.concatenate([data.initial, data.pool])
    _check_pool(queries, data)
    y = data.y[table]
    loop = LearningLoop(
        clone(classifier),
        data.sources[table],
        labels={i: y[i] for i in range(len(data.initial))},
        strategy=strategy,
        relearn_every=options["relearn_every"],
        random_state=seed,
    )
    labels, values = [len(loop.labels)], [_tested(loop, data)]
    tests = _tests(queries, options["batch"], options["test_every"])
    asked = 0
    while asked < queries:
        number = min(options["batch"], queries - asked)
        rows = loop.ask(number)
        asked += number
        due = asked in tests
        # A strategy that asks no model needs one for its tests only, learned at the labels at which
        # the others' is.
        learns = len(loop.labels) + number >= loop.learner.next_learning
        loop.tell(rows, y[rows], fit=due or learns or strategy.needs_model)
        if due:
            labels.append(len(loop.labels))
            values.append(_tested(loop, data))
    record = {
        "strategy": strategy.name,
        "parameters": _own(strategy),
        "repeat": repeat,
        "labels": labels,
        "asked": table[loop.labelled[len(data.initial) :]],
        **{name: [value[name] for value in values] for name in METRICS},
    }
    with atomic_path(_run_file(folder, strategy.name, repeat, queries)) as temporary:
        temporary.write_text(to_json(record))


def _tested(loop: LearningLoop, data: Problem) -> dict[str, float]:
    P = any_classifier.predict_proba(loop.classifier, data.sources[data.test])
    classes = np.unique(data.y)
    aligned = np.full((len(P), len(classes)), 1e-12)
    aligned[:, np.searchsorted(classes, loop.classifier.classes_)] = P
    index = np.searchsorted(classes, data.y[data.test])
    return {name: float(metric(index, aligned)) for name, metric in METRICS.items()}


def _collect(folder: Path, wanted: Mapping[str, int], repeats: int) -> Study:
    labels, curves = {}, {}
    for strategy, queries in wanted.items():
        runs = [_read(_run_file(folder, strategy, repeat, queries)) for repeat in range(repeats)]
        labels[strategy] = np.array(runs[0]["labels"])
        curves[strategy] = {name: np.array([run[name] for run in runs]) for name in METRICS}
    return Study(labels, curves)
