"""The treatments of gpal in one place, for whoever imports them by class."""

from __future__ import annotations

from gpal.input_noise.amortized import Amortized
from gpal.input_noise.analytic import Analytic
from gpal.input_noise.base import input_noise_from_data, make_input_noise
from gpal.input_noise.first_order import FirstOrder
from gpal.input_noise.integrated import Integrated
from gpal.input_noise.latent import Latent
from gpal.input_noise.none import NoInputNoise
from gpal.input_noise.resampled import Resampled

__all__ = [
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
