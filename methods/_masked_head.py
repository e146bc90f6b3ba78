"""How the head of a masked client model begins in FED-PUB's release, and in FedAux's, which builds on it."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from bench.engine.task import Task


def xavier_head(task: Task, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Tensor]:
    """Weights and biases, uniform within ``sqrt(6 / (inputs + outputs))``; a bias counts as one input.

    With 7 classes that is 0.87 for a bias, and for the weights of 128 inputs 0.21, where torch's default
    for a linear layer has 0.09 for both.
    """
    with task.seeded("xavier head"):
        return {
            name: ((torch.rand(shape) * 2 - 1) * math.sqrt(6 / (sum(shape) + (len(shape) == 1)))).to(
                task.device
            )
            for name, shape in sorted(shapes.items())
        }
