"""Trained models as files: those of a run's clients as safetensors, with a manifest."""

from __future__ import annotations

import json
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from bench.errors import RequestError
from bench.metric_names import ACCURACY
from bench.replacement import check_replaceable, replacing_folder
from bench.spec import RunSpec
from bench.store.bundle_import import run_name
from bench.studies.source import OWN, Source
from bench.sweep.execution import execute
from bench.sweep.order import Order
from bench.sweep.policy import Slots
from bench.sweep.reporters import Reporter
from bench.sweep.run import temporary_runs
from bench.sweep.run_details import rows_of_cell

if TYPE_CHECKING:
    from bench.engine.batch import Stack
    from bench.engine.kept_models import KeptModels
    from bench.engine.result import RunResult

MANIFEST = "manifest.json"
FORMAT = 1

Tested = dict[int, tuple[int, int]]
"""Client -> correct predictions and items of its test split."""


def check_installed(find: Callable[[str], object] = find_spec) -> None:
    """Refuse where models cannot be written, by what ``find`` finds; raises ``RequestError``."""
    if find("safetensors") is None:
        raise RequestError("models are written with the extra 'models': pip install 'pfl-bench[models]'")


def read_models(folder: Path) -> tuple[Stack, dict[int, dict[str, Any]]]:
    """The models of a run's folder, a row for each client; and, by round, what its method predicts with.

    Raises:
        OSError: a file is not there.
        safetensors.SafetensorError: a file is damaged.
    """
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

    Raises:
        RequestError: the folder cannot be written.
    """
    from safetensors.torch import save
    from torch import Tensor

    from bench.federation.types import TEST

    check_replaceable(folder)
    digits = len(str(len(models.rounds) - 1))
    samples = result.samples["test"]
    clients: list[dict[str, Any]] = [
        {"client": client, "file": f"client-{client:0{digits}}.safetensors", "round": int(round_index)}
        for client, round_index in enumerate(models.rounds)
    ]
    tensors = {
        round_index: {name: value for name, value in state.items() if isinstance(value, Tensor)}
        for round_index, state in sorted(models.method.items())
    }
    manifest = {
        "format": FORMAT,
        "spec": json.loads(spec.canonical()),
        "spec_hash": spec.hash,
        "partition_hash": result.partition_hash,
        "stage": "trained",
        "rule": models.rule,
        "clients": clients,
        "method": [
            {
                "round": round_index,
                "file": f"method-{round_index}.safetensors" if state else None,
                "values": {
                    name: value for name, value in models.method[round_index].items() if name not in state
                },
            }
            for round_index, state in tensors.items()
        ],
    }
    with replacing_folder(folder) as new_folder:
        for client in clients:
            row = client["client"]
            model = {name: value[row].cpu().contiguous().clone() for name, value in models.stack.items()}
            (new_folder / client["file"]).write_bytes(save(model, {"spec_hash": spec.hash}))
        for round_index, state in tensors.items():
            if state:
                copies = {name: value.cpu().contiguous().clone() for name, value in state.items()}
                (new_folder / f"method-{round_index}.safetensors").write_bytes(save(copies))
        _write(new_folder, manifest)
        correct = models.correct(*read_models(new_folder))[TEST]
        for client in clients:
            row = client["client"]
            client |= {"test_correct": int(correct[row]), "test_samples": int(samples[row])}
        _compare(
            manifest,
            {
                row: (int(result.correct["trained", "test"][models.rounds[row], row]), int(samples[row]))
                for row in range(len(clients))
            },
        )
        _write(new_folder, manifest)


def _write(folder: Path, manifest: dict[str, Any]) -> None:
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n")


def _compare(manifest: dict[str, Any], stored_counts: Tested) -> int:
    """Set the stored accuracies beside those of the files; returns how many clients have others."""
    for client in manifest["clients"]:
        correct, samples = client["test_correct"], client["test_samples"]
        stored_correct, stored_samples = stored_counts.get(client["client"], (0, 0))
        client["test_accuracy"] = correct / samples if samples else None
        client["stored_test_accuracy"] = stored_correct / stored_samples if stored_samples else None
        client["as_stored"] = not samples or (correct, samples) == (stored_correct, stored_samples)
    return sum(not client["as_stored"] for client in manifest["clients"])


@dataclass(frozen=True)
class StoredRun:
    """A finished run, and what every client's trained model scores where the rule reads it."""

    name: str
    spec: RunSpec
    partition_hash: str
    tested: Tested


@dataclass(frozen=True)
class SavedModels:
    """What came of a run's models. ``as_stored``: they are those that the stored numbers are of."""

    run: str
    folder: str
    as_stored: bool
    text: str


def stored_runs(source: Source, cells: Collection[str], seeds: Collection[int], rule: str) -> list[StoredRun]:
    """The finished runs of some cells (``DATASET/SCENARIO/CLIENTS/METHOD``) or with some ids.

    Runs of a cell whose models are not kept, as those with newcomers, are left out as long as others remain.

    Raises:
        RequestError: there is no such cell or id, none of its runs is done, or no models are kept of them.
    """
    runs = source.runs()
    chosen_runs: dict[str, StoredRun] = {}
    for cell in cells:
        if cell.isdecimal():
            rows = runs[(runs["id"].astype(str) == cell) & (runs["origin"] == OWN)]
        else:
            rows = rows_of_cell(runs, cell)
        if rows.empty:
            raise RequestError(f"no run {cell}: 'bench runs list' prints the ids")
        rows = rows[rows["seed"].isin(seeds)] if seeds else rows
        done_rows = rows[rows["state"] == "done"].drop_duplicates("spec_hash")
        if done_rows.empty:
            states = ", ".join(f"{count} {state}" for state, count in Counter(rows["state"]).items())
            raise RequestError(f"{cell}: expected a finished run, got {states or 'none of these seeds'}")
        chosen_runs |= _runs_with_models(source, done_rows, rule)
    return list(chosen_runs.values())


def _runs_with_models(source: Source, rows: pd.DataFrame, rule: str) -> dict[str, StoredRun]:
    """By spec hash, those of some runs whose models can be kept; raises ``RequestError`` if there is none."""
    from bench.engine.kept_models import refuse
    from bench.errors import NotApplicableError

    kept_runs: dict[str, StoredRun] = {}
    reasons = []
    for run in rows.to_dict("records"):
        spec = RunSpec.model_validate_json(run["spec"])
        try:
            refuse(spec)
        except NotApplicableError as error:
            reasons.append(f"{run_name(run)}: {error}")
            continue
        results = source.client_results(
            [run["id"]], stage="trained", split="test", rule=rule, metric=ACCURACY
        )
        values = zip(results["client"], results["value"], results["samples"], strict=True)
        counts = {int(client): (round(value * samples), int(samples)) for client, value, samples in values}
        kept_runs[spec.hash] = StoredRun(run_name(run), spec, run["partition_hash"], counts)
    if not kept_runs:
        raise RequestError(reasons[0])
    return kept_runs


@dataclass(frozen=True)
class Saving:
    """Makes runs as a sweep's worker does, and writes the models of those that finish below ``folder``, each
    run's in a folder called by its spec's hash.
    """

    folder: Path
    rule: str = "best_val"

    def __call__(self, order: Order) -> RunResult:
        """The outcome of an order. Models that cannot be written are said so and left out: the run stays."""
        from bench.engine.kept_models import KeptModels

        models = KeptModels(self.rule)
        result = execute(order, kept=models)
        if result.state == "done":
            spec = order.spec
            try:
                write_models(self.folder / spec.hash, spec, result, models)
            except RequestError as error:
                print(f"no models of {spec.hash}: {error}", file=sys.stderr)
        return result

    def summary(self, specs: Sequence[RunSpec]) -> str:
        """How many of some runs have their models here."""
        count = sum((self.folder / spec.hash / MANIFEST).exists() for spec in specs)
        hint = "" if count == len(specs) else "; bench runs save-models writes those of stored runs"
        return f"models of {count:,} of {len(specs):,} runs are in {self.folder}{hint}"

    def again(
        self, runs: Sequence[StoredRun], roots: tuple[Path, ...], slots: Slots, reporter: Reporter
    ) -> Iterator[SavedModels]:
        """Make stored runs again, write their models, and say of each whether they score what is stored.

        Raises:
            RequestError: the folder cannot be written, or a federation cannot be what a spec says.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            scratch = tempfile.TemporaryDirectory(prefix=".", dir=self.folder)
        except OSError as error:
            raise RequestError(
                f"--out {self.folder}: cannot write there: {error.strerror or error}"
            ) from None
        with scratch as name:
            saving = Saving(Path(name), self.rule)
            with temporary_runs((run.spec for run in runs), roots, slots, reporter, saving) as store:
                outcomes = store.runs().set_index("spec_hash")[["state", "reason"]].to_dict("index")
            for run in runs:
                folder = saving.folder / run.spec.hash
                if not (folder / MANIFEST).exists():
                    outcome = outcomes.get(run.spec.hash, {"state": "not made", "reason": ""})
                    text = f"no models: {outcome['state']} {outcome['reason']}".strip()
                    yield SavedModels(run.name, "", False, text)
                    continue
                yield self._put(folder, run)

    def _put(self, folder: Path, run: StoredRun) -> SavedModels:
        """Compare the models in a folder with what is stored of their run, and put them in their place."""
        manifest = json.loads((folder / MANIFEST).read_text())
        difference_count = _compare(manifest, run.tested)
        clients = len(manifest["clients"])
        place = self.folder / run.spec.hash
        _write(folder, manifest)
        with replacing_folder(place) as new_folder:
            for path in folder.iterdir():
                path.rename(new_folder / path.name)
        text = f"{clients} models in {place}"
        problem = f"{difference_count} with another test accuracy than stored" if difference_count else ""
        if manifest["partition_hash"] != run.partition_hash:
            problem = "of other clients than the stored run's"
        text = f"{text}, {problem or 'test accuracies as stored'}"
        return SavedModels(run.name, str(place), not problem, text)
