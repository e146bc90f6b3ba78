"""Bits of short runs of every method: a table of hashes that a change of structure must not move.

``python tests/bits.py`` compares with ``bits.json`` beside it and says which runs moved;
``--write`` replaces the table. A run is four rounds, saved after the second one and taken up again,
on toys of every family and on Cora in two scenarios. The bits are those of one kind of processor
with one thread: on another one, write the table from the code before the change first.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

from bench.contract.toys import linked, make_spec, random_federation, random_images
from bench.engine.checkpoint import Checkpoint
from bench.engine.methods import METHODS
from bench.engine.run import Run
from bench.errors import NotApplicableError
from bench.federation.build import build
from bench.federation.types import Federation
from bench.resolve import resolve, run_of
from bench.spec import RunSpec

TABLE = Path(__file__).with_name("bits.json")
ROUNDS = 4
SHORT = {"generator_epochs": 3, "federated_epochs": 2, "warm_up_epochs": 4}
"""Hyper-parameters of the runs on Cora that shorten what precedes the first round."""


def toys() -> dict[str, Federation]:
    """A small federation of every family of data."""
    graph = linked(random_federation((24, 40, 9, 31), seed=11, width=30))
    return {"graph": graph, "hypergraph": replace(graph, family="hypergraph"), "images": random_images()}


def toy_spec(method: str, family: str, federation: Federation) -> RunSpec:
    """A short run of a method on the toy of a family."""
    client: dict[str, Any] = {"hidden": 8}
    if family == "hypergraph":
        client["model"] = "hgnn"
    if family == "images":
        client |= {"model": "cnn", "batch_size": 8, "optimizer": "sgd", "weight_decay": 0.0, "dropout": 0.0}
    own = METHODS.named(method).settings
    client |= {key.removeprefix("client."): value for key, value in own.items() if "client." in key}
    return make_spec(method, federation, client=client, rounds=ROUNDS)


def cases() -> Iterator[tuple[str, RunSpec, Federation]]:
    """Name, spec and federation of every run."""
    federations = toys()
    cora = {
        ("non-overlapping", 5): build("cora", "non-overlapping", 5, 123, (40.0, 30.0, 30.0), ()),
        ("overlapping", 10): build("cora", "overlapping", 10, 123, (40.0, 30.0, 30.0), ()),
    }
    for method, kind in METHODS.all().items():
        if run_of(kind) != method:
            continue
        for family, federation in federations.items():
            if family in kind.families:
                yield f"{method} toy-{family}", toy_spec(method, family, federation), federation
        if "graph" not in kind.families:
            continue
        for (scenario, clients), federation in cora.items():
            settings: dict[str, Any] = {"protocol.rounds": ROUNDS, "protocol.local_epochs": 2}
            settings |= {
                f"method.{name}": value for name, value in SHORT.items() if name in kind.Hyper.model_fields
            }
            spec = resolve("cora", scenario, clients, method, 0, settings)
            yield f"{method} cora-{scenario}", spec, federation


def digest(run: Run) -> str:
    """Hash over models, counts, artefacts and bytes of a run, and one over its logged losses."""
    hasher = hashlib.sha256()
    arrays = {f"model {name}": value.numpy() for name, value in run.own.items()}
    arrays |= {f"counts {stage} {split}": value for (stage, split), value in run.correct().items()}
    arrays |= {f"artefact {name}": value for name, value in run.artefacts().items()}
    for name, value in sorted(arrays.items()):
        hasher.update(f"{name} {value.dtype} {value.shape}".encode())
        hasher.update(np.ascontiguousarray(value).tobytes())
    hasher.update(f"{run.traffic.bytes_up} {run.traffic.bytes_down}".encode())
    return f"{hasher.hexdigest()[:16]} loss {hashlib.sha256(run.loss.tobytes()).hexdigest()[:8]}"


def play(spec: RunSpec, federation: Federation) -> str:
    """The digest of a run that is saved after its second round and goes on in another object."""
    try:
        with TemporaryDirectory() as folder:
            checkpoint = Checkpoint(Path(folder) / "run.ckpt", identity="bits")
            first = Run(spec, federation)
            first.warm_up()
            for index in range(min(2, spec.protocol.rounds)):
                first.step(index)
            checkpoint.save(first, index, 0.0)
            second = Run(spec, federation)
            assert checkpoint.resume(second) is not None
        for index in range(2, spec.protocol.rounds):
            second.step(index)
    except NotApplicableError:
        return "not applicable"
    return digest(second)


def main() -> int:
    """Compare or write the table; 1 where a hash moved."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="replace the table")
    parser.add_argument("--only", default="", help="runs whose name holds this text")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    table = {name: play(spec, federation) for name, spec, federation in cases() if asked.only in name}
    if asked.write:
        TABLE.write_text(json.dumps(table, indent=1) + "\n")
        return 0
    before = {name: bits for name, bits in json.loads(TABLE.read_text()).items() if asked.only in name}
    moved = [name for name in before if table.get(name) != before[name]]
    for name in moved:
        print(f"moved: {name}: {before[name]} -> {table.get(name)}")
    for name in table.keys() - before.keys():
        print(f"new: {name}: {table[name]}")
    print(f"{len(before) - len(moved)} of {len(before)} runs are bit-equal")
    return 1 if moved else 0


if __name__ == "__main__":
    sys.exit(main())
