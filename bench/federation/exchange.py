"""Imports the clients of a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bench.dataset import DATASETS
from bench.errors import RequestError
from bench.federation import assignment_file, scenarios
from bench.federation.assignment_file import CORRECT, AssignmentFile
from bench.federation.build import assemble, check_request, check_training, keep, kept_path
from bench.federation.prepared import Prepared, prepare
from bench.federation.types import SPLITS, Federation
from bench.spec import FederationKey


def _request(path: Path, file: AssignmentFile, named: Mapping[str, Any]) -> FederationKey:
    """Return the request that a file's clients answer, from the values of the file and of the user.

    The data set gives the defaults of seed and split.

    Raises:
        RequestError: file and user contradict each other, or a value is missing.
    """
    parts: dict[str, Any] = {"clients": len(file.assignment.ids), **file.said}
    for name, value in named.items():
        if value is not None and parts.setdefault(name, value) != value:
            option = name.replace("_", "-")
            raise RequestError(f"{path}: {name} and --{option} differ: {parts[name]} there, {value} here")
    for name in ("dataset", "scenario"):
        if name not in parts:
            raise RequestError(f"{path} does not say its {name}: name it with --{name}")
    protocol = DATASETS.named(parts["dataset"]).protocol
    for name in ("partition_seed", "split"):
        parts.setdefault(name, getattr(protocol, name))
    request = FederationKey(**parts)
    check_request(request)
    return request


def _problems(file: AssignmentFile, prepared: Prepared, disjoint: bool) -> Iterator[str]:
    """The problems of a file's items.

    Every client needs items of the data set, each once and in the same role as at other clients.
    """
    name, items = prepared.dataset.name, prepared.items
    sizes = [len(ids) for ids in file.assignment.ids]
    if min(sizes) == 0:
        yield f"client {np.argmin(sizes)} has no items"
    ids = np.concatenate(file.assignment.ids)
    client, role = np.repeat(np.arange(len(sizes)), sizes), np.concatenate(file.assignment.roles)
    table = pd.DataFrame({"client": client, "item": ids, "role": role})
    is_at_several = table.duplicated("item")
    for flaw, mask in (
        (f"is unknown: items of {name} must lie in 0 to {items - 1}", (ids < 0) | (ids >= items)),
        ("is there twice", table.duplicated(["client", "item"])),
        ("is at another client, too", is_at_several & disjoint),
        ("has another role at another client", is_at_several & ~table.duplicated(["item", "role"])),
    ):
        if mask.any():
            row = table[mask].iloc[0]
            yield f"item {row['item']} of client {row['client']} {flaw}"
    for number, split in enumerate(SPLITS):
        if number not in role:
            yield f"no client has a {split} item"


@dataclass(frozen=True, eq=False)
class ImportedClients:
    """Clients that were imported, the request whose runs use them, and the file that keeps them."""

    federation: Federation
    request: FederationKey
    kept: Path

    @property
    def summary(self) -> tuple[str, ...]:
        """Lines for people: the clients, and the runs that use them."""
        federation, request = self.federation, self.request
        sizes = [len(client.ids) for client in federation.clients]
        shares = ",".join(f"{share:g}" for share in request.split)
        return (
            f"{len(federation)} clients of {federation.dataset}, {federation.scenario}, with {min(sizes)} to "
            f"{max(sizes)} items, hash {federation.hash}",
            f"used by runs of protocol.partition_seed={request.partition_seed} and protocol.split=[{shares}]",
            f"kept in {self.kept}; delete that file to draw clients again",
        )


def install(
    path: Path, roots: tuple[Path, ...] | None = None, named: Mapping[str, Any] | None = None
) -> ImportedClients:
    """Check a file's clients and keep them. Runs of their request then use exactly these clients.

    The request is the data set, scenario, number of clients, partition seed and split. ``named`` has the
    values that the user gives; a value may be None. A client may lack validation or test items, as a drawn
    client may. It does not count in the mean over clients of these items.

    Raises:
        RequestError: the file cannot be read, contradicts what the user says, does not fit the data set
            or its own hash, or has clients that the scenario does not allow.
    """
    file = assignment_file.read(path)
    request = _request(path, file, named or {})
    prepared = prepare(request.dataset, roots)
    recipe = scenarios.find(request.scenario, request.dataset, prepared.dataset.family)
    if request.clients % recipe.samples:
        raise RequestError(
            f"{path}: {request.clients} clients, but {request.scenario} takes {recipe.samples} of every "
            f"part: expected a multiple; {CORRECT}"
        )
    for problem in _problems(file, prepared, recipe.disjoint):
        raise RequestError(f"{path}: {problem}; {CORRECT}")
    provenance = file.provenance | {
        "made": "imported",
        "partition_seed": request.partition_seed,
        "split": list(request.split),
    }
    federation = assemble(prepared, request.scenario, file.assignment, provenance)
    if file.hash not in (None, federation.hash):
        raise RequestError(
            f"{path}: its hash is {str(file.hash)[:64]}, but what it holds on this data set has "
            f"{federation.hash}; {CORRECT}"
        )
    check_training(federation)
    recipe.check(prepared.data, file.assignment)
    stored_path = kept_path(request, prepared.checksum)
    keep(stored_path, federation)
    return ImportedClients(federation, request, stored_path)
