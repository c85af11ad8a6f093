"""p(x | x̃): how a model treats the error bars of its inputs, one file per treatment.

Adding one is one file, here or in another package: a subclass of `InputNoise` with the facts on it
and `@INPUT_NOISES.register` above it (another package also names it as an entry point in the group
"gpal.input_noise").
"""

from gpal.input_noise.base import (
    INPUT_NOISES,
    InputNoise,
    input_noise_from_data,
    input_noise_to_data,
    make_input_noise,
)

__all__ = [
    "INPUT_NOISES",
    "InputNoise",
    "input_noise_from_data",
    "input_noise_to_data",
    "make_input_noise",
]
