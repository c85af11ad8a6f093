"""What a Gaussian q(f) is compared with: draws of the posterior itself, at small n.

    p(f | y) ∝ p(y | f) Π_c N(f_c; 0, K_c),     K_c = R_c R_cᵀ

of the full GP, inputs exact, hyper-parameters held. Draws are of f at the training inputs [n, P];
`gpal.model.reference` carries them to others. A method is one file:

    @REFERENCES.register
    class Gibbs(Reference):
        name = "gibbs"
        ...
        def sample(self, roots, likelihood, labels, schedule): ...

Chains start at independent draws of the prior, far apart, so that comparing them shows whether they
have come to the same distribution.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np

from gpal.errors import InputError
from gpal.files.saved_data import whole_number
from gpal.registry import Register

__all__ = ["REFERENCES", "ChainSchedule", "Reference", "prior_draws"]

LARGEST = 2**31 - 1  # number that TensorFlow takes for a seed


@dataclass(frozen=True, kw_only=True)
class ChainSchedule:
    """How long the chains are.

    draws     kept of each chain
    burn_in   steps before the first that is kept
    thin      steps from one that is kept to the next
    """

    draws: int = 500
    chains: int = 4
    burn_in: int = 500
    thin: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        for name, least in (("draws", 4), ("chains", 2), ("burn_in", 0), ("thin", 1), ("seed", 0)):
            whole_number(getattr(self, name), name, least, LARGEST)

    @classmethod
    def of(cls, **options: int) -> ChainSchedule:
        """InputError for an option that there is none of."""
        known = [field.name for field in fields(cls)]
        if unknown := [name for name in options if name not in known]:
            raise InputError(f"no option '{unknown[0]}' of chains; there are: {', '.join(known)}")
        return cls(**options)


class Reference(ABC):
    """A way to draw from p(f | y), by name.

    name, summary, source   for the tables of the documentation
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    source: ClassVar[str]

    @classmethod
    @abstractmethod
    def why_not(cls, likelihood: Any) -> str:
        """'' where it takes the likelihood, given by its class, else the reason why not."""

    @abstractmethod
    def sample(
        self, roots: np.ndarray, likelihood: Any, labels: np.ndarray, schedule: ChainSchedule
    ) -> np.ndarray:
        """Draws of f [draws, chains, n, P].

        roots   [1 or P, n, n]  lower triangular R of the kernel matrices
        labels  [n]             class indices
        """


REFERENCES: Register[Reference] = Register(
    "reference", "gpal.inference", "gpal.references", Reference
)


def prior_draws(
    roots: np.ndarray, latents: int, number: int, rng: np.random.Generator
) -> np.ndarray:
    """f [number, P, n] of N(0, K)."""
    normal = rng.normal(size=(number, latents, roots.shape[-1], 1))
    return (roots @ normal)[..., 0]
