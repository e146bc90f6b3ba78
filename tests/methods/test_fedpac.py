"""FedPAC: the quadratic programme, the statistics by hand, and two rounds against plain networks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from plain_cnn import CLASSES, HIDDEN, normalised, of_module, plain_copy, plain_epochs, turned
from plain_cnn import federation as image_federation
from plain_cnn import spec as image_spec
from scipy.optimize import minimize
from torch import Tensor, nn
from torch.nn import functional
from toy_federations import copied, furthest, make_spec, play, uploads_of

from bench.engine.execute import run
from bench.engine.method import Stack
from bench.engine.run import Run
from bench.federation.types import TEST, TRAIN, Client, Federation
from bench.methods.fedpac import head_weights, on_simplex, without_small

BASE = ("conv1", "bn1", "conv2", "bn2", "fc1")
STRENGTH = 2.0


def positive(seed: int, n: int = 20, rank: int = 6) -> NDArray[np.float64]:
    """A random matrix like FedPAC's: of low rank but for a small diagonal."""
    rng = np.random.default_rng(seed)
    thin = rng.normal(size=(n, rank))
    return np.diag(rng.uniform(0.01, 0.1, n)) + thin @ thin.T


@pytest.mark.parametrize("seed", range(5))
def test_weights_minimise_on_the_simplex(seed: int) -> None:
    q = positive(seed)
    weights = on_simplex(q)
    assert weights.min() >= 0
    assert weights.sum() == pytest.approx(1, abs=1e-12)
    n = len(q)
    solver = minimize(
        lambda a: a @ q @ a,
        np.full(n, 1 / n),
        jac=lambda a: 2 * q @ a,
        bounds=[(0, 1)] * n,
        constraints={"type": "eq", "fun": lambda a: a.sum() - 1, "jac": lambda a: np.ones(n)},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    assert solver.success
    assert weights @ q @ weights == pytest.approx(solver.fun, rel=1e-5)
    np.testing.assert_allclose(weights, solver.x, atol=1e-3)
    slope = q @ weights  # equal where a weight is positive, no smaller elsewhere
    assert slope[weights > 1e-9].std() < 1e-6
    assert slope.min() > slope[weights > 1e-9].mean() - 1e-6


def test_identical_clients_have_equal_weights() -> None:
    h = np.tile(np.random.default_rng(0).normal(size=50), (20, 1))
    for variance in (0.0, 1e-6, 0.3):
        np.testing.assert_allclose(head_weights(h, np.full(20, variance)), 1 / 20, atol=1e-9)
    inverse = 1 / np.arange(1.0, 21)
    expected = np.tile(inverse / inverse.sum(), (20, 1))
    np.testing.assert_allclose(head_weights(h, np.arange(1.0, 21)), expected, rtol=1e-5)


def test_a_client_that_deviates_weighs_itself_more() -> None:
    h = np.tile(np.random.default_rng(0).normal(size=50), (20, 1))
    own = [head_weights(h, np.full(20, 0.1))[3, 3]]
    for deviation in (0.02, 0.1, 0.5):
        h[3, 0] += deviation
        weights = head_weights(h, np.full(20, 0.1))
        own.append(weights[3, 3])
        np.testing.assert_allclose(weights.sum(axis=1), 1)
        assert weights.min() >= 0
        np.testing.assert_allclose(weights[0, :3], weights[0, 4:7], rtol=1e-6)
        assert weights[0, 3] < weights[0, 4]
    assert own == sorted(own)
    assert own[0] == pytest.approx(1 / 20)
    assert own[-1] > 0.5


def test_small_weights_are_none_and_the_others_sum_to_one() -> None:
    h = np.zeros((3, 1))
    weights = head_weights(h, np.array([1.0, 1.0, 2e3]))[0]  # inverse variances: 1, 1, 0.0005
    np.testing.assert_allclose(weights, [0.5, 0.5, 0], atol=1e-9)
    np.testing.assert_allclose(without_small(np.full(2000, 1 / 2000)), 1 / 2000)


def features_of(network: nn.Sequential, client: Client) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Features and labels of the training images in evaluation mode."""
    training = np.flatnonzero(client.roles == TRAIN)
    network.eval()
    with torch.no_grad():
        features = network[:-1](normalised(client.features[training]))
    return features.double().numpy(), client.labels[training]


def means_of(network: nn.Sequential, client: Client) -> NDArray[np.float64]:
    features, labels = features_of(network, client)
    means = np.zeros((CLASSES, HIDDEN))
    for label in set(labels.tolist()):
        means[label] = features[labels == label].mean(axis=0)
    return means


def loaded(network: nn.Sequential, sent: Stack, number: int) -> None:
    for name, value in sent.items():
        of_module(network, name).data.copy_(turned(name, value[number]))


def test_two_rounds_equal_plain_networks() -> None:
    """Messages both ways, models, and the combination of heads; a client has no image of some class."""
    images = image_federation(5, 40, 41)
    spec = image_spec("fedpac", 3, rounds=2, epochs=2)
    spec = spec.model_copy(update={"hyper": {"strength": STRENGTH, "head_epochs": 1}})
    it = Run(spec, images)
    uploads = uploads_of(it)
    networks = [plain_copy(it.own, number) for number in range(3)]
    counts = np.stack(
        [np.bincount(one.labels[one.roles == TRAIN], minlength=CLASSES) for one in images.clients]
    )
    sizes = counts.sum(axis=1)
    assert (counts == 0).any()
    it.warm_up()
    prototypes = None
    for round in range(2):
        message = it.method.broadcast()
        sent = copied(message.model)
        assert (prototypes is None) == (not message.extras)
        h, variances, after = [], [], []
        for number, client in enumerate(images.clients):
            network = networks[number]
            loaded(network, sent, number)
            features, _ = features_of(network, client)
            mean_of_class = counts[number][:, None] / sizes[number] * means_of(network, client)
            h.append(mean_of_class.ravel())
            square = (features**2).sum(axis=1).mean()
            variances.append((square - (mean_of_class**2).sum()) / sizes[number])
            plain_epochs(network, client, (number, round, 0), 1, ["fc"])
            aligned_epochs(network, client, (number, round, 1), prototypes)
            after.append(means_of(network, client))
        it.step(round)
        extras = uploads[round].extras
        np.testing.assert_allclose(extras["h"].flatten(1).numpy(), np.stack(h), atol=1e-4)
        np.testing.assert_allclose(extras["variance"].numpy(), variances, rtol=1e-3)
        for number, network in enumerate(networks):
            for name in it.model.shapes:
                expected = turned(name, of_module(network, name))
                torch.testing.assert_close(it.own[name][number], expected, rtol=1e-3, atol=2e-5)
        prototypes = (counts[:, :, None] * np.stack(after)).sum(axis=0) / counts.sum(axis=0)[:, None]
        a = head_weights(np.stack(h), np.array(variances))
        np.testing.assert_allclose(it.artefacts()["collaboration"], a, atol=1e-3)
        following = it.method.broadcast()
        for row in following.extras["prototypes"].numpy():
            np.testing.assert_allclose(row, prototypes, atol=1e-4)
        for name, value in following.model.items():
            weights = a if name.startswith("fc.") else np.tile(sizes / sizes.sum(), (3, 1))
            expected = np.einsum("ij,j...->i...", weights, it.own[name].numpy())
            np.testing.assert_allclose(value.numpy(), expected, atol=1e-4)


def aligned_epochs(
    network: nn.Sequential,
    client: Client,
    key: tuple[int, int, int],
    prototypes: NDArray[np.float64] | None,
) -> None:
    """The local epochs on all but the head; loss and alignment read the same features."""
    if prototypes is None:
        plain_epochs(network, client, key, 2, BASE)
        return
    targets = torch.from_numpy(prototypes).float()

    def aligned(network: nn.Sequential, images: Tensor, labels: Tensor) -> Tensor:
        features = network[:-1](images)
        entropy = functional.cross_entropy(network[-1](features), labels)
        return entropy + STRENGTH * (features - targets[labels]).square().mean()

    plain_epochs(network, client, key, 2, BASE, aligned)


def test_a_class_that_nobody_sent_has_the_clients_own_mean(federation: Federation) -> None:
    """Half of the clients send; a strong pull to the own mean draws a class together all the same."""
    settings = {"dropout": 0.0, "optimizer": "sgd", "learning_rate": 0.05, "weight_decay": 0.0}
    spec = make_spec("fedpac", federation, client=settings, hyper={"strength": 50.0})
    it = Run(spec, federation)
    it.warm_up()
    known = {"prototypes": torch.zeros(3, 16), "known": torch.zeros(3)}
    it.method.prototypes = known  # type: ignore[attr-defined]
    message = it.method.broadcast()
    it.clients.begin_round(0)
    received = it.method.load(it.clients, it.own, message)
    trained = copied(it.method.update(it.clients, received, message).keep)
    known["known"] = torch.ones(3)
    it.clients.begin_round(0)
    message = it.method.broadcast()
    pulled = copied(it.method.update(it.clients, received, message).keep)

    def length(models: Stack) -> float:
        return float(it.clients.embeddings(models).norm(dim=1).mean())

    assert length(pulled) < 0.7 * length(trained)


def test_without_strength_there_is_nothing_to_align(federation: Federation) -> None:
    """Then one client alone is trained in two phases as FedRep trains it."""
    one = federation.__class__(**{**federation.__dict__, "clients": federation.clients[2:3]})
    pac = play(make_spec("fedpac", one, initial="common", hyper={"strength": 0.0, "head_epochs": 2}), one)
    rep = play(make_spec("fedrep", one, initial="common", hyper={"head_epochs": 2}), one)
    assert furthest(pac.own, rep.own) < 1e-5


def test_a_client_without_training_items_stops_nobody(federation: Federation) -> None:
    first, *others = federation.clients
    unlabelled = replace(first, roles=np.where(first.roles == TRAIN, TEST, first.roles))
    clients = replace(federation, clients=(unlabelled, *others))
    result = run(make_spec("fedpac", clients), clients)
    assert result.state == "done"
    assert np.isfinite(result.artefacts["collaboration"]).all()
