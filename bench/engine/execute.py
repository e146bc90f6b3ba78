"""A spec taken to its end, or to the reason why it has none."""

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
from bench.spec import RunSpec


def run(
    spec: RunSpec,
    federation: Federation,
    device: str = "cpu",
    block_size: int | None = None,
    checkpoint: Checkpoint | None = None,
    kept: KeptModels | None = None,
) -> RunResult:
    """Execute a spec; with a ``checkpoint``, save the run now and then, and go on from what is saved.
    ``kept`` is given the trained models of the selected round.

    A method that cannot do what is asked ends as ``not_applicable``, one whose numbers stop being
    finite as ``diverged``; whatever else goes wrong is raised.
    """
    where = torch.device(device)
    reset_peak_memory(where)
    total = Stopwatch(where)
    round = -1
    late = held_out(spec.newcomers, spec.seed, len(federation)) if spec.newcomers else None
    it: Run | None = None
    try:
        with run_conditions(), total.part("total"):
            it = Run(spec, federation if late is None else part(federation, ~late), device, block_size)
            if kept:
                kept.begin(it)
            saved = checkpoint.resume(it) if checkpoint else None
            if saved is None:
                it.warm_up()
                first = 0
            else:
                first, total.seconds["total"] = saved.round + 1, saved.seconds
            for round in range(first, spec.protocol.rounds):
                it.step(round)
                if checkpoint:
                    checkpoint.keep(it, round, total.elapsed("total"))
            correct, samples, artefacts = it.correct(), it.evaluator.samples, it.artefacts()
            if late is None:
                confusion, roc_auc = it.selected.confusion(correct), it.selected.roc_auc()
            else:
                artefacts[TRAINED_CLIENTS] = last_shares(correct, samples)
                new = arrive(it, federation, late)
                correct, samples, confusion, roc_auc = new.correct, new.samples, new.confusion, new.roc_auc
    except NotApplicableError as error:
        return RunResult("not_applicable", str(error), device=device, partition_hash=federation.hash)
    except DivergedError as error:
        reason = f"{error} in round {round}" if round >= 0 else f"{error} during warm-up"
        return RunResult(
            "diverged",
            reason,
            client_epochs=it.clients.passes if it else 0.0,
            device=device,
            partition_hash=federation.hash,
        )
    return RunResult(
        state="done",
        correct=correct,
        samples=samples,
        confusion=confusion,
        roc_auc=roc_auc,
        loss=it.loss,
        seconds={"client": 0.0, "server": 0.0, "evaluation": 0.0, **it.watch.seconds, **total.seconds},
        peak_memory=peak_memory(where),
        client_epochs=it.clients.passes,
        bytes_up=it.traffic.bytes_up,
        bytes_down=it.traffic.bytes_down,
        device=device,
        partition_hash=federation.hash,
        artefacts=artefacts,
    )
