"""pFedFDA: the discriminant against Gaussian densities, statistics against loops, weights against search."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal
from torch.nn.functional import cross_entropy
from toy_federations import begun, furthest, make_spec, permuted, play

from bench.engine.execute import run
from bench.federation.types import TRAIN, Federation
from bench.methods.pfedfda import (
    SHRINKAGE,
    SMOOTHING,
    Common,
    estimate,
    inverse_times,
    own_weights,
    priors,
)
from bench.spec import Attack


def drawn(
    items: int = 40, width: int = 3, classes: int = 3, seed: int = 0
) -> tuple[torch.Tensor, torch.Tensor]:
    rng = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, classes, (items,), generator=rng)
    centres = torch.randn(classes, width, generator=rng, dtype=torch.float64)
    return centres[labels] + torch.randn(items, width, generator=rng, dtype=torch.float64), labels


def covariance_matrix(width: int = 3, seed: int = 1) -> torch.Tensor:
    factor = torch.randn(width, width, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    return factor @ factor.T + 0.3 * torch.eye(width, dtype=torch.float64)


def shrunken(covariance: torch.Tensor) -> torch.Tensor:
    """The covariance drawn to the identity with its trace."""
    width = len(covariance)
    identity = torch.eye(width, dtype=torch.float64)
    return (1 - SHRINKAGE) * covariance + SHRINKAGE * covariance.trace() / width * identity


def head(
    means: torch.Tensor, covariance: torch.Tensor, labels: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Weights and bias by the docstring's formula, for one client."""
    weights = torch.linalg.inv(shrunken(covariance)) @ means.T
    (shares,) = priors(labels[None], len(means))
    return weights, shares.log() - (means.T * weights).sum(dim=0) / 2


def of_one(
    z: torch.Tensor, labels: torch.Tensor, others: torch.Tensor, ridge: float
) -> tuple[torch.Tensor, ...]:
    """Means and covariance of one client."""
    own = estimate(z[None], labels[None], others, ridge)
    return own.means[0], own.covariance[0]


def test_the_head_gives_log_posteriors_of_gaussians() -> None:
    """ln pi_c + ln N(z; mu_c, Sigma') up to what no class changes."""
    z, labels = drawn()
    means, covariance = of_one(z, labels, torch.zeros(3, 3, dtype=torch.float64), ridge=0.2)
    weights, bias = head(means, covariance, labels)
    logits = (z @ weights + bias).numpy()
    (shares,) = priors(labels[None], 3)
    densities = np.stack(
        [
            np.log(float(shares[c]))
            + multivariate_normal(means[c].numpy(), shrunken(covariance).numpy()).logpdf(z.numpy())
            for c in range(3)
        ],
        axis=1,
    )
    np.testing.assert_allclose(logits - logits[:, :1], densities - densities[:, :1], rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("items", [4, 40])
def test_an_inverse_by_woodbury_is_that_of_the_matrix(items: int) -> None:
    """Fewer items than width and more; with all of the server's covariance, some and none."""
    (z, labels), width = drawn(items=items, width=9), 9
    common = Common.of(torch.zeros(3, width, dtype=torch.float64), covariance_matrix(width))
    own = estimate(z[None], labels[None], common.means, 0.2)
    for share in (0.0, 0.4, 1.0):
        mixture = (1 - share) * common.covariance + share * own.covariance[0]
        rows = inverse_times(
            own, common, torch.tensor([share], dtype=torch.float64), own.means @ common.basis
        )
        expected = torch.linalg.inv(shrunken(mixture)) @ own.means[0].T
        torch.testing.assert_close(common.basis @ rows[0].T, expected, rtol=1e-8, atol=1e-9)


def test_statistics_of_a_client_by_loops() -> None:
    """Class 2 has no item and keeps the others' mean."""
    z, labels = drawn(classes=2)
    others = torch.full((3, 3), 9.0).double()
    means, covariance = of_one(z, labels, others, ridge=0.5)
    expected = torch.zeros(3, 3).double()
    for c in (0, 1):
        own = z[labels == c]
        torch.testing.assert_close(means[c], own.mean(dim=0))
        for row in own:
            expected += torch.outer(row - own.mean(dim=0), row - own.mean(dim=0))
    torch.testing.assert_close(means[2], others[2])
    torch.testing.assert_close(covariance, expected / 39 + 0.5 * torch.eye(3).double())
    smoothed = torch.tensor([(labels == c).sum() / 40 + SMOOTHING for c in range(3)]).double()
    torch.testing.assert_close(priors(labels[None], 3)[0], smoothed / smoothed.sum(), rtol=1e-6, atol=1e-9)


def test_the_weights_are_the_best_of_all_pairs() -> None:
    """Every pair by the plain formulas: statistics in between, head, cross-entropy on the other half."""
    z, labels = drawn(items=24, seed=3)
    generator = torch.Generator().manual_seed(3)
    others = Common.of(
        torch.randn(3, 3, dtype=torch.float64, generator=generator),
        torch.diag(torch.tensor([0.5, 2.0, 1.0])).double(),
    )
    seen = [0, 0, 0]
    half = []
    for label in labels.tolist():
        half.append(seen[label] % 2 == 1)
        seen[label] += 1
    mask = torch.tensor(half)
    losses = {}
    for tenths in product(range(11), repeat=2):
        losses[tenths] = 0.0
        for learnt in (mask, ~mask):
            own_means, own_covariance = of_one(z[learnt], labels[learnt], others.means, 0.3)
            of_means, of_covariance = (tenth / 10 for tenth in tenths)
            means = others.means + of_means * (own_means - others.means)
            covariance = others.covariance + of_covariance * (own_covariance - others.covariance)
            weights, bias = head(means, covariance, labels)
            logits = z[~learnt] @ weights + bias
            losses[tenths] += float(cross_entropy(logits, labels[~learnt], reduction="sum"))
    result = own_weights(z[None], labels[None], others, 0.3)
    chosen = tuple(round(10 * weight) for weight in result.flatten().tolist())
    assert losses[chosen] == pytest.approx(min(losses.values()))
    assert 0 < float(result.min()) + float(result.max()) < 2, "the example does not sit in a corner"


def test_a_client_with_one_item_a_class_has_nothing_to_test_on_and_takes_the_servers() -> None:
    """One half is empty: what the other half would predict by an estimate of no item says nothing."""
    z, labels = drawn()[0][:3], torch.arange(3)
    others = Common.of(z.mean(dim=0) + z, covariance_matrix())
    assert own_weights(z[None], labels[None], others, ridge=0.05).tolist() == [[0], [0]]


def weigh(own: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have every client take its own statistics with this weight."""
    monkeypatch.setattr("bench.methods.pfedfda.own_weights", lambda z, *_: z.new_full((2, len(z)), own))


def test_without_own_statistics_all_have_the_servers(
    federation: Federation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Weight 0: heads differ by class shares alone, and what is sent is what came."""
    weigh(0.0, monkeypatch)
    it = begun("pfedfda", federation)
    before = {name: value.clone() for name, value in it.method.statistics.items()}  # type: ignore[attr-defined]
    it.step(0)
    assert furthest(before, it.method.statistics) < 1e-6  # type: ignore[attr-defined]
    weights = it.own["head.weight"]
    assert float((weights - weights[:1]).abs().max()) < 1e-6
    assert float((it.own["head.bias"] - it.own["head.bias"][:1]).abs().max()) > 1e-3


def test_own_statistics_alone_are_a_discriminant_of_the_own_features(
    federation: Federation, monkeypatch: pytest.MonkeyPatch
) -> None:
    weigh(1.0, monkeypatch)
    it = begun("pfedfda", federation, hyper={"ridge": 0.1})
    message = it.method.broadcast()
    received = it.method.load(it.clients, it.own, message)
    batch = it.clients.blocks[0].evaluation
    features = torch.relu(batch.embed(received)).double()
    for row, client in enumerate(federation.clients):
        chosen = torch.from_numpy(np.flatnonzero(client.roles == TRAIN))
        labels = torch.from_numpy(client.labels)[chosen]
        z = features[row, chosen]
        weights, bias = head(*of_one(z, labels, message.extras["means"][0].double(), 0.1), labels)
        torch.testing.assert_close(received["head.weight"][row].double(), weights, rtol=1e-3, atol=1e-4)
        torch.testing.assert_close(received["head.bias"][row].double(), bias, rtol=1e-3, atol=1e-4)


def test_equal_clients_send_what_the_server_then_has(federation: Federation) -> None:
    clones = permuted(federation, [1, 1, 1])
    it = play(make_spec("pfedfda", clones, client={"dropout": 0.0}), clones)
    covariance = it.method.everybodys(it.method.broadcast()).covariance  # type: ignore[attr-defined]
    assert float(torch.linalg.eigvalsh(covariance).min()) > 0
    assert furthest({"f": it.own["conv1.weight"][:1]}, {"f": it.own["conv1.weight"][1:2]}) < 1e-6


def test_statistics_that_are_no_covariance_have_clients_take_the_servers() -> None:
    z, labels = drawn()
    broken = Common.of(torch.zeros(3, 3, dtype=torch.float64), -torch.eye(3, dtype=torch.float64))
    assert own_weights(z[None], labels[None], broken, ridge=0.2).tolist() == [[0], [0]]


@pytest.mark.parametrize("kind", ["same", "gaussian"])
def test_an_attack_on_the_statistics_ends_no_run_in_an_error(federation: Federation, kind: str) -> None:
    attack = {"kind": kind, "ratio": 0.4, "tau": 5.0}
    spec = make_spec("pfedfda", federation).model_copy(update={"attack": Attack.model_validate(attack)})
    assert run(spec, federation).state in ("done", "diverged")
