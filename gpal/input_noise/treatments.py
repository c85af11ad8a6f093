"""The treatments of input noise by name, one small file each behind the interface of `none.py`.

    none         error bars ignored                                       `none.py`
    first_order  slope variance of f                                      `first_order.py`
    analytic     moments of f over x, in closed form                      `analytic.py`
    integrated   likelihood averaged over nodes x_s ~ p(x | x̃)            `integrated.py`
    latent       a Gaussian q(x_i) learned for each source                `latent.py`
    amortized    the same from one neural network                         `amortized.py`
    resampled    x ~ p(x | x̃) drawn anew for every mini-batch             `resampled.py`

Training and prediction use the same treatment, always: mixing them hurts.
"""

from __future__ import annotations

from typing import Any

from gpal.errors import InputError
from gpal.input_noise.amortized import Amortized
from gpal.input_noise.analytic import Analytic
from gpal.input_noise.first_order import FirstOrder
from gpal.input_noise.integrated import Integrated
from gpal.input_noise.latent import Latent
from gpal.input_noise.none import NoInputNoise
from gpal.input_noise.resampled import Resampled

__all__ = [
    "TREATMENTS",
    "Amortized",
    "Analytic",
    "FirstOrder",
    "Integrated",
    "Latent",
    "NoInputNoise",
    "Resampled",
    "input_noise_from_data",
    "make_input_noise",
]

TREATMENTS: dict[str, type[NoInputNoise]] = {
    treatment.name: treatment
    for treatment in (NoInputNoise, FirstOrder, Integrated, Analytic, Latent, Amortized, Resampled)
}


def make_input_noise(treatment: str | NoInputNoise) -> NoInputNoise:
    """A treatment by name, or the object itself."""
    if isinstance(treatment, NoInputNoise):
        return treatment
    if treatment not in TREATMENTS:
        raise InputError(f"no input noise '{treatment}'; there are: {', '.join(TREATMENTS)}")
    return TREATMENTS[treatment]()


def input_noise_from_data(data: dict[str, Any]) -> NoInputNoise:
    """Inverse of a treatment's `to_data`."""
    return TREATMENTS[data["name"]](**{k: v for k, v in data.items() if k != "name"})
