"""Execute orders, on federations that the sweep has built. Importing this module loads torch.

A run of a search sees no label of a test item.
"""

from __future__ import annotations

import gc
import pickle
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import cache, lru_cache, partial
from multiprocessing import parent_process
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from bench.engine.checkpoint import Checkpoint
from bench.engine.execute import run
from bench.engine.kept_models import KeptModels
from bench.engine.result import RunResult
from bench.engine.run import default_block_size
from bench.errors import NoDataError, RequestError
from bench.federation.build import build
from bench.federation.types import TEST, Federation, hide_held_out
from bench.nn.models import build_model
from bench.runner import fingerprint
from bench.runner.workers import Order
from bench.spec import FederationKey, RunSpec

Build = Callable[..., Federation]

CLIENT_EPOCHS = "client_epochs"
"""Array stored with a search's run: passes over a client's training items, the mean over clients."""

fingerprint.read()  # at import: this process does not run what is edited later


class Shared(NamedTuple):
    """A federation's hash, its provenance, and the file from which workers read it."""

    hash: str
    provenance: Mapping[str, Any]
    file: Path


def build_all(
    specs: Iterable[RunSpec], roots: tuple[Path, ...], build: Build, folder: Path
) -> tuple[dict[FederationKey, Shared], dict[str, NoDataError]]:
    """Build every distinct federation and write it for workers; return also why data sets are missing."""
    federations: dict[FederationKey, Shared] = {}
    missing_data: dict[str, NoDataError] = {}
    for key in dict.fromkeys(spec.federation_key for spec in specs):
        if key.dataset in missing_data:
            continue
        try:
            federation = build(*key, roots=roots)
        except NoDataError as error:
            missing_data[key.dataset] = error
            continue
        file = folder / f"{len(federations)}.pickle"
        with suppress(OSError):  # a worker that cannot read the file builds the federation
            file.write_bytes(pickle.dumps(federation, protocol=5))
        federations[key] = Shared(federation.hash, federation.provenance, file)
    return federations, missing_data


@lru_cache(maxsize=2)  # a sweep runs many methods on the same clients in a row
def _federation(key: FederationKey, roots: tuple[str, ...], file: Path | None, build: Build) -> Federation:
    """Read the federation that the sweep has built; build it here if it cannot be read."""
    if file is not None:
        with suppress(OSError):
            federation: Federation = pickle.loads(file.read_bytes())
            return federation
    return build(*key, roots=tuple(map(Path, roots)))


def execute(
    order: Order,
    view: Callable[[Federation], Federation] = lambda federation: federation,
    kept: KeptModels | None = None,
    run: Callable[..., RunResult] = run,
    build: Build = build,
) -> RunResult:
    """Execute an order's spec on a ``view`` of its federation. The federation is cached for the next orders.

    ``kept`` receives the run's trained models. Raises ``RequestError`` if the data here make other clients
    than the order says, and whatever ``build`` and ``run`` raise.
    """
    spec, device = order.spec, torch.device(order.device)
    if parent_process() is not None:  # a process without a parent is not a worker's own
        _set_aside()
    torch.set_num_threads(order.threads)
    if device.type != "cpu":
        torch.cuda.init()  # a run first resets the device's peak memory, which fails without this
        torch.backends.cudnn.allow_tf32 = False  # convolutions in float32, as all other products are
    code = fingerprint.of(spec)
    federation = view(_federation(spec.federation_key, order.roots, order.federation, build))
    if order.federation_hash and federation.hash != order.federation_hash:
        raise RequestError("expected the sweep's clients on every machine, the data of this one make others")
    block_size = None
    if order.shrink > 1:
        size = default_block_size(build_model(spec.client, federation), federation.clients, device)
        block_size = max(1, size // order.shrink)
    checkpoint = None
    if order.checkpoint is not None:  # a checkpoint that was made otherwise differs in the last digits
        made_by = (federation.hash, code.source, torch.__version__, device.type, str(order.threads))
        checkpoint = Checkpoint(order.checkpoint, " ".join(made_by), order.minutes)
    result = run(spec, federation, order.device, block_size, checkpoint, kept)
    result.code = code
    return result


@cache
def _set_aside() -> None:
    """Exempt imported objects from garbage collection, which took half the time of a run of one round."""
    gc.collect()
    gc.freeze()


# Runs of searches ---------------------------------------------------------------------------------


def execute_trial(order: Order, make_run: Callable[..., RunResult] = execute) -> RunResult:
    """Execute an order of a search, with test items hidden; ``make_run`` is called as ``execute``."""
    return without_test_items(make_run(order, partial(hide_held_out, roles=(TEST,))))


def without_test_items(result: RunResult) -> RunResult:
    """Turn a result into a search's: no count of test items, and ``CLIENT_EPOCHS`` as its only array."""
    if result.state == "done":
        result.state = "searched"
        result.samples["test"] = np.zeros_like(result.samples["test"])
        for stage, split in result.correct:
            if split == "test":
                result.correct[stage, split] = np.zeros_like(result.correct[stage, split])
    result.artefacts = {}
    if result.state in ("searched", "diverged"):
        result.artefacts[CLIENT_EPOCHS] = np.array(result.client_epochs)
    return result
