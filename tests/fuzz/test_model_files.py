"""Model files that are damaged, and whole archives that someone has rewritten."""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np
import pytest
from harness import Subject
from mutations import damage_bytes

from gpal import GPClassifier, NoisyInputGP

SOURCES = np.random.default_rng(1).normal(size=(4, 2))
OTHER = (
    None,
    True,
    0,
    -1,
    3,
    10**30,
    0.5,
    float("nan"),
    float("inf"),
    "",
    "x",
    [],
    [1.0],
    {},
    ["x"],
)


@pytest.fixture(scope="module")
def models(tmp_path_factory) -> dict[str, bytes]:
    """Of each kind a small one, fitted to inputs with errors."""
    rng = np.random.default_rng(0)
    X, classes = rng.normal(size=(30, 2)), np.repeat(["bll", "fsrq", "psr"], 10)
    folder, options = tmp_path_factory.mktemp("models"), {"n_inducing": 5, "max_rounds": 1}
    fitted = {
        "softmax": GPClassifier(**options).fit(X, classes, X_err=0.1),
        "step": GPClassifier(
            "step", **options, input_noise="first_order", prior={"bll": 0.5, "psr": 0.5}
        ).fit(X[:20], np.where(classes == "fsrq", "psr", classes)[:20], X_err=0.1),
        "poisson": NoisyInputGP("poisson", **options).fit(X, rng.poisson(2.0, 30), X_err=0.1),
    }
    for name, model in fitted.items():
        model.save(folder / name, {"seed": 0})
    return {name: (folder / name).read_bytes() for name in fitted}


def read_classifier(path) -> np.ndarray:
    """Probabilities of measured sources, and of one that was not measured."""
    model = GPClassifier.load(path)
    error = np.full(SOURCES.shape, 0.1)
    error[0] = np.inf
    return model.predict_proba(SOURCES, None if model.packed else error)


def read_response(path) -> np.ndarray:
    return np.array(NoisyInputGP.load(path).predict_y(SOURCES, 0.1))


def test_model(models, withstands):
    withstands(Subject("model.npz", models["softmax"], read_classifier, damage_bytes))


@pytest.mark.parametrize("name", ["softmax", "step", "poisson"])
def test_a_model_that_was_rewritten(models, withstands, name):
    """What is opened predicts: finite, and probabilities sum to one."""

    def read(path) -> bool:
        if name == "poisson":
            return bool(np.isfinite(read_response(path)).all())
        p = read_classifier(path)
        return bool(np.isfinite(p).all() and np.allclose(p.sum(axis=1), 1.0))

    withstands(Subject(f"{name}.npz", models[name], read, rewritten, truth=lambda _: True))


def rewritten(content: bytes, rng: np.random.Generator) -> bytes:
    """A whole archive with one array or one value of the JSON changed, dropped or added."""
    with np.load(io.BytesIO(content)) as archive:
        arrays = {name: archive[name] for name in archive.files if name.endswith("json") is False}
    description = json.loads(str(arrays.pop("description")))
    if rng.random() < 0.5:
        arrays = _other_arrays(arrays, rng)
    else:
        description = _other_value(description, rng)
    stream = io.BytesIO()
    np.savez(stream, description=np.array(json.dumps(description)), **arrays)
    return stream.getvalue()


def _other_arrays(arrays: dict[str, np.ndarray], rng: np.random.Generator) -> dict[str, np.ndarray]:
    name = sorted(arrays)[rng.integers(len(arrays))]
    array = arrays[name]
    spoiled = np.array(array, dtype=float)
    spoiled[tuple(rng.integers(length) for length in array.shape)] = rng.choice(
        [np.nan, np.inf, -np.inf, 1e300, -1.0, 0.0]
    )
    changes: list[dict[str, np.ndarray]] = [
        {},
        {name: array, "more": array},
        {name: array.T},
        {name: array.ravel()},
        {name: array[None]},
        {name: np.concatenate([np.atleast_1d(array)] * 2)},
        {name: np.atleast_1d(array)[:-1]},
        {name: array.astype(np.float32)},
        {name: array.astype(">f8")},
        {name: array.astype(str)},
        {name: array > 0},
        {name: np.full_like(array, 1e200)},
        {name: spoiled},
        {name: spoiled},
    ]
    rest = {key: value for key, value in arrays.items() if key != name}
    return {**rest, **changes[rng.integers(len(changes))]}


def _other_value(value: Any, rng: np.random.Generator) -> Any:
    """JSON with one of its values, at any depth, of another kind; or one field more or less."""
    inside = value if isinstance(value, dict) else dict(enumerate(value)) if value else {}
    if isinstance(value, dict | list) and inside and rng.random() < 0.9:
        keys = list(inside)
        key = keys[rng.integers(len(keys))]
        if isinstance(value, dict) and rng.random() < 0.1:
            return {k: v for k, v in value.items() if k != key}
        if isinstance(value, dict) and rng.random() < 0.1:
            return {**value, "more": 1}
        if isinstance(inside[key], dict | list) and inside[key]:
            inside[key] = _other_value(inside[key], rng)
        else:
            inside[key] = OTHER[rng.integers(len(OTHER))]
        return inside if isinstance(value, dict) else list(inside.values())
    return OTHER[rng.integers(len(OTHER))]
