"""Writes and reads the trained models of a run's clients: safetensors files and a manifest."""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from bench.engine.batch import Stack
from bench.engine.kept_models import KeptModels, refuse
from bench.engine.result import RunResult
from bench.errors import NotApplicableError, RequestError
from bench.federation.types import TEST
from bench.paths import replacing_folder
from bench.runner.execution import execute
from bench.runner.workers import Order
from bench.spec import RunSpec

MANIFEST = "manifest.json"


def read_models(folder: Path) -> tuple[Stack, dict[int, dict[str, Any]]]:
    """Read a run's folder: the models, a row a client, and by round the method's state for predictions."""
    from safetensors.torch import load_file

    manifest = json.loads((folder / MANIFEST).read_text())
    models = [load_file(folder / client["file"]) for client in manifest["clients"]]
    method = {
        part["round"]: {**part["values"], **(load_file(folder / part["file"]) if part["file"] else {})}
        for part in manifest["method"]
    }
    return {name: torch.stack([model[name] for model in models]) for name in models[0]}, method


def write_models(folder: Path, spec: RunSpec, result: RunResult, models: KeptModels) -> None:
    """Write the kept models of a finished run. The new folder replaces an earlier one when it is complete.

    The written models are read back. The manifest gives their correct test items and the run's, by client.
    """
    digits = len(str(len(models.rounds) - 1))
    clients: list[dict[str, Any]] = []
    method: list[dict[str, Any]] = []
    manifest = {
        "format": 1,
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
            _save(new_folder / name, {key: value[client] for key, value in models.stack.items()})
            clients.append({"client": client, "file": name, "round": int(round_index)})
        for round_index, state in sorted(models.method.items()):
            tensors = {key: value for key, value in state.items() if isinstance(value, Tensor)}
            values = {key: value for key, value in state.items() if key not in tensors}
            file = f"method-{round_index}.safetensors" if tensors else None
            if file:
                _save(new_folder / file, tensors)
            method.append({"round": round_index, "file": file, "values": values})
        (new_folder / MANIFEST).write_text(json.dumps(manifest))
        correct = models.correct(*read_models(new_folder))[:, TEST]
        for client, entry in enumerate(clients):
            entry["test_samples"] = int(result.samples["test"][client])
            entry["test_correct"] = int(correct[client])
            entry["stored_test_correct"] = int(result.correct["trained", "test"][entry["round"], client])
        (new_folder / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n")


def _save(file: Path, model: Stack) -> None:
    from safetensors.torch import save

    file.write_bytes(save({key: value.cpu().contiguous().clone() for key, value in model.items()}))


@dataclass(frozen=True)
class Saving:
    """Makes runs as a sweep's worker does, and writes the models of every run that ends as ``done`` into
    ``folder``/HASH, where HASH is the hash of the run's spec.
    """

    folder: Path

    def __post_init__(self) -> None:
        """Raise ``RequestError`` if models cannot be written."""
        if find_spec("safetensors") is None:
            raise RequestError("models are written with the extra 'models': pip install 'pfl-bench[models]'")

    def __call__(self, order: Order) -> RunResult:
        """Make the run of an order. If its models cannot be written, say so; the result is still returned."""
        models = KeptModels("best_val")
        result = execute(order, kept=models)
        if result.state == "done":
            try:
                write_models(self.folder / order.spec.hash, order.spec, result, models)
            except RequestError as error:
                print(f"no models of {order.spec.hash}: {error}", file=sys.stderr)
        return result

    def lacks(self, spec: RunSpec) -> bool:
        """Whether the models of a run can be kept but are not in ``folder``."""
        with suppress(NotApplicableError):
            refuse(spec)
            return not (self.folder / spec.hash / MANIFEST).exists()
        return False
