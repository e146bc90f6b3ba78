"""Image clients by label-Dirichlet with a cap on the size: FedAGHN's practical setting."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from bench.federation.dirichlet import label_dirichlet
from bench.federation.images import ImageScenario, ReleasedScenario
from bench.federation.scenario import positive_number
from bench.streams import Stream

LEAST = 3
"""Fewest images that the split leaves one training image of. The released code asks for 1 and
would fail in its split below 3; on the full data sets no draw comes near either."""


RELEASED = "-released"

RELEASED_CONCENTRATIONS = ("0.1", "0.2", "0.5")
"""Those of the paper's tables."""


class Dirichlet(ImageScenario):
    """Images by label-Dirichlet: every image goes to one client (facts 1.5)."""

    name = "dirichlet"
    parameters: ClassVar[tuple[str, ...]] = ("0.1", f"0.1{RELEASED}")

    def __init__(self, concentration: float) -> None:
        self.concentration = concentration

    @classmethod
    def parse(cls, parameter: str) -> Dirichlet:
        """The concentration; one of the released partitions where ``-released`` follows it."""
        number = parameter.removesuffix(RELEASED)
        if number == parameter:
            return cls(positive_number(parameter))
        if number not in RELEASED_CONCENTRATIONS:
            options = " or ".join(RELEASED_CONCENTRATIONS)
            raise ValueError(f"expected {options} before '{RELEASED}', got '{number}'")
        return DirichletReleased(float(number))

    def deal(self, labels: NDArray[np.int64], clients: int, stream: Stream) -> list[NDArray[np.int64]]:
        """See ``label_dirichlet``; ascending."""
        shares = label_dirichlet(labels, clients, self.concentration, LEAST, stream)
        return [np.sort(share) for share in shares]


class DirichletReleased(ReleasedScenario, Dirichlet):
    """The released partitions: ``dirichlet0.1-released`` and so on."""

    def deal(self, labels: NDArray[np.int64], clients: int, stream: Stream) -> list[NDArray[np.int64]]:
        """See ``label_dirichlet``; in its order, which the released split permutes."""
        return label_dirichlet(labels, clients, self.concentration, 1, stream)
