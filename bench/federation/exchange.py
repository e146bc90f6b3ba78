"""Clients to and from elsewhere: a federation written as one small file, and a file's clients taken in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.dataset import Dataset
from bench.errors import RequestError
from bench.federation import assignment_file, cache, scenarios
from bench.federation.assignment_file import CORRECT, AssignmentFile
from bench.federation.build import assemble
from bench.federation.prepared import Prepared, prepare
from bench.federation.scenario import Assignment, Scenario, Split
from bench.federation.splits import check_split
from bench.federation.statistics import Holdings, holdings
from bench.federation.types import ROLE_NAMES, SPLITS, TRAIN, Federation

TOLERANCE = 5.0
"""By how many percentage points the roles of a file may be off the request's split without a word."""


def export_federation(federation: Federation, path: Path) -> None:
    """Write the federation to ``path``; an existing file is replaced once the new one is complete.

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


@dataclass(frozen=True)
class PartialRequest:
    """The request that clients in a file stand for, as far as user or file names it; None: not named."""

    dataset: str | None = None
    scenario: str | None = None
    clients: int | None = None
    partition_seed: int | None = None
    split: Split | None = None


def _merged(path: Path, file: AssignmentFile, partial: PartialRequest) -> PartialRequest:
    """What file and user name together.

    Raises:
        RequestError: they contradict each other.
    """
    own = PartialRequest(
        file.dataset, file.scenario, len(file.assignment.ids), file.partition_seed, file.split
    )
    both: dict[str, Any] = {}
    for name in (field.name for field in fields(PartialRequest)):
        said, asked = getattr(own, name), getattr(partial, name)
        if said is not None and asked is not None and said != asked:
            option = name.replace("_", "-")
            raise RequestError(f"{path}: {name} and --{option} differ: {said} there, {asked} here")
        both[name] = asked if said is None else said
    return PartialRequest(**both)


def _request(path: Path, merged: PartialRequest, dataset: type[Dataset]) -> cache.Request:
    """The request that the clients stand for; the data set has the defaults of seed and split."""
    if merged.scenario is None:
        raise RequestError(f"{path} does not say its scenario: name it with --scenario")
    seed = dataset.protocol.partition_seed if merged.partition_seed is None else merged.partition_seed
    if seed < 0:
        raise RequestError(f"{path}: its partition seed is {seed}, expected 0 or more; {CORRECT}")
    split = merged.split or dataset.protocol.split
    check_split(split)
    assert merged.clients is not None
    return cache.Request(dataset.name, merged.scenario, merged.clients, seed, split)


class _Check:
    """The clients of a file against its data set; whatever is wrong is a ``RequestError``."""

    def __init__(self, path: Path, prepared: Prepared) -> None:
        self.path = path
        self.prepared = prepared

    def wrong(self, what: str) -> RequestError:
        return RequestError(f"{self.path}: {what}; {CORRECT}")

    def require(self, holds: bool, what: str) -> None:
        if not holds:
            raise self.wrong(what)

    def items(self, assignment: Assignment, disjoint: bool) -> None:
        """Every client has items of the data set, each once and in the role that it has elsewhere."""
        items, sizes = self.prepared.items, [len(ids) for ids in assignment.ids]
        self.require(min(sizes) > 0, f"client {np.argmin(sizes)} has no items")
        ids, roles = np.concatenate(assignment.ids), np.concatenate(assignment.roles)
        client = np.repeat(np.arange(len(sizes)), sizes)
        for first in np.flatnonzero((ids < 0) | (ids >= items))[:1]:
            raise self.wrong(
                f"client {client[first]} has the item {ids[first]}, which is unknown: items of "
                f"{self.prepared.dataset.name} must lie in 0 to {items - 1}"
            )
        order = np.lexsort((client, ids))
        same = np.flatnonzero(np.diff(ids[order]) == 0)
        one, other = order[same], order[same + 1]
        for pairs, what in (
            (client[one] == client[other], "has an item twice"),
            (np.full(len(same), disjoint), "shares an item"),
            (roles[one] != roles[other], "has an item in another role"),
        ):
            for a, b in zip(one[pairs][:1], other[pairs][:1], strict=True):
                raise self.wrong(
                    f"client {client[b]} {what}: {ids[a]}, which is {ROLE_NAMES[roles[a]]} at client "
                    f"{client[a]} and {ROLE_NAMES[roles[b]]} at client {client[b]}"
                )

    def clients(self, number: int, scenario: str, recipe: Scenario[Any]) -> None:
        """The scenario can have so many clients."""
        self.require(
            number % recipe.samples == 0,
            f"{number} clients, but {scenario} takes {recipe.samples} of every part: expected a multiple",
        )

    def labels(self, file: AssignmentFile) -> None:
        """Labels, where there are some, are those of the data set."""
        same = file.labels is None or all(
            np.array_equal(labels, self.prepared.data.labels[ids])
            for labels, ids in zip(file.labels, file.assignment.ids, strict=True)
        )
        self.require(same, f"'labels' are not those of the data set {self.prepared.dataset.name}")

    def edges(self, edges: tuple[NDArray[np.int64], ...] | None, federation: Federation) -> None:
        """Edges, where there are some, are the ones that the data set has among each client's nodes."""
        if edges is None:
            return
        self.require(federation.family == "graph", f"{federation.family} data has no 'edges'")
        same = len(edges) == len(federation) and all(
            client.edges is not None and np.array_equal(part, client.edges)
            for part, client in zip(edges, federation.clients, strict=True)
        )
        self.require(same, "'edges' are not those of the data set among each client's nodes")

    def federation(self, file: AssignmentFile, federation: Federation) -> None:
        """What the file holds makes the federation that it names, and one that can be evaluated."""
        self.edges(file.edges, federation)
        self.require(
            file.hash in (None, federation.hash),
            f"its hash is {str(file.hash)[:64]}, but what it holds on this data set has {federation.hash}",
        )
        for number, client in enumerate(federation.clients):
            self.require(client.count(TRAIN) > 0, f"client {number} has no item to train on")
        for role, name in enumerate(SPLITS):
            self.require(
                any(client.count(role) for client in federation.clients), f"no client has a {name} item"
            )


def import_federation(
    path: Path, roots: tuple[Path, ...] | None = None, partial: PartialRequest | None = None
) -> Federation:
    """The federation of a file, made from the data set and checked against all that the file says.

    Single clients may lack validation or test items, as clients that are drawn may; they do not count in
    the means over clients of those items.

    Raises:
        RequestError: the file cannot be read, it contradicts what the user states or does not fit the
            data set at hand, its hash is not the one of what it holds, or its clients are none that the
            scenario allows.
    """
    file = assignment_file.read(path)
    merged = _merged(path, file, partial or PartialRequest())
    if merged.dataset is None:
        raise RequestError(f"{path} does not say its data set: name it with --dataset")
    prepared = prepare(merged.dataset, roots)
    request = _request(path, merged, prepared.dataset)
    recipe = scenarios.find(request.scenario, request.dataset, prepared.dataset.family)
    check = _Check(path, prepared)
    check.clients(request.clients, request.scenario, recipe)
    check.items(file.assignment, recipe.disjoint)
    check.labels(file)
    provenance = file.provenance | {
        "made": "imported",
        "partition_seed": request.partition_seed,
        "split": list(request.split),
    }
    federation = assemble(prepared, request.scenario, file.assignment, provenance)
    check.federation(file, federation)
    recipe.check(prepared.data, file.assignment)
    return federation


@dataclass(frozen=True, eq=False)
class ImportedClients:
    """Clients that were imported, the request whose runs use them, and the file that keeps them."""

    federation: Federation
    request: cache.Request
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
        """Lines for people: the clients, their items, and the runs that use them from now on."""
        federation, request, holdings = self.federation, self.request, self.holdings
        sizes = " to ".join(map(str, dict.fromkeys(holdings.sizes)))
        shares = ",".join(f"{share:g}" for share in request.split)
        of = f"{federation.dataset}, {federation.scenario}"
        lines = [
            f"{len(federation)} clients of {of}, hash {federation.hash}",
            f"items: {sizes} a client, {holdings.held:,} in all ({_counts(holdings.items)})",
            f"items held by no client: {holdings.unheld:,}; by several: {holdings.shared:,}",
        ]
        if any(holdings.without.values()):
            lines.append(f"clients that lack items of a role: {_counts(holdings.without)}")
        if self.off_split:
            held = ", ".join(f"{share:.0f} % {role}" for role, share in holdings.shares.items())
            split = f"the runs' protocol.split is [{shares}]; --split names another"
            lines.append(f"note: the roles are {held}, but {split}")
        runs = f"protocol.partition_seed={request.partition_seed} and protocol.split=[{shares}]"
        return (
            *lines,
            f"used by runs of {runs}",
            f"kept in {self.kept}; delete that file to draw clients again",
        )


def _counts(numbers: Mapping[str, int]) -> str:
    return ", ".join(f"{number:,} {role}" for role, number in numbers.items())


def install(
    path: Path, roots: tuple[Path, ...] | None = None, partial: PartialRequest | None = None
) -> ImportedClients:
    """Import a file and keep it, so that runs of its request use exactly these clients.

    The request is the data set, scenario, number of clients, partition seed and split. Deleting the file
    under ``BENCH_HOME`` that keeps them makes runs draw their own clients again. Raises as
    ``import_federation`` does.
    """
    federation = import_federation(path, roots, partial)
    prepared = prepare(federation.dataset, roots)
    file = AssignmentFile.of(federation)
    assert file.partition_seed is not None
    assert file.split is not None
    request = cache.Request(
        federation.dataset, federation.scenario, len(federation), file.partition_seed, file.split
    )
    kept = cache.imported_path(request, prepared.checksum)
    with cache.lock(kept):
        cache.write(kept, file)
    return ImportedClients(federation, request, holdings(federation, prepared.items), kept)
