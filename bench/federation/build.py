"""Makes the clients of a request: data set, scenario, number of clients, seed and split.

Drawn and imported assignments are kept under ``BENCH_HOME/partitions``, one small file each, in the form of
``bench.federation.assignment_file`` with the federation's hash. The clients' tensors are taken from the data
again.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from bench.errors import RequestError
from bench.federation import assignment_file, scenarios
from bench.federation.clients import assigned_clients
from bench.federation.identity import federation_hash
from bench.federation.prepared import Prepared, prepare
from bench.federation.scenario import Assignment, Split
from bench.federation.splits import check_split
from bench.federation.types import TRAIN, Federation
from bench.paths import home
from bench.spec import LAST_SEED, FederationKey

FORMAT = 1
"""The version of the names of kept files, not of the files."""


def assemble(
    prepared: Prepared, scenario: str, assignment: Assignment, provenance: dict[str, Any]
) -> Federation:
    """The federation of an assignment, with its hash."""
    name, classes = prepared.dataset.name, prepared.data.classes
    clients = assigned_clients(prepared.data, assignment)
    digest = federation_hash(name, scenario, classes, clients, prepared.features)
    return Federation(name, scenario, prepared.dataset.family, classes, clients, digest, provenance)


def check_training(federation: Federation) -> None:
    """Refuse a federation in which a client has nothing to train on."""
    for number, client in enumerate(federation.clients):
        if client.count(TRAIN) == 0:
            raise RequestError(
                f"client {number} of {len(federation)} ({federation.dataset}, {federation.scenario}) has "
                f"{len(client.ids)} items and none of them to train on; ask for fewer clients, a larger "
                f"training share or another protocol.partition_seed"
            )


def kept_path(request: FederationKey, checksum: str, recipe: dict[str, Any] | None = None) -> Path:
    """Return the file for a request's assignment: drawn by a ``recipe``, or imported if ``recipe`` is None.

    ``checksum`` is the checksum of the data.
    """
    content = {"format": FORMAT, "data": checksum, "recipe": recipe or {}} | request._asdict()
    content["split"] = [float(share) for share in request.split]
    key = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    folder = home() / "partitions" / ("imported" if recipe is None else "")
    return folder / f"{key}.npz"


def keep(path: Path, federation: Federation) -> None:
    """Keep a federation's assignment."""
    path.parent.mkdir(parents=True, exist_ok=True)
    assignment_file.write(path, federation)


def _restore(path: Path, prepared: Prepared, scenario: str) -> Federation | None:
    """The federation of a kept assignment; None if there is none or if it is damaged."""
    try:
        file = assignment_file.read(path)
        federation = assemble(prepared, scenario, file.assignment, file.provenance)
    except (RequestError, IndexError):
        return None
    return federation if federation.hash == file.hash else None


def check_request(request: FederationKey) -> None:
    """Refuse an invalid split or partition seed."""
    check_split(request.split)
    if not 0 <= request.partition_seed <= LAST_SEED:
        raise RequestError(f"partition seed: expected 0 to {LAST_SEED}, got {request.partition_seed}")


def federate(
    prepared: Prepared, scenario: str, clients: int, partition_seed: int, split: Split
) -> Federation:
    """The clients of a data set that has been read. See ``build``."""
    name, items = prepared.dataset.name, prepared.items
    recipe = scenarios.find(scenario, name, prepared.dataset.family)
    request = FederationKey(name, scenario, clients, partition_seed, split)
    check_request(request)
    if not 1 <= clients <= items:
        noun = "images" if prepared.dataset.family == "images" else "nodes"
        raise RequestError(f"clients: expected 1 to {items}, since {name} has {items} {noun}, got {clients}")
    imported_path = kept_path(request, prepared.checksum)
    if imported_path.exists():
        federation = _restore(imported_path, prepared, scenario)
        if federation is None:
            raise RequestError(
                f"the imported federation {imported_path} is damaged or of an earlier version: "
                f"import it again or delete it"
            )
        return federation
    options = recipe.recipe(partition_seed)
    drawn_path = kept_path(request, prepared.checksum, options)
    federation = _restore(drawn_path, prepared, scenario)
    if federation is not None:
        return federation
    provenance = {"made": "drawn", "partition_seed": partition_seed, "split": list(split)}
    provenance |= {"data": prepared.checksum, "numpy": np.__version__, **options}
    assignment = recipe.draw(prepared.data, clients, partition_seed, split)
    recipe.check(prepared.data, assignment)
    federation = assemble(prepared, scenario, assignment, provenance)
    check_training(federation)
    keep(drawn_path, federation)
    return federation


def build(
    dataset: str,
    scenario: str,
    clients: int,
    partition_seed: int,
    split: Split,
    roots: tuple[Path, ...] | None = None,
) -> Federation:
    """The federation of a request: the imported one if there is one, else a drawn one.

    The arguments up to ``split`` are ``RunSpec.federation_key``. ``split`` is in percent. ``roots`` are
    the folders that are searched for raw files (default: ``bench.paths.data_roots``). Draws are cached
    under ``BENCH_HOME/partitions``.

    Raises:
        RequestError: an unknown data set or scenario, a scenario of another family, a wrong split, more
            clients than items, or a client without a training item.
    """
    return federate(prepare(dataset, roots), scenario, clients, partition_seed, split)
