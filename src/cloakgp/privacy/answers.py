"""Answers: noisy numbers, public, and the only thing that leaves the private side."""

from __future__ import annotations

from dataclasses import dataclass

from cloakgp.privacy.accounting import Guarantee
from cloakgp.privacy.noise import NOISES
from cloakgp.utils.arrays import Array
from cloakgp.utils.names import NoiseName


@dataclass(frozen=True, eq=False)
class Answers:
    """Noisy answers to linear questions about the private entries of some rows.

    Attributes
    ----------
    values : array of shape (k, C)
        R V + noise, in the units of the question.
    noise_sd : float
        Of each of them; 0 only if nothing was asked.
    guarantee : Guarantee
    insecure : bool
        True if the noise came from a fixed seed: such a release is not private.
    noise : {"gaussian", "laplace"}
        The law that it was drawn from.
    """

    values: Array
    noise_sd: float
    guarantee: Guarantee
    insecure: bool = False
    noise: NoiseName = "gaussian"

    def validate(self) -> None:
        """Refuse answers that are no matrix, or of a noise that there is not.

        Raises
        ------
        ValueError
        """
        if self.values.ndim != 2:
            raise ValueError("its arrays do not fit each other")
        if self.noise not in NOISES:
            raise ValueError("its noise is damaged")
