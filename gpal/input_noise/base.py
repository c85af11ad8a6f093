"""What every treatment of input noise offers, and the register of them by name.

    @INPUT_NOISES.register
    class FirstOrder(InputNoise):
        name = "first_order"
        ...

A treatment turns p(x | x̃), in the model's standardised units, into the rows that a GP works on:
positions [n·S, d], S nodes per source next to each other, and a root R [n, d, d] of the covariance
of x that the GP itself takes into account. Everything is TensorFlow, differentiable in the scale
and floor of the errors. Training and prediction use the same treatment, always: mixing them hurts.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import tensorflow as tf

from gpal.files.saved_data import check_keys
from gpal.input_noise.conditional import Conditional
from gpal.registry import Register

__all__ = [
    "INPUT_NOISES",
    "InputNoise",
    "input_noise_from_data",
    "input_noise_to_data",
    "make_input_noise",
]


class InputNoise(ABC):
    """Base class: a subclass gives `rows`, and `to_data` where its constructor takes arguments. It
    can be made without any.

    What there is to say about a treatment stands on its class; the tables of the documentation and
    the refusals of what does not work are derived from there (`gpal.inference.capabilities`).

    name                 key in `INPUT_NOISES`
    summary, source      what it does, and the paper
    nodes                S, rows per source in prediction; in training too unless `gradient_only`
    uses_errors          of measured values
    uses_root            whether R enters the GP
    closed_form_moments  whether it does as the moments of f over x ~ N(m, R Rᵀ) in closed form
                         (`gpal.inference.psi_rows`), not by the slope of f
    gradient_only        whether training draws x anew at every step, see `drawn.py`
    kernel_gap           which kernels it is confined to, a sentence; "" for any kernel
    """

    name: ClassVar[str]
    summary: ClassVar[str] = ""
    source: ClassVar[str] = ""
    nodes: int = 1
    uses_errors: ClassVar[bool] = True
    uses_root: ClassVar[bool] = False
    closed_form_moments: ClassVar[bool] = False
    gradient_only: ClassVar[bool] = False
    kernel_gap: ClassVar[str] = ""

    def __init_subclass__(cls, **options: Any) -> None:
        """A class that is not registered has a name nevertheless, and not that of its base."""
        super().__init_subclass__(**options)
        if "name" not in vars(cls):
            cls.name = cls.__name__

    @property
    def training_nodes(self) -> int:
        """Rows per source in training."""
        return 1 if self.gradient_only else self.nodes

    def to_data(self) -> dict[str, Any]:
        """Name and constructor arguments, fit for JSON; `input_noise_from_data` makes it again."""
        return {"name": self.name}

    @abstractmethod
    def rows(self, x: Conditional) -> tuple[tf.Tensor, tf.Tensor]:
        """(positions [n·S, d], R [n, d, d])."""


INPUT_NOISES: Register[InputNoise] = Register(
    "input noise", "gpal.input_noise", "gpal.input_noise", InputNoise
)


def make_input_noise(treatment: str | InputNoise) -> InputNoise:
    """A treatment by name, or the object itself; InputError for an unknown name."""
    return treatment if isinstance(treatment, InputNoise) else INPUT_NOISES.find(treatment)()


def input_noise_to_data(treatment: InputNoise) -> dict[str, Any]:
    """For a model file; InputError for a class that could not be found again by its name."""
    INPUT_NOISES.name_of(type(treatment))
    return treatment.to_data()


def input_noise_from_data(data: dict[str, Any]) -> InputNoise:
    """Inverse of `input_noise_to_data`."""
    make: Any = INPUT_NOISES.find(data.get("name"))
    treatment = make(**{key: value for key, value in data.items() if key != "name"})
    check_keys(data, treatment.to_data(), "the input noise")
    return treatment
