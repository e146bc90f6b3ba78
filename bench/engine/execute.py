"""Makes the run of a spec, to its end or to the reason why it has none."""

from __future__ import annotations

import torch

from bench.engine.checkpoint import Checkpoint
from bench.engine.conditions import run_conditions
from bench.engine.costs import Stopwatch, peak_memory, reset_peak_memory
from bench.engine.kept_models import KeptModels
from bench.engine.newcomers import TRAINED_CLIENTS, arrive, held_out, last_shares, part
from bench.engine.result import RunResult
from bench.engine.run import Run
from bench.errors import DivergedError, NotApplicableError
from bench.federation.types import Federation
from bench.metric_names import ACCURACY
from bench.spec import RunSpec


def run(
    spec: RunSpec,
    federation: Federation,
    device: str = "cpu",
    block_size: int | None = None,
    checkpoint: Checkpoint | None = None,
    kept: KeptModels | None = None,
) -> RunResult:
    """Make the run of a spec.

    With a ``checkpoint`` the run is saved now and then, and a saved state is taken up. ``kept`` receives
    the trained models of the selected round. A method that cannot do what is asked ends as
    ``not_applicable``. A run whose numbers stop being finite ends as ``diverged``. Other errors are
    raised.
    """
    torch_device = torch.device(device)
    reset_peak_memory(torch_device)
    total = Stopwatch(torch_device)
    round_index = -1
    mask = held_out(spec.newcomers, spec.seed, len(federation)) if spec.newcomers else None
    loop: Run | None = None
    try:
        with run_conditions(), total.part("total"):
            loop = Run(spec, federation if mask is None else part(federation, ~mask), device, block_size)
            if kept:
                kept.begin(loop)
            progress = checkpoint.resume(loop) if checkpoint else None
            if progress is None:
                loop.warm_up()
                first_round = 0
            else:
                first_round, total.seconds["total"] = progress.round + 1, progress.seconds
            for round_index in range(first_round, spec.protocol.rounds):
                loop.step(round_index)
                if checkpoint:
                    checkpoint.keep(loop, round_index, total.elapsed("total"))
            correct, samples, artefacts = loop.correct(), loop.evaluator.samples, loop.artefacts()
            if mask is None:
                confusion, roc_auc = loop.selected.confusion(), loop.selected.roc_auc()
            else:
                artefacts[TRAINED_CLIENTS] = last_shares(correct, samples)
                correct, samples, confusion, roc_auc = arrive(loop, federation, mask)
    except NotApplicableError as error:
        return RunResult("not_applicable", str(error), device=device, partition_hash=federation.hash)
    except DivergedError as error:
        reason = f"{error} in round {round_index}" if round_index >= 0 else f"{error} during warm-up"
        return RunResult(
            "diverged",
            reason,
            client_epochs=loop.clients.passes if loop else 0.0,
            device=device,
            partition_hash=federation.hash,
        )
    return RunResult(
        state="done",
        correct=correct,
        samples=samples,
        confusion=confusion,
        roc_auc=roc_auc,
        selected=loop.selected.rows if spec.protocol.metric != ACCURACY else {},
        loss=loop.loss,
        seconds={"client": 0.0, "server": 0.0, "evaluation": 0.0, **loop.watch.seconds, **total.seconds},
        peak_memory=peak_memory(torch_device),
        client_epochs=loop.clients.passes,
        bytes_up=loop.traffic.bytes_up,
        bytes_down=loop.traffic.bytes_down,
        device=device,
        partition_hash=federation.hash,
        artefacts=artefacts,
    )
