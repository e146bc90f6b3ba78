"""What only an accelerator can show, part by part: ``bench check-gpu``.

Every part is a function of a device, so that all of them run on a CPU, too, where they are tested.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from torch.utils.flop_counter import FlopCounterMode

from bench.contract.toys import finish, furthest, linked, make_spec, play, random_federation, random_images
from bench.engine.batch import cross_entropy
from bench.engine.checkpoint import Checkpoint
from bench.engine.conditions import run_conditions
from bench.engine.execute import run
from bench.engine.result import RunResult
from bench.engine.run import Run
from bench.errors import NoDataError
from bench.federation.types import TRAIN, Federation
from bench.nn.base import CLIENT_MODELS, keep_all
from bench.process import end_with_parent
from bench.spec import RunSpec
from bench.sweep.order import of_run
from bench.timing.speed import Case, Machine, measure, measure_machine

TOLERANCE = 1e-5
"""Largest difference of two models' parameters after an epoch that orders of summation may make."""
SPREAD = 4
"""A device may be so many times as far from the CPU as two implementations are from each other there."""
BATCH = 64


@dataclass(frozen=True)
class Finding:
    """What a part has shown: whether it is ``well``, None where it could not be looked at."""

    part: str
    subject: str
    text: str
    well: bool | None


@dataclass(frozen=True)
class Sizes:
    """How much is run: client counts on Cora, clients and images a client of the image study, rounds."""

    graphs: Sequence[int] = (10, 100, 1000)
    albums: int = 20
    images: int = 300
    side: int = 32
    rounds: int = 5


def toy(model: str, clients: int = 4, rounds: int = 1) -> tuple[RunSpec, Federation]:
    """A short FedAvg run of a client model on data that it reads."""
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
    """Convolutions and products in float32 throughout: an accelerator shortens their factors otherwise."""
    before = torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    try:
        yield
    finally:
        torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32 = before


def distance(first_run: Run, second_run: Run) -> float:
    """Largest difference of two runs' models, on whatever devices they are."""
    models = ({name: value.cpu() for name, value in loop.own.items()} for loop in (first_run, second_run))
    return furthest(*models)


def image_run(model: str, sizes: Sizes, rounds: int, local_epochs: int) -> tuple[RunSpec, Federation]:
    """A FedAvg run of a client model on random pixels."""
    federation = random_images([sizes.images] * sizes.albums, side=sizes.side, classes=10)
    client = {"model": model, "hidden": 512, "batch_size": BATCH, "optimizer": "sgd", "dropout": 0.0}
    spec = make_spec("fedavg", federation, client=client, rounds=rounds, local_epochs=local_epochs)
    return spec, federation


def stacked_equals_sequential(model: str, device: str) -> Finding:
    """All clients at once on the device against one after the other there, and on the CPU.

    Where batches are normalised, an epoch carries the last digit of a convolution far: on a CPU, too, from
    one implementation of convolutions to another. By that the distance from the CPU is judged.
    """
    spec, federation = toy(model)
    with exact():
        stacked_run = play(spec, federation, device=device, block_size=len(federation))
        sequential_run = play(spec, federation, device=device, block_size=1)
        cpu_run = play(spec, federation, block_size=1)
    with warnings.catch_warnings(), torch.backends.mkldnn.flags(enabled=False):
        warnings.simplefilter("ignore")  # of what mkldnn does on other hardware
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


def round_on_graphs(
    clients: int, device: str, machine: Machine, roots: tuple[Path, ...], rounds: int
) -> Finding:
    """FedAvg on Cora, or on a graph of ten times its size where Cora has no room for so many clients."""
    case = Case("cora", "non-overlapping", "fedavg", clients, reference=False)
    try:
        row = measure(case, rounds, machine, roots, device, torch.get_num_threads())
    except NoDataError as error:
        return Finding("round on graphs", f"{clients} clients", str(error), None)
    text = f"{row.seconds_per_round * 1e3:.1f} ms on {row.dataset}, peak {row.peak_mib:.0f} MiB"
    return Finding("round on graphs", f"{clients} clients", text, True)


def operations_an_image(spec: RunSpec, federation: Federation) -> float:
    """Floating-point operations of training on an image, forwards and backwards, counted on the CPU."""
    loop = Run(spec, federation)
    block = loop.clients.blocks[0]
    items = block.training[0][: spec.client.batch_size]
    batch = block.some_items(np.array([0]), items[None], keep_all)
    models = {name: value.clone().requires_grad_() for name, value in batch.of(loop.own).items()}
    models |= {name: models[name].detach() for name in loop.model.buffers}
    with FlopCounterMode(display=False) as counter:
        cross_entropy(models, batch).sum().backward()
    return float(counter.get_total_flops()) / len(items)


def round_on_images(model: str, device: str, machine: Machine, sizes: Sizes) -> Finding:
    """A FedAvg round on random pixels: seconds, images trained on a second, share of the matrix rate."""
    spec, federation = image_run(model, sizes, rounds=2 + sizes.rounds, local_epochs=5)
    with run_conditions():
        loop = Run(spec, federation, device)
        loop.warm_up()
        for index in range(2):
            loop.step(index)
        before = dict(loop.watch.seconds)
        finish(loop, first=2)
    costs = {name: (seconds - before[name]) / sizes.rounds for name, seconds in loop.watch.seconds.items()}
    counts = [client.count(TRAIN) for client in federation.clients]
    trained = spec.protocol.local_epochs * sum(
        count // BATCH * BATCH if count >= BATCH else count for count in counts
    )
    rate = trained / costs["client"]
    share = rate * operations_an_image(spec, federation) / machine.matrix_rate
    text = f"{sum(costs.values()):.2f} s, {rate:,.0f} images a second, {share:.0%} of the float32 matrix rate"
    return Finding("round on images", f"{model}, {len(federation)} clients", text, True)


def _seconds_and_counts(device: str) -> tuple[float, int]:
    spec, federation = toy("gcn", clients=8, rounds=20)
    begin = time.perf_counter()
    result = run(spec, federation, device)
    correct = sum(int(counts.sum()) for counts in result.correct.values())
    return time.perf_counter() - begin, correct


def packed(device: str) -> Finding:
    """Two runs in processes of their own that share the device, after each other and at once."""
    with ProcessPoolExecutor(2, get_context("spawn"), end_with_parent) as pool:
        list(pool.map(_seconds_and_counts, [device] * 2))  # imports, kernels
        lone_seconds, lone_counts = pool.submit(_seconds_and_counts, device).result()
        begin = time.perf_counter()
        results = list(pool.map(_seconds_and_counts, [device] * 2))
        pair_seconds = time.perf_counter() - begin
    text = f"{lone_seconds:.2f} s alone, {pair_seconds:.2f} s for two at once"
    return Finding("two runs at once", "gcn", text, all(correct == lone_counts for _, correct in results))


Execute = Callable[[int], RunResult]
"""A run in blocks of so many clients."""


def until_it_fits(execute: Execute, clients: int) -> tuple[RunResult, list[int]]:
    """Try as a sweep does, in blocks half as large each time; the last result and the blocks tried for it."""
    blocks: list[int] = []
    for shrink in (1, 2, 4):
        blocks.append(max(1, clients // shrink))
        result = execute(blocks[-1])
        if result.state != "oom":
            break
    return result, blocks


@contextmanager
def limited(device: str, share: float) -> Iterator[None]:
    """Let this process have that share of the most memory that its tensors have taken on the device."""
    torch_device = torch.device(device)
    if torch_device.index is None:  # a limit is for a GPU by its number
        torch_device = torch.device("cuda", torch.cuda.current_device())
    total_memory = torch.cuda.get_device_properties(torch_device).total_memory
    peak = torch.cuda.max_memory_allocated(torch_device)
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction(share * peak / total_memory, torch_device)
    try:
        yield
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0, torch_device)
        torch.cuda.empty_cache()


def memory_runs_out(device: str, sizes: Sizes) -> Finding:
    """A run with three quarters of the memory that it takes with all clients in a block."""
    part, subject = "out of memory", "cnn"
    if torch.device(device).type != "cuda":
        return Finding(part, subject, "memory can be limited on an accelerator alone", None)
    spec, federation = image_run("cnn", sizes, rounds=1, local_epochs=1)

    def execute(block_size: int) -> RunResult:
        return of_run(lambda: run(spec, federation, device, block_size), device)

    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats(torch.device(device))
    usual_result = execute(len(federation))
    with limited(device, 0.75):
        result, blocks = until_it_fits(execute, len(federation))
    is_expected = usual_result.state == "done" and result.state == "done" and len(blocks) > 1
    words = f"{result.state} in blocks of {', '.join(map(str, blocks))} clients, one after the other"
    return Finding(part, subject, words, is_expected)


def checkpoint_taken_up(device: str, tolerance: float = TOLERANCE) -> Finding:
    """A run that is saved after half of its rounds and goes on in another object."""
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
    return Finding("checkpoint taken up", "gcn", text, saved_state is not None and gap < tolerance)


def infinity_caught(device: str) -> Finding:
    """A learning rate without measure."""
    spec, federation = toy("gcn", rounds=4)
    result = run(spec.with_settings({"client.learning_rate": 1e30}), federation, device)
    return Finding("not finite", "gcn", f"{result.state}: {result.reason}", result.state == "diverged")


def parts(
    device: str,
    roots: tuple[Path, ...],
    sizes: Sizes,
    measure_machine: Callable[[torch.device], Machine] = measure_machine,
) -> Iterator[Callable[[], Finding]]:
    """Everything, in order."""
    for model in CLIENT_MODELS.all():
        yield partial(stacked_equals_sequential, model, device)
    machine = measure_machine(torch.device(device))
    for clients in sizes.graphs:
        yield partial(round_on_graphs, clients, device, machine, roots, sizes.rounds)
    for model, kind in CLIENT_MODELS.all().items():
        if "images" in kind.families:
            yield partial(round_on_images, model, device, machine, sizes)
    yield partial(packed, device)
    yield partial(memory_runs_out, device, sizes)
    yield partial(checkpoint_taken_up, device)
    yield partial(infinity_caught, device)


def examine(device: str, roots: tuple[Path, ...], sizes: Sizes) -> Iterator[tuple[Finding, float]]:
    """Every part's finding and its seconds; a part that fails is itself a finding, and the others go on."""
    for part in parts(device, roots, sizes):
        begin = time.perf_counter()
        try:
            finding = part()
        except Exception as error:
            name = getattr(part, "func", part).__name__.replace("_", " ")
            finding = Finding(name, "", f"{type(error).__name__}: {error}", False)
        yield finding, time.perf_counter() - begin
