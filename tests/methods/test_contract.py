"""What every method that runs on graphs must keep, whoever wrote it.

A new file under ``methods/`` is checked here without a line of test. Where a method cannot keep a
rule by its nature it stands in one of the tables below with the reason, and a test makes sure that
the exception is a real one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from toy_federations import copied, furthest, linked, make_spec, permuted, play, random_federation

from bench import registry
from bench.engine.clients import Clients, Forward, LossTerm, Stack
from bench.engine.run import Run, run
from bench.federation.types import TEST, TRAIN, Federation

ONE_CLIENT = {"global_hgnn": "one client holds all nodes: it is refused where there are several"}
METHODS = sorted(
    name
    for name, kind in registry.methods().items()
    if "graph" in kind.families and kind.reads is None and name not in ONE_CLIENT
)
BOUND_TO_ORDER = {
    "fggp": "every client samples its second view from the stream of its number",
    "fggp_released": "as fggp",
    "pfedhn": "every client number has its own random embedding in the hypernetwork",
    "pfedhn_pc": "as pfedhn",
    "pfedhn_one": "as pfedhn",
}
NOT_EXPECTED_TO_LEARN = {
    "majority": "it is the level that the others are measured against",
    "pfedhn_one": "its first rounds unlearn; on Cora it gains from round 40 on",
    "fedsheafhn_papersign": "the printed update moves away from what was trained and diverges",
}
SIZES = (24, 40, 9, 31)


@pytest.fixture(scope="module")
def clients() -> Federation:
    return linked(random_federation(SIZES, seed=11, width=30))


@cache
def short_run(method: str, block_size: int | None = None) -> Run:
    federation = linked(random_federation(SIZES, seed=11, width=30))
    return play(
        make_spec(method, federation, rounds=3, client={"hidden": 8}), federation, block_size=block_size
    )


def without_dropout(method: str) -> dict[str, Any]:
    """Hyper-parameters that switch a method's own dropout off, whatever it is called."""
    fields = registry.method(method).Hyper.model_fields
    return {
        name: 0.0 for name, info in fields.items() if name.endswith("dropout") and info.annotation is float
    }


def test_the_tables_name_methods_that_exist() -> None:
    assert {"fedavg", "fedsheafhn", "fedsheafhn_released", "local", "majority", "pfedhn"} <= set(METHODS)
    assert set(BOUND_TO_ORDER) | set(NOT_EXPECTED_TO_LEARN) <= set(METHODS)


@pytest.mark.parametrize("method", ONE_CLIENT)
def test_methods_of_one_client_are_not_applicable_to_several(method: str, clients: Federation) -> None:
    assert run(make_spec(method, clients), clients).state == "not_applicable"


@pytest.mark.parametrize("method", METHODS)
def test_a_method_describes_itself(method: str) -> None:
    kind = registry.method(method)
    assert kind.title
    assert kind.stage in ("received", "trained")
    assert kind.numerics >= 1
    assert kind.__doc__


@pytest.mark.parametrize("method", METHODS)
def test_shapes_and_finite_numbers(method: str, clients: Federation) -> None:
    it = short_run(method)
    assert set(it.method.shared()) <= set(it.own)
    for name, shape in it.model.shapes.items():
        value = it.own[name]
        assert value.shape == (len(clients), *shape)
        assert value.dtype == torch.float32
        assert torch.isfinite(value).all()
        assert not value.requires_grad
    for (_, split), counts in it.correct().items():
        assert counts.shape == (3, len(clients))
        assert (counts >= 0).all()
        assert (counts <= it.evaluator.samples[split]).all()
    if registry.method(method).trains:
        assert np.isfinite(it.loss).all()
    for value in it.method.artefacts().values():
        assert torch.isfinite(value).all()


@pytest.mark.parametrize("method", METHODS)
def test_what_is_sent_fits_the_clients(method: str, clients: Federation) -> None:
    it = Run(make_spec(method, clients, client={"hidden": 8}), clients)
    it.warm_up()
    with torch.no_grad():
        sent = it.method.send(0)
    for name, value in sent.items():
        assert value.shape == it.own[name].shape
        assert not value.requires_grad


@pytest.mark.parametrize("method", METHODS)
def test_the_same_spec_twice_is_bit_equal(method: str, clients: Federation) -> None:
    short_run.cache_clear()
    one = short_run(method)
    short_run.cache_clear()
    torch.rand(7)  # noise in torch's global stream
    np.random.rand(7)  # noqa: NPY002 - and in NumPy's
    other = short_run(method)
    assert one is not other
    assert furthest(one.own, other.own) == 0
    for key, counts in one.correct().items():
        assert np.array_equal(counts, other.correct()[key])
    assert np.array_equal(one.loss, other.loss, equal_nan=True)


@pytest.mark.parametrize("method", METHODS)
def test_another_seed_gives_other_models(method: str, clients: Federation) -> None:
    other = play(make_spec(method, clients, rounds=3, client={"hidden": 8}, seed=1), clients)
    assert furthest(short_run(method).own, other.own) > 1e-2


@pytest.mark.parametrize("method", METHODS)
def test_a_run_draws_nothing_from_global_generators(method: str, clients: Federation) -> None:
    torch.manual_seed(3)
    state, numpy_state = torch.get_rng_state(), np.random.get_state()  # noqa: NPY002
    play(make_spec(method, clients, rounds=2, client={"hidden": 8}), clients)
    assert torch.equal(torch.get_rng_state(), state)
    assert np.array_equal(np.random.get_state()[1], numpy_state[1])  # type: ignore[index]  # noqa: NPY002


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("block_size", [1, 3])
def test_block_size_changes_nothing(method: str, block_size: int) -> None:
    whole, blocks = short_run(method, len(SIZES)), short_run(method, block_size)
    assert furthest(whole.own, blocks.own) < 1e-4
    np.testing.assert_allclose(whole.loss, blocks.loss, rtol=1e-4)
    for key, counts in whole.correct().items():
        assert np.array_equal(counts, blocks.correct()[key]), key


def shuffled_apart(method: str, federation: Federation) -> tuple[float, bool]:
    """Distance of final models, and whether all counts are the same, after permuting the clients.

    Sound for a method whose server does not know its clients by number: the streams that belong
    to a client number (initial weights, dropout) are taken out by a common initial model and no
    dropout, and what is left must follow the clients.
    """
    spec = make_spec(
        method,
        federation,
        rounds=3,
        initial="common",
        client={"hidden": 8, "dropout": 0.0},
        hyper=without_dropout(method),
    )
    order = [2, 0, 3, 1]
    straight, other = play(spec, federation), play(spec, permuted(federation, order))
    apart = furthest({name: value[order] for name, value in straight.own.items()}, other.own)
    same = all(
        np.array_equal(counts[:, order], other.correct()[key]) for key, counts in straight.correct().items()
    )
    return apart, same


@pytest.mark.parametrize("method", [name for name in METHODS if name not in BOUND_TO_ORDER])
def test_the_order_of_clients_changes_nothing(method: str, clients: Federation) -> None:
    apart, same = shuffled_apart(method, clients)
    assert apart < 1e-4
    assert same


@pytest.mark.parametrize("method", BOUND_TO_ORDER)
def test_exceptions_to_the_order_of_clients_are_real(method: str, clients: Federation) -> None:
    apart, _ = shuffled_apart(method, clients)
    assert apart > 1e-2, f"{method} follows its clients: take it out of the table"


@pytest.mark.parametrize("method", METHODS)
def test_held_out_labels_change_no_training_number(method: str, clients: Federation) -> None:
    rng = np.random.default_rng(0)
    noisy = replace(
        clients,
        clients=tuple(
            replace(
                client,
                labels=np.where(
                    client.roles == TRAIN, client.labels, rng.integers(0, clients.classes, len(client.labels))
                ),
            )
            for client in clients.clients
        ),
    )
    assert any((a.labels != b.labels).any() for a, b in zip(clients.clients, noisy.clients, strict=True))
    spec = make_spec(method, clients, rounds=3, client={"hidden": 8})
    true, noise = play(spec, clients), play(spec, noisy)
    assert furthest(true.own, noise.own) == 0
    assert np.array_equal(true.loss, noise.loss, equal_nan=True)
    for stage in ("received", "trained"):
        assert np.array_equal(true.correct()[(stage, "train")], noise.correct()[(stage, "train")])
    assert not np.array_equal(true.correct()[("trained", "test")], noise.correct()[("trained", "test")])


class Watched(Clients):
    """Clients whose ``fit`` notices when the stack it was given changes, then or later in the round."""

    def fit(
        self,
        stack: Stack,
        *,
        epochs: int | None = None,
        loss: LossTerm | None = None,
        trainable: Collection[str] | None = None,
        forward: Forward | None = None,
        items: Sequence[NDArray[np.int64]] | None = None,
        decay: Mapping[str, float] | None = None,
        slot: str = "model",
    ) -> Stack:
        before = copied(stack)
        result = super().fit(
            stack,
            epochs=epochs,
            loss=loss,
            trainable=trainable,
            forward=forward,
            items=items,
            decay=decay,
            slot=slot,
        )
        assert furthest(stack, before) == 0
        return result


@pytest.mark.parametrize("method", METHODS)
def test_training_leaves_the_received_model_unchanged(method: str, clients: Federation) -> None:
    spec = make_spec(method, clients, rounds=3, client={"hidden": 8})
    it = Run(spec, clients, clients_type=Watched)
    collect = it.method.collect
    gone_in: list[dict[str, Any]] = []

    def watched(received: Stack, trained: Stack, reports: Any) -> None:
        assert set(received) == set(trained) == set(it.method.shared())
        for name, value in gone_in[-1].items():
            if name in received:
                assert torch.equal(received[name], value)
        collect(received, trained, reports)

    it.method.collect = watched  # type: ignore[method-assign]
    send = it.method.send

    def sending(round: int) -> Stack:
        sent = send(round)
        gone_in.append(copied(it.method.receive(it.own, sent)))
        return sent

    it.method.send = sending  # type: ignore[method-assign]
    it.warm_up()
    for round in range(3):
        it.step(round)


@pytest.fixture(scope="module")
def learnable() -> Federation:
    return linked(random_federation((70, 60, 65, 75), seed=4, width=45, isolated=0, lean=0.1))


def majority_share(federation: Federation) -> float:
    """Mean over clients of the test accuracy of the most frequent training class."""
    shares = []
    for client in federation.clients:
        counts = [
            int(((client.labels == c) & (client.roles == TRAIN)).sum()) for c in range(federation.classes)
        ]
        test = client.labels[client.roles == TEST]
        shares.append(float((test == int(np.argmax(counts))).mean()))
    return float(np.mean(shares))


def late_accuracy(method: str, learnable: Federation, stage: str) -> float:
    """Mean test accuracy of the last ten of 40 rounds."""
    settings = {"hidden": 16, "learning_rate": 0.02, "dropout": 0.3}
    result = run(make_spec(method, learnable, rounds=40, local_epochs=5, client=settings), learnable)
    assert result.state == "done", result.reason
    return float((result.correct[(stage, "test")][-10:] / result.samples["test"]).mean())


@pytest.mark.parametrize("method", [name for name in METHODS if name not in NOT_EXPECTED_TO_LEARN])
def test_it_learns_a_toy_task(method: str, learnable: Federation) -> None:
    accuracy = late_accuracy(method, learnable, registry.method(method).stage)
    assert accuracy > majority_share(learnable) + 0.2


@pytest.mark.parametrize("method", NOT_EXPECTED_TO_LEARN)
def test_exceptions_to_learning_are_real(method: str, learnable: Federation) -> None:
    """By what their server sends; local training on top of it learns again."""
    assert late_accuracy(method, learnable, "received") < majority_share(learnable) + 0.05


def test_majority_is_at_its_own_level(learnable: Federation) -> None:
    result = run(make_spec("majority", learnable, rounds=1), learnable)
    for stage in ("received", "trained"):
        accuracy = (result.correct[(stage, "test")][0] / result.samples["test"]).mean()
        assert accuracy == pytest.approx(majority_share(learnable))


@pytest.fixture
def bytes_of(clients: Federation) -> Callable[..., tuple[int, int]]:
    def measure(method: str, rounds: int, **hyper: Any) -> tuple[int, int]:
        spec = make_spec(method, clients, rounds=rounds, client={"hidden": 8}, hyper=hyper)
        result = run(spec, clients)
        return result.bytes_up, result.bytes_down

    return measure


# with 30 features, 8 hidden units and 3 classes
BACKBONE = 30 * 8 + 8 + 8 * 8 + 8
WHOLE = BACKBONE + 8 * 3 + 3
FLOAT = 4
N = len(SIZES)


def test_bytes_of_methods_that_send_models(bytes_of: Callable[..., tuple[int, int]]) -> None:
    for rounds in (1, 3):
        assert bytes_of("local", rounds) == (0, 0)
        assert bytes_of("majority", rounds) == (0, 0)
        for method in ("fedavg", "fedprox", "pfedhn"):
            assert bytes_of(method, rounds) == (rounds * N * WHOLE * FLOAT,) * 2
        for method in ("fedper", "pfedhn_pc"):
            assert bytes_of(method, rounds) == (rounds * N * BACKBONE * FLOAT,) * 2


def test_bytes_of_fedsheafhn_add_the_embeddings(bytes_of: Callable[..., tuple[int, int]]) -> None:
    """One embedding of 8 numbers a client after warm-up and in rounds 2 and 4 of 0..5."""
    for method in ("fedsheafhn", "fedsheafhn_released"):
        up, down = bytes_of(method, 6, refresh=2, warm_up_epochs=1)
        assert down == 6 * N * BACKBONE * FLOAT
        assert up == 6 * N * BACKBONE * FLOAT + 3 * N * 8 * FLOAT
