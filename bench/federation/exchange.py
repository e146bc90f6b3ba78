"""Exports a federation as one small file, and imports a file's clients."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from bench.dataset import DATASETS
from bench.errors import RequestError
from bench.federation import assignment_file, cache, scenarios
from bench.federation.assignment_file import CORRECT, AssignmentFile
from bench.federation.build import assemble
from bench.federation.prepared import Prepared, prepare
from bench.federation.splits import check_split
from bench.federation.statistics import Holdings, holdings
from bench.federation.types import ROLE_NAMES, SPLITS, TRAIN, Federation
from bench.spec import FederationKey

TOLERANCE = 5.0
"""Percentage points by which a file's roles may differ from the request's split without a note."""


def export_federation(federation: Federation, path: Path) -> None:
    """Write the federation to ``path``. An existing file is replaced when the new one is complete.

    Raises:
        RequestError: the file cannot be written there.
    """
    file = replace(
        AssignmentFile.of(federation),
        labels=tuple(client.labels for client in federation.clients),
        edges=tuple(client.edges for client in federation.clients if client.edges is not None) or None,
    )
    try:
        assignment_file.write(path, file)
    except OSError as error:
        raise RequestError(f"cannot write {path}: {error.strerror or error}") from None


def _request(path: Path, file: AssignmentFile, arguments: Mapping[str, Any]) -> FederationKey:
    """The request that a file's clients are for, from what the file and the user say.

    The data set has the defaults of seed and split.

    Raises:
        RequestError: file and user contradict each other, or say too little.
    """
    parts: dict[str, Any] = {"clients": len(file.assignment.ids)}
    parts |= {name: getattr(file, name) for name in ("dataset", "scenario", "partition_seed", "split")}
    for name, value in parts.items():
        argument = arguments.get(name)
        if value is not None and argument is not None and value != argument:
            option = name.replace("_", "-")
            raise RequestError(f"{path}: {name} and --{option} differ: {value} there, {argument} here")
        parts[name] = argument if value is None else value
    for name, words in (("dataset", "data set"), ("scenario", "scenario")):
        if parts[name] is None:
            raise RequestError(f"{path} does not say its {words}: name it with --{name}")
    protocol = DATASETS.named(parts["dataset"]).protocol
    for name in ("partition_seed", "split"):
        parts[name] = getattr(protocol, name) if parts[name] is None else parts[name]
    if parts["partition_seed"] < 0:
        raise RequestError(
            f"{path}: its partition seed is {parts['partition_seed']}, expected 0 or more; {CORRECT}"
        )
    check_split(parts["split"])
    return FederationKey(**parts)


def _problems_of_items(file: AssignmentFile, prepared: Prepared, disjoint: bool) -> Iterator[str]:
    """The problems of a file's items and labels.

    Every client needs items of the data set, each once and in the same role as at other clients.
    """
    name, items = prepared.dataset.name, prepared.items
    sizes = [len(ids) for ids in file.assignment.ids]
    if min(sizes) == 0:
        yield f"client {np.argmin(sizes)} has no items"
    ids, roles = np.concatenate(file.assignment.ids), np.concatenate(file.assignment.roles)
    client = np.repeat(np.arange(len(sizes)), sizes)
    for index in np.flatnonzero((ids < 0) | (ids >= items)):
        yield (
            f"client {client[index]} has the item {ids[index]}, which is unknown: items of {name} must lie "
            f"in 0 to {items - 1}"
        )
    order = np.lexsort((client, ids))
    repeats = np.flatnonzero(np.diff(ids[order]) == 0)
    former, latter = order[repeats], order[repeats + 1]
    for pairs, flaw in (
        (client[former] == client[latter], "has an item twice"),
        (np.full(len(repeats), disjoint), "shares an item"),
        (roles[former] != roles[latter], "has an item in another role"),
    ):
        for a, b in zip(former[pairs], latter[pairs], strict=True):
            yield (
                f"client {client[b]} {flaw}: {ids[a]}, which is {ROLE_NAMES[roles[a]]} at client {client[a]} "
                f"and {ROLE_NAMES[roles[b]]} at client {client[b]}"
            )
    if file.labels is not None and not np.array_equal(np.concatenate(file.labels), prepared.data.labels[ids]):
        yield f"'labels' are not those of the data set {name}"


def _problems_of_federation(file: AssignmentFile, federation: Federation) -> Iterator[str]:
    """Why a federation is not the one that its file names, or cannot be evaluated."""
    clients = federation.clients
    if file.edges is not None:
        if federation.family != "graph":
            yield f"{federation.family} data has no 'edges'"
        if len(file.edges) != len(clients) or not all(
            client.edges is not None and np.array_equal(part, client.edges)
            for part, client in zip(file.edges, clients, strict=True)
        ):
            yield "'edges' are not those of the data set among each client's nodes"
    if file.hash not in (None, federation.hash):
        yield f"its hash is {str(file.hash)[:64]}, but what it holds on this data set has {federation.hash}"
    for number, client in enumerate(clients):
        if client.count(TRAIN) == 0:
            yield f"client {number} has no item to train on"
    for role, name in enumerate(SPLITS):
        if not any(client.count(role) for client in clients):
            yield f"no client has a {name} item"


@dataclass(frozen=True, eq=False)
class ImportedClients:
    """Clients that were imported, the request whose runs use them, and the file that keeps them."""

    federation: Federation
    request: FederationKey
    holdings: Holdings
    kept: Path

    @property
    def off_split(self) -> bool:
        """Whether the items' roles are clearly not those of the request's split."""
        shares = self.holdings.shares
        return any(
            abs(shares[name] - share) > TOLERANCE
            for name, share in zip(SPLITS, self.request.split, strict=True)
        )

    @property
    def summary(self) -> tuple[str, ...]:
        """Lines for people: the clients, their items, and the runs that use them."""
        federation, request, holdings = self.federation, self.request, self.holdings
        sizes = " to ".join(map(str, dict.fromkeys(holdings.sizes)))
        shares = ",".join(f"{share:g}" for share in request.split)
        name = f"{federation.dataset}, {federation.scenario}"
        lines = [
            f"{len(federation)} clients of {name}, hash {federation.hash}",
            f"items: {sizes} a client, {holdings.held:,} in all ({_counts(holdings.items)})",
            f"items held by no client: {holdings.unheld:,}; by several: {holdings.shared:,}",
        ]
        if any(holdings.without.values()):
            lines.append(f"clients that lack items of a role: {_counts(holdings.without)}")
        if self.off_split:
            role_shares = ", ".join(f"{share:.0f} % {role}" for role, share in holdings.shares.items())
            split = f"the runs' protocol.split is [{shares}]; --split names another"
            lines.append(f"note: the roles are {role_shares}, but {split}")
        runs = f"protocol.partition_seed={request.partition_seed} and protocol.split=[{shares}]"
        return (
            *lines,
            f"used by runs of {runs}",
            f"kept in {self.kept}; delete that file to draw clients again",
        )


def _counts(numbers: Mapping[str, int]) -> str:
    return ", ".join(f"{number:,} {role}" for role, number in numbers.items())


def install(
    path: Path, roots: tuple[Path, ...] | None = None, named: Mapping[str, Any] | None = None
) -> ImportedClients:
    """Check a file's clients and keep them. Runs of their request then use exactly these clients.

    The request is the data set, scenario, number of clients, partition seed and split. ``named`` is what
    the user says of it, None for nothing. Delete the file under ``BENCH_HOME`` that keeps the clients to
    draw clients again. Single clients may lack validation or test items, as drawn clients may. They do
    not count in the means over clients of these items.

    Raises:
        RequestError: the file cannot be read, contradicts what the user says, does not fit the data set
            or its own hash, or has clients that the scenario does not allow.
    """

    def refuse(problems: Iterable[str]) -> None:
        for problem in problems:
            raise RequestError(f"{path}: {problem}; {CORRECT}")

    file = assignment_file.read(path)
    request = _request(path, file, named or {})
    prepared = prepare(request.dataset, roots)
    recipe = scenarios.find(request.scenario, request.dataset, prepared.dataset.family)
    if request.clients % recipe.samples:
        multiple = f"{request.scenario} takes {recipe.samples} of every part"
        refuse([f"{request.clients} clients, but {multiple}: expected a multiple"])
    refuse(_problems_of_items(file, prepared, recipe.disjoint))
    provenance = file.provenance | {
        "made": "imported",
        "partition_seed": request.partition_seed,
        "split": list(request.split),
    }
    federation = assemble(prepared, request.scenario, file.assignment, provenance)
    refuse(_problems_of_federation(file, federation))
    recipe.check(prepared.data, file.assignment)
    stored_path = cache.imported_path(request, prepared.checksum)
    with cache.lock(stored_path):
        cache.write(stored_path, AssignmentFile.of(federation))
    return ImportedClients(federation, request, holdings(federation, prepared.items), stored_path)
