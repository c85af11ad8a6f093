"""The engine's two passes over the rows as programs for an accelerator, for machines without
TensorFlow.

    python workflows/benchmarks/accelerator/export.py FOLDER [--quick]

writes, for each number of rows n, of inducing points m and type of the n × m products,

    sweep    one sweep of softmax sites: marginals, sites, their statistics, q(u)
    bound    the collapsed bound, its gradient in hyper-parameters and inducing points

as StableHLO (`*.mlirbc.gz`), what `tf.function(jit_compile=True)` lowers them to, beside a
description of the inputs and float64 results of the engine on this machine's CPU (`*.npz`).
`run.py` runs them by JAX. The programs are the engine's own methods; its loops over chunks, whose
bounds TensorFlow finds while it runs, are written out, since XLA asks for shapes that are known
before. Inputs are drawn by `inputs.py` on both machines alike, so that a million rows need not
travel.

tf32 is float32 with the precision of products that TensorFlow gives a GPU unless told otherwise.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf

from gpal._version import __version__
from gpal.inference import collapsed, sparse, streaming
from gpal.inference.chunks import SparsePosterior
from gpal.inference.kernel_rows import KernelRows
from gpal.inference.kernels import make_kernel
from gpal.inference.rows import Data, Sites
from gpal.inference.sparse import SparseGP
from gpal.inference.streaming import Rows
from gpal.likelihoods import make_likelihood
from gpal.likelihoods.site_rules import NaturalGradient

sys.path += [str(Path(__file__).parent), str(Path(__file__).parents[2])]
from inputs import CLASSES, FEATURES, FULL, JITTER, QUICK, Case, draw
from studies import source_digest

CHUNK_ELEMENTS = 1 << 26  # of kernel rows at a time: half a gigabyte
CHECKED = 1e10  # n m² up to which the CPU's results are written beside the program


@contextmanager
def loops_written_out() -> Iterator[None]:
    """Chunks of sizes that are known, and loops over them without a loop."""

    def number(rows: Rows, data: Data) -> int:
        return -(-data.Y.shape[0] // rows.chunk)

    def bounds(rows: Rows, i: int, data: Data) -> tuple[int, int]:
        n, count = data.Y.shape[0], rows.number(data)
        edges = [n * j // count for j in (i, i + 1)]
        return edges[0], edges[1]

    def fold(body: Callable[[int, Any], Any], state: Any, count: int) -> Any:
        for i in range(count):
            state = body(i, state)
        return state

    patches = [mock.patch.object(Rows, "number", number), mock.patch.object(Rows, "bounds", bounds)]
    patches += [
        mock.patch.object(module, "fold", fold) for module in (collapsed, sparse, streaming)
    ]
    patches.append(mock.patch.object(tf, "TensorArray", _Parts))
    for patch in patches:
        patch.start()
    try:
        yield
    finally:
        for patch in patches:
            patch.stop()


class _Parts:
    """A TensorArray that is written in order, of parts whose shapes are known."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self.parts: list[tf.Tensor] = []

    def write(self, i: int, part: tf.Tensor) -> _Parts:
        assert i == len(self.parts)
        self.parts.append(part)
        return self

    def concat(self) -> tf.Tensor:
        return tf.concat(self.parts, axis=0)


class Engine:
    """gpal's engine of a case; `sweep` and `bound` take the tensors of `inputs.draw`."""

    def __init__(self, case: Case) -> None:
        single = case.dtype != "float64"
        self.rows = KernelRows(
            [make_kernel("rbf", FEATURES)],
            np.zeros((case.m, FEATURES)),
            CLASSES,
            learn_Z=True,
            dtype=tf.float32 if single else tf.float64,
        )
        self.gp = SparseGP(self.rows, JITTER)
        self.likelihood, self.rule = make_likelihood("softmax", CLASSES), NaturalGradient()

    def sweep(self, X: tf.Tensor, Y: tf.Tensor, theta: tf.Tensor, r: tf.Tensor, *q: tf.Tensor):
        """α of the new q(u), its M summed along rows, the bound's data term, sums of the sites."""
        start = SparsePosterior(*q, tf.zeros([], tf.float64))
        sites, statistics, terms = self.gp.met_statistics(
            self.rule, self.likelihood, self.data(X, Y), start
        )
        posterior = self.gp._solve(statistics, self.gp.jitter.value)
        sums = [tf.reduce_sum(part, axis=0) for part in sites]
        return posterior.alpha, tf.reduce_sum(posterior.M, axis=2), terms, *sums

    def bound(self, X: tf.Tensor, Y: tf.Tensor, theta: tf.Tensor, r: tf.Tensor, *_: tf.Tensor):
        """J and its derivatives."""
        J, gradients, _ = collapsed.bound_and_gradient(
            self.rows, self.data(X, Y), Sites(theta, r), self.gp.jitter.value
        )
        return J, *gradients

    def data(self, X: tf.Tensor, Y: tf.Tensor) -> Data:
        return Data(X, Y, tf.zeros([X.shape[0], 0, 0], tf.float64))


def made(case: Case) -> dict:
    """What a row says of where it is from, beside the device and the date of the run."""
    return {"gpal": source_digest(), "version": __version__, "seed": case.seed}


def export(case: Case, folder: Path) -> None:
    """Write NAME.mlirbc.gz and NAME.npz: values that the program reads besides, results, and what
    they were made by."""
    engine, (Z, *inputs) = Engine(case), draw(case)
    engine.rows.Z.assign(Z)
    tensors = [tf.constant(part) for part in inputs]
    call = getattr(engine, case.program)
    results = {}
    if case.n * case.m**2 <= CHECKED:
        exact = Engine(replace(case, dtype="float64"))
        exact.rows.Z.assign(Z)
        found = getattr(exact, case.program)(*tensors)
        results = {f"out_{i:02d}": part.numpy() for i, part in enumerate(found)}

    engine.rows.chunk = max(1, CHUNK_ELEMENTS // case.m)
    tf.config.experimental.enable_tensor_float_32_execution(case.dtype == "tf32")
    with loops_written_out():
        program = tf.function(call, jit_compile=True, autograph=False)
        concrete = program.get_concrete_function(*tensors)
        blob = program.experimental_get_compiler_ir(*tensors)(stage="stablehlo_serialized")
    variables = {id(variable.handle): variable for variable in concrete.variables}
    read = [variables.get(id(captured), captured).numpy() for captured in concrete.captured_inputs]
    (folder / f"{case.name}.mlirbc.gz").write_bytes(gzip.compress(blob))
    values = {f"read_{i:02d}": value for i, value in enumerate(read)}
    values["made"] = np.array(json.dumps(made(case)))
    np.savez_compressed(folder / f"{case.name}.npz", **values, **results)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--quick", action="store_true", help="one small case, to try the script")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    for case in QUICK if options.quick else FULL:
        if not (options.folder / f"{case.name}.npz").exists():
            export(case, options.folder)
        print(case.name, flush=True)


if __name__ == "__main__":
    main()
