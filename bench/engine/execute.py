"""Makes the run of a spec. A run that does not come to its end has a state that says why."""

from __future__ import annotations

import time

import torch

from bench.engine.checkpoint import Checkpoint
from bench.engine.costs import peak_memory, reset_peak_memory, run_conditions
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
    the trained models of the selected round. If the method cannot do what the spec asks, the run ends as
    ``not_applicable``. If numbers stop being finite, the run ends as ``diverged``. Other errors are
    raised.
    """
    torch_device = torch.device(device)
    reset_peak_memory(torch_device)
    late = held_out(spec, len(federation))
    where = "during warm-up"
    loop: Run | None = None
    try:
        with run_conditions():
            start = time.perf_counter()
            there = part(federation, ~late) if spec.newcomers else federation
            loop = Run(spec, there, device, block_size, kept=kept)
            first_round = 0
            saved = checkpoint.resume(loop) if checkpoint else None
            if saved is None:
                loop.warm_up()
            else:
                last_round, seconds = saved
                first_round, start = last_round + 1, start - seconds
            for round_index in range(first_round, spec.protocol.rounds):
                where = f"in round {round_index}"
                loop.step(round_index)
                if checkpoint:
                    checkpoint.keep(loop, round_index, time.perf_counter() - start)
            tally, artefacts = loop.tally, loop.artefacts()
            if spec.newcomers:
                artefacts[TRAINED_CLIENTS] = last_shares(tally)
                tally = arrive(loop, federation, late)
            total = time.perf_counter() - start
    except NotApplicableError as error:
        return RunResult("not_applicable", str(error), device=device, partition_hash=federation.hash)
    except DivergedError as error:
        passes = loop.clients.passes if loop else 0.0
        return RunResult(
            "diverged",
            f"{error} {where}",
            client_epochs=passes,
            device=device,
            partition_hash=federation.hash,
        )
    return RunResult(
        "done",
        correct=tally.correct(),
        samples=tally.samples,
        confusion=tally.confusion(),
        roc_auc=tally.roc_auc(),
        selected=tally.rows if spec.protocol.metric != ACCURACY else {},
        loss=loop.loss,
        seconds={"client": 0.0, "server": 0.0, "evaluation": 0.0, **loop.watch.seconds, "total": total},
        peak_memory=peak_memory(torch_device),
        client_epochs=loop.clients.passes,
        bytes_up=loop.traffic.bytes_up,
        bytes_down=loop.traffic.bytes_down,
        device=device,
        partition_hash=federation.hash,
        artefacts=artefacts,
    )
