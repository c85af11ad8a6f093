"""Run the programs of export.py by JAX, without TensorFlow: check, time, print a row for each.

    python run.py FOLDER [--repeats 10] [--raw-cholesky] [--out rows.jsonl]

It needs NumPy and JAX, this folder of scripts but for export.py and cpu.py, and that of the
programs. Each program's results are compared with those of the engine on the CPU where it was
exported, as |difference| / |result|. XLA makes a Cholesky factor on a GPU in a slow loop of its
own; the library's is put in its place, unless --raw-cholesky. The clock is wall time of a run whose
inputs are on the device, the result waited for: the median of several, after two that are not
counted.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
import time
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax import export as jax_export
from jax._src import xla_bridge
from jax._src.interpreters import mlir as jax_mlir
from jax._src.lib import xla_client
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import func

sys.path.append(str(Path(__file__).parent))
from inputs import Case, draw
from timing import seconds

jax.config.update("jax_enable_x64", True)

LIBRARY_CALLS = ("cusolver_potrf_ffi", "lapack_dpotrf_ffi", "lapack_spotrf_ffi")
TYPES = {"f64": np.float64, "f32": np.float32}


def with_library_cholesky(blob: bytes) -> bytes:
    """The program with JAX's own Cholesky factorisation, which calls a library."""
    platform = {"gpu": "cuda"}.get(jax.default_backend(), jax.default_backend())
    checks = [jax_export.DisabledSafetyCheck.custom_call(name) for name in LIBRARY_CALLS]
    with jax_mlir.make_ir_context() as context, ir.Location.unknown(context):
        module = ir.Module.parse(blob)
        for number, operation in enumerate(list(_cholesky_operations(module.operation))):
            operand = operation.operands[0]
            shape = ir.RankedTensorType(operand.type)
            struct = jax.ShapeDtypeStruct(tuple(shape.shape), TYPES[str(shape.element_type)])
            lowered = jax_export.export(
                jax.jit(lambda A: jax.lax.linalg.cholesky(A, symmetrize_input=False)),
                platforms=[platform],
                disabled_checks=checks,
            )(struct)
            library = ir.Module.parse(lowered.mlir_module())  # kept: it owns its operations
            (function,) = library.body.operations
            name = f"library_cholesky_{number}"
            copy = function.operation.clone(ir.InsertionPoint.at_block_begin(module.body))
            copy.attributes["sym_name"] = ir.StringAttr.get(name)
            copy.attributes["sym_visibility"] = ir.StringAttr.get("private")
            call = func.CallOp(
                [shape], ir.FlatSymbolRefAttr.get(name), [operand], ip=ir.InsertionPoint(operation)
            )
            operation.results[0].replace_all_uses_with(call.results[0])
            operation.erase()
        return jax_mlir.module_to_bytecode(module)


def _cholesky_operations(operation):
    for region in operation.regions:
        for block in region.blocks:
            for inner in block.operations:
                if inner.operation.name == "stablehlo.cholesky":
                    yield inner.operation
                yield from _cholesky_operations(inner.operation)


def loaded(blob: bytes):
    """A function of device arrays."""
    backend = xla_bridge.get_backend()
    devices = xla_client.DeviceList(tuple(backend.local_devices()[:1]))
    program = backend.compile_and_load(blob, devices, xla_client.CompileOptions())

    def call(inputs):
        results = program.execute_sharded(inputs).disassemble_into_single_device_arrays()
        return jax.block_until_ready([part[0] for part in results])

    return call


def measure(case: Case, options: argparse.Namespace) -> dict:
    raw = options.raw_cholesky
    saved = np.load(options.folder / f"{case.name}.npz")
    blob = gzip.decompress((options.folder / f"{case.name}.mlirbc.gz").read_bytes())
    start = time.perf_counter()
    program = loaded(blob if raw else with_library_cholesky(blob))
    compiling = time.perf_counter() - start
    read = [saved[name] for name in sorted(saved.files) if name.startswith("read_")]
    inputs = [jax.device_put(part) for part in (*draw(case)[1:], *read)]
    results = program(inputs)
    truth = [saved[name] for name in sorted(saved.files) if name.startswith("out_")]
    errors = [
        float(np.linalg.norm(np.asarray(found) - true) / np.linalg.norm(true))
        for found, true in zip(results, truth)
    ]
    finite = all(bool(jnp.isfinite(part).all()) for part in results)
    taken = seconds(lambda: program(inputs), 2, options.repeats)
    return {
        **vars(case),
        **json.loads(str(saved["made"])),
        "date": time.strftime("%Y-%m-%d"),
        "cholesky": "raw" if raw else "library",
        "seconds": taken,
        "rows_per_second": case.n / taken,
        "tflops": case.flops / taken / 1e12,
        "errors": errors,
        "finite": finite,
        "compiling": compiling,
    }


def _waited_for(function, A):
    return jax.block_until_ready(function(A))


def peaks(size: int, repeats: int) -> dict:
    """Of the device: products of square matrices (TFLOP/s)."""
    found = {}
    for name, dtype, precision in (
        ("float64", jnp.float64, "highest"),
        ("float32", jnp.float32, "highest"),
        ("tf32", jnp.float32, "default"),
    ):
        A = jax.random.normal(jax.random.key(0), (size, size), dtype)
        product = jax.jit(lambda A, precision=precision: jnp.matmul(A, A.T, precision=precision))
        taken = seconds(partial(_waited_for, product, A), 2, repeats)
        found[name] = 2 * size**3 / taken / 1e12
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--raw-cholesky", action="store_true")
    parser.add_argument("--only", default="", help="cases whose name has this in it")
    parser.add_argument("--peak", type=int, default=0, help="also products of this size")
    parser.add_argument("--budget", type=float, default=1e9, help="seconds; no case starts after")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    start, device = time.perf_counter(), jax.devices()[0].device_kind
    rows = []
    if options.peak:
        rows.append(
            {
                "device": device,
                "jax": jax.__version__,
                "date": time.strftime("%Y-%m-%d"),
                "peak_tflops": peaks(options.peak, options.repeats),
            }
        )
    names = {path.name.partition(".")[0] for path in options.folder.glob("*.mlirbc.gz")}
    found = [Case.of(name) for name in names if options.only in name]
    for case in sorted(found, key=lambda case: (case.flops, case.name)):
        if time.perf_counter() - start > options.budget:
            break
        try:
            rows.append({"device": device, **measure(case, options)})
        except Exception as error:  # one program that fails must not cost the others
            rows.append({"device": device, **vars(case), "failed": str(error)[:300]})
        print(json.dumps(rows[-1]), flush=True)
        if options.out:
            options.out.write_text("".join(json.dumps(row) + "\n" for row in rows))


if __name__ == "__main__":
    main()
