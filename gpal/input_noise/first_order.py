"""First-order input noise: rows E[x | x̃], R Rᵀ = Cov[x | x̃] (NIMGP_FO, Villacampa-Calvo et al.
2021, sec. 3.4). The GP adds the slope variance, see `gpal.inference.kernel_rows`."""

from __future__ import annotations

import tensorflow as tf

from gpal.input_noise.base import INPUT_NOISES, InputNoise
from gpal.input_noise.conditional import Conditional

__all__ = ["FirstOrder"]


@INPUT_NOISES.register
class FirstOrder(InputNoise):
    """Var f gains (∂m/∂x)ᵀ Cov[x] (∂m/∂x): exact for a latent function linear over the error."""

    name = "first_order"
    summary = "slope variance added to Var f"
    source = "Villacampa-Calvo et al. 2021, NIMGP_FO"
    uses_root = True

    def rows(self, x: Conditional) -> tuple[tf.Tensor, tf.Tensor]:
        return x.moments()
