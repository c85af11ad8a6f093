"""What a graphics card makes of float32 products: TensorFloat-32, with three digits, unless it is
told not to.

On an H200 that was off by .01 in α, and a gradient that is a small difference of large sums was
wrong by 2 to 20 times its size (docs/inference.md).
"""

from __future__ import annotations

import tensorflow as tf

from gpal.errors import InputError

__all__ = ["UnsuitableDevice", "check_products", "rounds_single_precision"]


class UnsuitableDevice(InputError):
    """Nothing is wrong with the data, or with a file."""


def rounds_single_precision() -> bool:
    """Whether float32 products are made with three digits: by cards of compute capability 8 on."""
    if not tf.config.experimental.tensor_float_32_execution_enabled():
        return False
    details = map(tf.config.experimental.get_device_details, tf.config.get_visible_devices("GPU"))
    return any(card.get("compute_capability", (8, 0)) >= (8, 0) for card in details)


def check_products(dtype: tf.DType) -> None:
    """UnsuitableDevice for a dtype of products that the device would not keep."""
    if dtype == tf.float32 and rounds_single_precision():
        raise UnsuitableDevice(
            "this GPU makes products of dtype 'float32' in TensorFloat-32, with three digits, and"
            " gradients would be wrong: call"
            " tensorflow.config.experimental.enable_tensor_float_32_execution(False) first, or take"
            " dtype='float64'"
        )
