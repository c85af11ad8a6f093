"""p(x | x̃): how a model treats the error bars of its inputs, one file per treatment."""

from gpal.input_noise.treatments import TREATMENTS, make_input_noise

__all__ = ["TREATMENTS", "make_input_noise"]
