"""The scenario of clients that papers published."""

from __future__ import annotations

import pytest
import torch

from bench.errors import RequestError
from bench.federation.build import build
from bench.federation.published import legacy_permutation
from bench.federation.scenario import Split
from bench.federation.types import TEST, TRAIN, VALIDATION

FEDPUB = (20.0, 40.0, 40.0)
FEDSHEAFHN = (40.0, 30.0, 30.0)


@pytest.mark.parametrize("items", [1, 2, 7, 2485])
@pytest.mark.parametrize("seed", [0, 2**32 - 1])
def test_the_legacy_permutations_are_torchs(items: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    for number in (1, 2, 3):
        expected = torch.randperm(items, generator=generator)
        assert legacy_permutation(items, seed, number).tolist() == expected.tolist()


def test_fedpubs_split_is_its_own_whatever_the_seed() -> None:
    one, other = (build("cora", "published", 5, seed, FEDPUB, ()) for seed in (123, 7))
    assert one.hash == other.hash
    counts = [sum(client.count(role) for client in one.clients) for role in (TRAIN, VALIDATION, TEST)]
    assert counts == [497, 994, 994]


def test_fedsheafhns_split_of_20_clients_is_torchs_second_permutation() -> None:
    federation = build("cora", "published", 20, 123, FEDSHEAFHN, ())
    torch.manual_seed(123)
    torch.randperm(2485)
    order = torch.randperm(2485).numpy()
    for client in federation.clients:
        assert set(client.ids[client.roles == TRAIN]) <= set(order[:994].tolist())
        assert set(client.ids[client.roles == TEST]) <= set(order[994 : 994 + 746].tolist())
        assert set(client.ids[client.roles == VALIDATION]) <= set(order[994 + 746 :].tolist())
    assert build("cora", "published", 20, 7, FEDSHEAFHN, ()).hash != federation.hash


@pytest.mark.parametrize(
    ("dataset", "scenario", "clients", "split", "expected"),
    [
        ("cora", "published", 30, FEDPUB, "5 clients with split 20/40/40"),
        ("cora", "published", 10, (60.0, 20.0, 20.0), "10 clients with split 40/30/30"),
        ("cora", "published-fresh", 10, FEDSHEAFHN, "10 clients with split 20/40/40"),
        ("citeseer", "published-overlapping", 20, FEDPUB, "30 clients with split 40/30/30"),
        ("cora-whole", "published", 10, FEDPUB, "non-overlapping"),
    ],
)
def test_other_clients_are_refused_in_one_line(
    dataset: str, scenario: str, clients: int, split: Split, expected: str
) -> None:
    with pytest.raises(RequestError, match=expected) as refusal:
        build(dataset, scenario, clients, 123, split, ())
    assert "\n" not in str(refusal.value)
