"""A result database in memory, filled by hand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Unpack

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bench.engine import NUMERICS
from bench.engine.methods import METHODS
from bench.spec import Protocol, RunSpec
from bench.store.filters import Readings

RUN_COLUMNS = (
    "cell",
    "id",
    "spec_hash",
    "spec",
    "dataset",
    "scenario",
    "clients",
    "method",
    "seed",
    "state",
    "reason",
    "partition_hash",
    "environment_id",
    "device",
    "rounds",
    "seconds_total",
    "seconds_server",
    "peak_memory",
    "bytes_up",
    "bytes_down",
    "bundle",
    "bundle_state",
    "method_numerics",
    "engine_numerics",
)
RESULT_COLUMNS = ("run_id", "client", "stage", "split", "rule", "metric", "value", "samples")

CORA = Protocol(rounds=100, local_epochs=3)


class FakeDatabase:
    """Answers as ``bench.store.Store`` does."""

    def __init__(self) -> None:
        self._runs: list[dict[str, Any]] = []
        self._results: list[dict[str, Any]] = []
        self._curves: dict[tuple[int, str, str], NDArray[np.int32]] = {}
        self._confusions: dict[tuple[int, str, str], NDArray[np.int32]] = {}
        self._artefacts: dict[tuple[int, str], NDArray[Any]] = {}

    def add(
        self,
        method: str,
        seed: int,
        correct: Sequence[int] | None,
        *,
        samples: Sequence[int] | None = None,
        dataset: str = "cora",
        scenario: str = "non-overlapping",
        clients: int = 10,
        protocol: Protocol = CORA,
        hyper: dict[str, Any] | None = None,
        stages: Iterable[str] = ("received", "trained"),
        rules: Iterable[str] = ("best_val", "last", "best_test", "client_best_val"),
        state: str = "done",
        reason: str = "",
        curve: Sequence[Sequence[int]] | None = None,
        shift: dict[tuple[str, str], int] | None = None,
        spec: RunSpec | None = None,
        seconds_total: float = 0.0,
        seconds_server: float = 0.0,
        peak_memory: int = 0,
        bytes_up: int = 0,
        bytes_down: int = 0,
        bundle: str = "",
        bundle_state: str = "",
        artefacts: dict[str, Any] | None = None,
        validation: Sequence[int] | None = None,
        numerics: dict[str, int] | None = None,
        partition: str = "abcdef0123456789",
        confusion: Any = None,
    ) -> int:
        """Add a run whose client ``c`` has ``correct[c]`` of ``samples[c]`` (100 unless given) right.

        ``shift[stage, rule]`` is added to every client's count under that stage and rule. ``spec``
        replaces everything that names the run; ``validation`` are correct ones of 100 each; ``numerics``
        are the versions of ``method`` and ``engine``, the installed ones unless given; ``partition`` is the
        hash of the clients; ``confusion`` are the test items by true and predicted class, of every reading.
        """
        spec = spec or RunSpec(
            dataset=dataset,
            scenario=scenario,
            clients=clients,
            method=method,
            seed=seed,
            protocol=protocol,
            hyper=hyper or {},
        )
        run = len(self._runs) + 1
        kind = METHODS.all().get(spec.method)
        made = {"method": kind.numerics if kind else 1, "engine": NUMERICS, **(numerics or {})}
        self._runs.append(
            {
                "id": run,
                "spec_hash": spec.hash,
                "spec": spec.canonical(),
                "cell": spec.cell,
                "dataset": spec.dataset,
                "scenario": spec.scenario,
                "clients": spec.clients,
                "method": spec.method,
                "seed": spec.seed,
                "state": state,
                "reason": reason,
                "partition_hash": partition if state == "done" else "",
                "environment_id": 1,
                "device": "cpu",
                "rounds": spec.protocol.rounds,
                "seconds_total": seconds_total,
                "seconds_server": seconds_server,
                "peak_memory": peak_memory,
                "bytes_up": bytes_up,
                "bytes_down": bytes_down,
                "bundle": bundle,
                "bundle_state": bundle_state,
                "method_numerics": made["method"],
                "engine_numerics": made["engine"],
            }
        )
        for name, array in (artefacts or {}).items():
            self._artefacts[run, name] = np.array(array, np.float32)
        if correct is None:
            return run
        sizes = list(samples or [100] * len(correct))
        for stage in stages:
            for rule in rules:
                if confusion is not None:
                    self._confusions[run, stage, rule] = np.array(confusion, np.int32)
                more = (shift or {}).get((stage, rule), 0)
                self._results.extend(
                    {
                        "run_id": run,
                        "client": client,
                        "stage": stage,
                        "split": "test",
                        "rule": rule,
                        "metric": "accuracy",
                        "value": (right + more) / size,
                        "samples": size,
                    }
                    for client, (right, size) in enumerate(zip(correct, sizes, strict=True))
                )
                self._results.extend(
                    {
                        "run_id": run,
                        "client": client,
                        "stage": stage,
                        "split": "val",
                        "rule": rule,
                        "metric": "accuracy",
                        "value": right / 100,
                        "samples": 100,
                    }
                    for client, right in enumerate(validation or ())
                )
            if curve is not None:
                self._curves[run, stage, "test"] = np.array(curve, np.int32)
        return run

    def runs(self, **filters: Any) -> pd.DataFrame:
        assert not filters
        return pd.DataFrame(self._runs, columns=list(RUN_COLUMNS))

    def client_results(self, run_ids: Iterable[int], **only: Unpack[Readings]) -> pd.DataFrame:
        frame = pd.DataFrame(self._results, columns=list(RESULT_COLUMNS))
        keep = frame["run_id"].isin(list(run_ids))
        for name, value in only.items():
            if value is not None:
                keep &= frame[name] == value
        return frame[keep].reset_index(drop=True)

    def curve(self, run_id: int, stage: str, split: str) -> NDArray[np.int32]:
        return self._curves[run_id, stage, split]

    def curves(self, run_ids: Iterable[int], split: str) -> dict[tuple[int, str], NDArray[np.int32]]:
        wanted = set(run_ids)
        return {
            (run, stage): counts
            for (run, stage, kept), counts in self._curves.items()
            if kept == split and run in wanted
        }

    def confusions(self, run_ids: Iterable[int]) -> dict[tuple[int, str, str], NDArray[np.int32]]:
        wanted = set(run_ids)
        return {key: counts for key, counts in self._confusions.items() if key[0] in wanted}

    def artefact(self, run_id: int, name: str) -> NDArray[Any]:
        return self._artefacts[run_id, name]

    def environments(self) -> pd.DataFrame:
        text = '{"processor":"A_CPU","threads":1,"python":"3.11.0","packages":{"torch":"2.13.0"}}'
        return pd.DataFrame([{"id": 1, "hash": "e", "description": text}])
