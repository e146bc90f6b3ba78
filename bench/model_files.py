"""Trained models as files: those of a run's clients as safetensors, with a manifest."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.errors import NotApplicableError, RequestError
from bench.replacement import replacing_folder
from bench.runner.execution import execute
from bench.runner.order import Order
from bench.spec import RunSpec

if TYPE_CHECKING:
    from bench.engine.batch import Stack
    from bench.engine.kept_models import KeptModels
    from bench.engine.result import RunResult

MANIFEST = "manifest.json"
FORMAT = 1


def read_models(folder: Path) -> tuple[Stack, dict[int, dict[str, Any]]]:
    """The models of a run's folder, a row for each client; and, by round, what its method predicts with."""
    import torch
    from safetensors.torch import load_file

    manifest = json.loads((folder / MANIFEST).read_text())
    models = [load_file(folder / client["file"]) for client in manifest["clients"]]
    method = {
        part["round"]: {**part["values"], **(load_file(folder / part["file"]) if part["file"] else {})}
        for part in manifest["method"]
    }
    return {name: torch.stack([model[name] for model in models]) for name in models[0]}, method


def write_models(folder: Path, spec: RunSpec, result: RunResult, models: KeptModels) -> None:
    """Write the kept models of a finished run; an earlier folder is replaced once the new one is whole.

    Every client's test accuracy is counted with the model that was read back, and set beside the run's.
    """
    from torch import Tensor

    from bench.federation.types import TEST

    digits = len(str(len(models.rounds) - 1))
    samples, counts = result.samples["test"], result.correct["trained", "test"]
    clients: list[dict[str, Any]] = []
    method: list[dict[str, Any]] = []
    manifest = {
        "format": FORMAT,
        "spec": json.loads(spec.canonical()),
        "spec_hash": spec.hash,
        "partition_hash": result.partition_hash,
        "stage": "trained",
        "rule": models.rule,
        "clients": clients,
        "method": method,
    }
    with replacing_folder(folder) as new_folder:
        for client, round_index in enumerate(models.rounds):
            name = f"client-{client:0{digits}}.safetensors"
            model = {key: value[client] for key, value in models.stack.items()}
            _save(new_folder / name, model, {"spec_hash": spec.hash})
            clients.append({"client": client, "file": name, "round": int(round_index)})
        for round_index, state in sorted(models.method.items()):
            tensors = {key: value for key, value in state.items() if isinstance(value, Tensor)}
            values = {key: value for key, value in state.items() if key not in tensors}
            file = f"method-{round_index}.safetensors" if tensors else None
            if file:
                _save(new_folder / file, tensors)
            method.append({"round": round_index, "file": file, "values": values})
        _write(new_folder, manifest)
        correct = models.correct(*read_models(new_folder))[:, TEST]
        for client, entry in enumerate(clients):
            count, total = int(correct[client]), int(samples[client])
            stored_count = int(counts[models.rounds[client], client])
            entry |= {
                "test_correct": count,
                "test_samples": total,
                "test_accuracy": count / total if total else None,
                "stored_test_accuracy": stored_count / total if total else None,
                "as_stored": not total or count == stored_count,
            }
        _write(new_folder, manifest)


def _save(file: Path, model: Stack, metadata: dict[str, str] | None = None) -> None:
    from safetensors.torch import save

    file.write_bytes(save({key: value.cpu().contiguous().clone() for key, value in model.items()}, metadata))


def _write(folder: Path, manifest: dict[str, Any]) -> None:
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n")


@dataclass(frozen=True)
class Saving:
    """Makes runs as a sweep's worker does, and writes the models of those that finish below ``folder``, each
    run's in a folder called by its spec's hash.
    """

    folder: Path

    def __post_init__(self) -> None:
        """Raises ``RequestError`` where models cannot be written."""
        if find_spec("safetensors") is None:
            raise RequestError("models are written with the extra 'models': pip install 'pfl-bench[models]'")

    def __call__(self, order: Order) -> RunResult:
        """The outcome of an order. Models that cannot be written are said so and left out: the run stays."""
        from bench.engine.kept_models import KeptModels

        models = KeptModels("best_val")
        result = execute(order, kept=models)
        if result.state == "done":
            spec = order.spec
            try:
                write_models(self.folder / spec.hash, spec, result, models)
            except RequestError as error:
                print(f"no models of {spec.hash}: {error}", file=sys.stderr)
        return result

    def lacks(self, spec: RunSpec) -> bool:
        """Whether the models of a run can be kept, and are not here."""
        from bench.engine.kept_models import refuse

        with suppress(NotApplicableError):
            refuse(spec)
            return not (self.folder / spec.hash / MANIFEST).exists()
        return False

    def summary(self, specs: Sequence[RunSpec]) -> str:
        """How many of some runs have their models here."""
        count = sum((self.folder / spec.hash / MANIFEST).exists() for spec in specs)
        return f"models of {count:,} of {len(specs):,} runs are in {self.folder}"
