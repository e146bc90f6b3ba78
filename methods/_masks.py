"""Personal masks on weight matrices: the effective weights are W * mu (FED-PUB, FedAux, CUFL)."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import replace

import torch
from torch import Tensor
from torch.nn import functional

from bench.engine.batch import Stack
from bench.engine.method import Task
from bench.engine.optimiser import Optimiser

MASK = "mask of "
"""Prefix of the name of a weight matrix's mask."""


def ones(models: Stack, matrices: Collection[str]) -> dict[str, Tensor]:
    """A mask of ones for every matrix."""
    return {MASK + name: models[name].new_ones(()).expand_as(models[name]) for name in matrices}


def pruned(models: Stack, matrices: Collection[str], prune: float) -> dict[str, Tensor]:
    """Name of a matrix -> its mask mu. Entries with a magnitude of at most ``prune`` are set to 0."""
    masks = {name: models[MASK + name] for name in matrices}
    return {name: functional.hardshrink(mask, prune) if prune else mask for name, mask in masks.items()}


def masked(models: Stack, matrices: Collection[str], prune: float = 0.0) -> Stack:
    """The effective weights W * mu."""
    masks = pruned(models, matrices, prune)
    return {**models, **{name: models[name] * mask for name, mask in masks.items()}}


def with_mask_decay(optimiser: Optimiser, matrices: Collection[str], decay: float) -> Optimiser:
    """The optimiser with a separate weight decay for masks."""
    return replace(optimiser, decay_of={MASK + name: decay for name in matrices})


def xavier_head(task: Task, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Tensor]:
    """Initial parameters of a head in the released codes of FED-PUB and FedAux.

    Weights and biases are uniform within ``sqrt(6 / (inputs + outputs))``. A bias counts as one input.

    With 7 classes and 128 inputs the bound is 0.87 for biases and 0.21 for weights. In torch's default for a
    linear layer it is 0.09 for both.
    """
    with task.seeded("xavier head"):
        return {
            name: ((torch.rand(shape) * 2 - 1) * math.sqrt(6 / (sum(shape) + (len(shape) == 1)))).to(
                task.device
            )
            for name, shape in sorted(shapes.items())
        }
