"""Image clients by label-Dirichlet with a cap on the size: FedAGHN's practical setting."""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from bench.federation.dirichlet import Stream, label_dirichlet
from bench.federation.images import ImageScenario
from bench.federation.scenario import positive_number

LEAST = 3
"""Fewest images that the split leaves one training image of. The released code asks for 1 and
would fail in its split below 3; on the full data sets no draw comes near either."""


class Dirichlet(ImageScenario):
    """Images by label-Dirichlet: every image goes to one client (facts 1.5)."""

    name = "dirichlet"
    parameters: ClassVar[tuple[str, ...]] = ("0.1",)

    def __init__(self, concentration: float) -> None:
        self.concentration = concentration

    @classmethod
    def parse(cls, parameter: str) -> Self:
        """The concentration."""
        return cls(positive_number(parameter))

    def deal(self, labels: NDArray[np.int64], clients: int, stream: Stream) -> list[NDArray[np.int64]]:
        """See ``label_dirichlet``."""
        return label_dirichlet(labels, clients, self.concentration, LEAST, stream)
