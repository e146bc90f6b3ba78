"""The checks of ``bench check-gpu``, which need an accelerator.

Every check takes a device, so that tests can run the checks on a CPU.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from bench.contract.toys import finish, furthest, linked, make_spec, play, random_federation, random_images
from bench.engine.checkpoint import Checkpoint
from bench.engine.execute import run
from bench.engine.run import Run
from bench.federation.types import Federation
from bench.nn.base import CLIENT_MODELS
from bench.runner.workers import outcome
from bench.spec import RunSpec

TOLERANCE = 1e-5
"""Largest allowed difference of two models' parameters after an epoch, from different orders of summation."""
SPREAD = 4
"""Largest allowed ratio: distance of the device from the CPU / distance of two implementations on the CPU."""


@dataclass(frozen=True)
class Finding:
    """The result of a check, and whether it is as expected (``well``)."""

    part: str
    subject: str
    text: str
    well: bool


def toy(model: str, clients: int = 4, rounds: int = 1) -> tuple[RunSpec, Federation]:
    """Spec and federation of a short FedAvg run of a client model, on data of the model's family."""
    family = CLIENT_MODELS.named(model).families[0]
    client = {"model": model, "optimizer": "sgd", "weight_decay": 0.0, "dropout": 0.0}
    if family == "images":
        federation = random_images([18 + 7 * number for number in range(clients)], side=48)
        client["batch_size"] = 8
    else:
        graph = linked(random_federation([24 + 5 * number for number in range(clients)], seed=11, width=30))
        federation = replace(graph, family=family)
    return make_spec("fedavg", federation, client=client, rounds=rounds, local_epochs=1), federation


@contextmanager
def exact() -> Iterator[None]:
    """Compute convolutions and products in full float32. By default an accelerator rounds the factors."""
    before = torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    try:
        yield
    finally:
        torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32 = before


def distance(first_run: Run, second_run: Run) -> float:
    """Largest difference of two runs' models; the runs may be on different devices."""
    models = ({name: value.cpu() for name, value in loop.own.items()} for loop in (first_run, second_run))
    return furthest(*models)


def stacked_equals_sequential(model: str, device: str) -> Finding:
    """Compare a run with all clients at once on the device with sequential runs on the device and on the CPU.

    With batch normalisation, an epoch amplifies differences in the last digit of a convolution. Two CPU
    implementations of convolutions also differ. The device may differ ``SPREAD`` times as much from the CPU.
    """
    spec, federation = toy(model)
    with exact():
        stacked_run = play(spec, federation, device=device, block_size=len(federation))
        sequential_run = play(spec, federation, device=device, block_size=1)
        cpu_run = play(spec, federation, block_size=1)
    with warnings.catch_warnings(), torch.backends.mkldnn.flags(enabled=False):
        warnings.simplefilter("ignore")  # warnings about mkldnn on other hardware
        other_run = play(spec, federation, block_size=1)
    gap, cpu_gap, cpu_spread = (
        distance(*pair)
        for pair in ((stacked_run, sequential_run), (stacked_run, cpu_run), (cpu_run, other_run))
    )
    text = f"{gap:.1e} from one client at a time, {cpu_gap:.1e} from the CPU"
    if cpu_spread > TOLERANCE:
        text += f", where roundings make {cpu_spread:.1e}"
    well = gap < TOLERANCE and cpu_gap < max(TOLERANCE, SPREAD * cpu_spread)
    return Finding("stacked is sequential", model, text, well)


def memory_runs_out(device: str) -> Finding:
    """Make a run with three quarters of the memory that the run needs with all clients in one block.

    If memory runs out, the block size is halved, at most twice, as in a sweep.
    """
    part, subject = "out of memory", "cnn"
    federation = random_images([300] * 20, side=32, classes=10)
    client = {"model": "cnn", "hidden": 512, "batch_size": 64, "optimizer": "sgd", "dropout": 0.0}
    spec = make_spec("fedavg", federation, client=client, rounds=1, local_epochs=1)

    def state(block_size: int) -> str:
        try:
            return run(spec, federation, device, block_size).state
        except Exception as error:
            return outcome(error).state

    with torch.cuda.device(device):
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        states = {"all memory": state(20)}
        total_memory = torch.cuda.get_device_properties(torch.cuda.current_device()).total_memory
        share = 0.75 * torch.cuda.max_memory_allocated() / total_memory
        torch.cuda.empty_cache()
        torch.cuda.set_per_process_memory_fraction(share)
        try:
            for block_size in (20, 10, 5):
                states[f"blocks of {block_size}"] = state(block_size)
                if states[f"blocks of {block_size}"] != "oom":
                    break
        finally:
            torch.cuda.set_per_process_memory_fraction(1.0)
            torch.cuda.empty_cache()
    words = ", ".join(f"{name}: {end}" for name, end in states.items())
    *_, end = states.values()
    is_expected = (states["all memory"], states["blocks of 20"], end) == ("done", "oom", "done")
    return Finding(part, subject, words, is_expected)


def checkpoint_taken_up(device: str) -> Finding:
    """Save a run after half of its rounds, continue it in another object, and compare with a full run."""
    spec, federation = toy("gcn", rounds=4)
    with exact(), TemporaryDirectory() as folder:
        whole_run = play(spec, federation, device=device)
        checkpoint = Checkpoint(Path(folder) / "run.ckpt", identity="check")
        first_run, second_run = (Run(spec, federation, device) for _ in range(2))
        first_run.warm_up()
        for index in range(2):
            first_run.step(index)
        checkpoint.save(first_run, 1, 0.0)
        saved_state = checkpoint.resume(second_run)
        finish(second_run, first=2)
    gap = distance(whole_run, second_run)
    text = "bit-equal" if gap == 0 else f"{gap:.1e} from the run that was not stopped"
    return Finding("checkpoint taken up", "gcn", text, saved_state is not None and gap < TOLERANCE)


def examine(device: str) -> Iterator[tuple[Finding, float]]:
    """Yield each check's finding and seconds. An error is a finding, too; the other checks still run."""
    parts: list[Callable[[str], Finding]] = [
        *(partial(stacked_equals_sequential, model) for model in CLIENT_MODELS.all()),
        memory_runs_out,
        checkpoint_taken_up,
    ]
    for part in parts:
        begin = time.perf_counter()
        try:
            finding = part(device)
        except Exception as error:
            name = getattr(part, "func", part).__name__.replace("_", " ")
            finding = Finding(name, "", f"{type(error).__name__}: {error}", False)
        yield finding, time.perf_counter() - begin
