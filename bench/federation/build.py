"""Makes the clients of a request: data set, scenario, number of clients, seed and split."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from bench.data import Graph, Hypergraph
from bench.errors import RequestError
from bench.federation import cache, scenarios
from bench.federation.assignment_file import AssignmentFile
from bench.federation.graph import graph_clients
from bench.federation.hypergraph import hypergraph_clients
from bench.federation.identity import federation_hash
from bench.federation.images import image_clients
from bench.federation.prepared import Prepared, prepare
from bench.federation.scenario import Assignment, Split
from bench.federation.splits import check_split
from bench.federation.types import TRAIN, Client, Federation
from bench.registry import blaming
from bench.spec import LAST_SEED, FederationKey


def _clients(prepared: Prepared, assignment: Assignment) -> tuple[Client, ...]:
    if isinstance(prepared.data, Graph):
        return graph_clients(prepared.data, assignment)
    if isinstance(prepared.data, Hypergraph):
        return hypergraph_clients(prepared.data, assignment)
    return image_clients(prepared.data, assignment)


def assemble(
    prepared: Prepared, scenario: str, assignment: Assignment, provenance: dict[str, Any]
) -> Federation:
    """The federation of an assignment, with its hash."""
    name, classes = prepared.dataset.name, prepared.data.classes
    clients = _clients(prepared, assignment)
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


def _restore(path: Path, prepared: Prepared, scenario: str) -> Federation | None:
    """The federation of a stored assignment; None if there is none or if it is damaged."""
    entry = cache.load(path)
    if entry is None:
        return None
    ids = np.concatenate(entry.assignment.ids)
    if ids.size == 0 or ids.min() < 0 or ids.max() >= prepared.items:
        return None
    federation = assemble(prepared, scenario, entry.assignment, entry.provenance)
    return federation if federation.hash == entry.hash else None


def federate(
    prepared: Prepared, scenario: str, clients: int, partition_seed: int, split: Split
) -> Federation:
    """The clients of a data set that has been read. See ``build``."""
    name = prepared.dataset.name
    recipe = scenarios.find(scenario, name, prepared.dataset.family)
    check_split(split)
    if not 1 <= clients <= prepared.items:
        noun = "images" if prepared.dataset.family == "images" else "nodes"
        raise RequestError(
            f"clients: expected 1 to {prepared.items}, since {name} has {prepared.items} {noun}, "
            f"got {clients}"
        )
    if not 0 <= partition_seed <= LAST_SEED:
        raise RequestError(f"partition seed: expected 0 to {LAST_SEED}, got {partition_seed}")
    request = FederationKey(name, scenario, clients, partition_seed, split)
    path_of_import = cache.imported_path(request, prepared.checksum)
    if path_of_import.exists():
        federation = _restore(path_of_import, prepared, scenario)
        if federation is None:
            raise RequestError(
                f"the imported federation {path_of_import} is damaged or of an earlier version: "
                f"import it again or delete it"
            )
        return federation
    options = recipe.recipe(partition_seed)
    path = cache.drawn_path(request, prepared.checksum, options)
    stored_federation = _restore(path, prepared, scenario)
    if stored_federation is not None:
        return stored_federation
    with cache.lock(path):
        stored_federation = _restore(path, prepared, scenario)
        if stored_federation is not None:
            return stored_federation
        provenance = {
            "made": "drawn",
            "partition_seed": partition_seed,
            "split": list(split),
            "data": prepared.checksum,
            "numpy": np.__version__,
            **options,
        }
        with blaming(type(recipe)):
            assignment = recipe.draw(prepared.data, clients, partition_seed, split)
            recipe.check(prepared.data, assignment)
            federation = assemble(prepared, scenario, assignment, provenance)
        check_training(federation)
        cache.write(path, AssignmentFile.of(federation))
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
