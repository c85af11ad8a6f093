"""Rows as plain data, for model files: kernels and settings as JSON, the points Z as an array."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from gpal.errors import InputError
from gpal.files.saved_data import check_fields
from gpal.inference.kernel_rows import KernelRows
from gpal.inference.psi_rows import PsiRows
from gpal.inference.saved_kernels import kernel_from_data, kernel_to_data
from gpal.inference.streaming import Rows

__all__ = ["rows_from_data", "rows_to_data"]

KINDS: dict[str, type[Rows]] = {rows.kind: rows for rows in (KernelRows, PsiRows)}
FIELDS = {
    "kind": set(KINDS),
    "kernels": [dict],
    "num_latent": int,
    "nodes": int,
    "dtype": {"float64", "float32"},
    "noisy": [int],
}


def rows_to_data(rows: Rows) -> tuple[dict[str, Any], np.ndarray]:
    """(JSON-able data, Z); what is learned about the inputs is the model's to keep."""
    data = {
        "kind": rows.kind,
        "kernels": [kernel_to_data(kernel) for kernel in rows.kernels],
        "num_latent": rows.num_latent,
        "nodes": rows.nodes,
        "dtype": rows.dtype.name,
        "noisy": list(rows.noisy),
    }
    return data, np.asarray(rows.Z)


def rows_from_data(data: Mapping[str, Any], Z: np.ndarray) -> Rows:
    """Inverse of `rows_to_data`."""
    check_fields(data, FIELDS, "the Gaussian process")
    number, d = len(data["kernels"]), Z.shape[1]
    if number not in (1, data["num_latent"]) or data["num_latent"] < 1:
        raise InputError(f"{number} kernels are not for {data['num_latent']} latent functions")
    if not set(data["noisy"]) <= set(range(d)):
        raise InputError(f"'noisy' of the Gaussian process is {data['noisy']}, of {d} features")
    return KINDS[data["kind"]](
        [kernel_from_data(kernel, d) for kernel in data["kernels"]],
        Z,
        data["num_latent"],
        nodes=data["nodes"],
        dtype=tf.as_dtype(data["dtype"]),
        noisy=data["noisy"],
    )
