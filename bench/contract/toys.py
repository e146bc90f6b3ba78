"""Small federations, specs and runs, to check methods without a data set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from bench.data import Graph, Ragged
from bench.engine.run import Run
from bench.federation.clients import assigned_clients
from bench.federation.scenario import Assignment
from bench.federation.types import TEST, TRAIN, VALIDATION, Client, Federation
from bench.spec import ClientSettings, Protocol, RunSpec


def both_ways(pairs: Sequence[tuple[int, int]]) -> NDArray[np.int64]:
    """Undirected edges in the form of ``Client.edges``: both directions, sorted."""
    arcs = sorted({arc for u, v in pairs for arc in ((u, v), (v, u)) if u != v})
    return np.array(arcs, np.int64).reshape(-1, 2).T


def random_federation(
    sizes: Sequence[int] = (9, 31, 60, 5, 22),
    *,
    seed: int = 0,
    width: int = 48,
    classes: int = 3,
    lean: float = 0.4,
    isolated: int = 2,
    dense: bool = False,
) -> Federation:
    """Random graphs of unequal sizes. Features and edges tell something of the labels.

    A label is its client's majority with probability ``lean``, else it is uniform. The last ``isolated``
    nodes of the second client have no edge, and one of them has no word. Neighbouring clients share half
    of their ids.
    """
    rng = np.random.default_rng(seed)
    clients = []
    first_id = 0
    for index, nodes in enumerate(sizes):
        labels = np.where(rng.random(nodes) < lean, index % classes, rng.integers(0, classes, nodes))
        is_class_word = np.arange(width)[None, :] % classes == labels[:, None]
        words = (rng.random((nodes, width)) < np.where(is_class_word, 0.2, 0.01)).astype(np.float32)
        linked_nodes = nodes
        if isolated and index == 1:
            words[-1] = 0
            linked_nodes -= isolated
        pairs = []
        for _ in range(3 * linked_nodes):
            u, v = (int(end) for end in rng.integers(0, linked_nodes, 2))
            if labels[u] == labels[v] or rng.random() < 0.2:
                pairs.append((u, v))
        roles = np.array([TRAIN, TRAIN, VALIDATION, TEST, TEST, *rng.integers(0, 3, nodes)], np.int8)[:nodes]
        clients.append(
            Client(
                ids=np.arange(first_id, first_id + nodes),
                labels=labels.astype(np.int64),
                roles=rng.permutation(roles),
                features=words + 0.1 * rng.random(words.shape, np.float32)
                if dense
                else sparse.csr_matrix(words),
                edges=both_ways(pairs),
            )
        )
        first_id += nodes // 2
    return Federation("toy", "random", "graph", classes, tuple(clients), f"random {seed}")


def random_images(
    sizes: Sequence[int] = (6, 9, 20, 12),
    *,
    seed: int = 5,
    side: int = 16,
    classes: int = 3,
    tinted: bool = False,
) -> Federation:
    """Clients with random colour pixels, which are brighter the higher the class.

    ``tinted`` images are dark, and the class says which of the three colours is bright.
    """
    rng = np.random.default_rng(seed)
    clients = []
    for index, count in enumerate(sizes):
        labels = rng.integers(0, classes, count)
        pixels = rng.integers(0, 56 if tinted else 200, (count, 3, side, side))
        if tinted:
            pixels[np.arange(count), labels] += 200
        else:
            pixels += 20 * labels[:, None, None, None]
        roles = np.resize(np.array([TRAIN, TRAIN, VALIDATION, TEST], np.int8), count)
        ids = np.arange(100 * index, 100 * index + count)
        clients.append(Client(ids, labels.astype(np.int64), roles, pixels.astype(np.uint8)))
    digest = f"{'tinted' if tinted else 'random'} images {seed}"
    return Federation("toy", "random", "images", classes, tuple(clients), digest)


def linked(federation: Federation, seed: int = 0) -> Federation:
    """The same clients without common ids, and with edges between them.

    Every closed neighbourhood is a hyperedge. Few of the new edges join different classes.
    """
    clients = federation.clients
    sizes = [len(client.ids) for client in clients]
    owner = np.repeat(np.arange(len(clients)), sizes)
    labels = np.concatenate([client.labels for client in clients])
    pairs: list[tuple[int, int]] = []
    for offset, client in zip(np.cumsum([0, *sizes]).tolist(), clients, strict=False):
        assert client.edges is not None
        pairs.extend((offset + u, offset + v) for u, v in client.edges.T.tolist())
    rng = np.random.default_rng(seed)
    for u, v in rng.integers(0, len(owner), (2 * len(owner), 2)).tolist():
        if owner[u] != owner[v] and (labels[u] == labels[v] or rng.random() < 0.2):
            pairs.append((u, v))
    edges = both_ways(pairs)
    neighbourhoods = {frozenset([v, *edges[1, edges[0] == v].tolist()]) for v in range(len(owner))}
    hyperedges = Ragged.of([np.array(nodes) for nodes in sorted(map(sorted, neighbourhoods))])
    features = sparse.vstack([client.features for client in clients], format="csr")
    graph = Graph(features, labels, edges, federation.classes, hyperedges)
    parts = tuple(np.flatnonzero(owner == number) for number in range(len(clients)))
    roles = tuple(client.roles for client in clients)
    return replace(federation, clients=assigned_clients(graph, Assignment(parts, roles)))


def permuted(federation: Federation, order: Sequence[int]) -> Federation:
    """The same clients in another order."""
    return replace(federation, clients=tuple(federation.clients[index] for index in order))


def make_spec(
    method: str,
    federation: Federation,
    *,
    seed: int = 0,
    hyper: dict[str, Any] | None = None,
    client: dict[str, Any] | None = None,
    **protocol: Any,
) -> RunSpec:
    """A spec with a small client model (hidden 16) and few rounds."""
    return RunSpec(
        dataset=federation.dataset,
        scenario=federation.scenario,
        clients=len(federation),
        method=method,
        seed=seed,
        protocol=Protocol(**{"rounds": 3, "local_epochs": 2, **protocol}),
        client=ClientSettings(**{"hidden": 16, **(client or {})}),
        hyper=hyper or {},
    )


def finish(run: Run, first: int = 0) -> Run:
    """Take a run to its end, from the start or from the round ``first`` on."""
    if first == 0:
        run.warm_up()
    for round in range(first, run.spec.protocol.rounds):
        run.step(round)
    return run


def play(spec: RunSpec, federation: Federation, **options: Any) -> Run:
    """Make a run with all of its rounds, and return it; ``options`` are those of ``Run``."""
    return finish(Run(spec, federation, **options))


def copied(stack: Any) -> dict[str, Any]:
    """A copy of a stack; later rounds do not change the copy."""
    return {name: value.detach().clone() for name, value in stack.items()}


def furthest(stack: Any, other_stack: Any) -> float:
    """The largest absolute difference of two stacks."""
    assert stack.keys() == other_stack.keys()
    return max(float((stack[name] - other_stack[name]).abs().max()) for name in stack)


def same_counts(loop: Run, other_loop: Run, order: Sequence[int] | slice = slice(None)) -> bool:
    """Whether two runs have the same counts. The other run has the clients in ``order``."""
    other_counts = other_loop.correct()
    return all(np.array_equal(counts[:, order], other_counts[key]) for key, counts in loop.correct().items())
