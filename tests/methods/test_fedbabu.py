"""FedBABU: the head that nobody trains, the body as another method trains it, and the fine-tuned copy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from plain_cnn import federation as image_federation
from plain_cnn import spec as image_spec
from toy_federations import begun, furthest, make_spec, play

from bench.engine.execute import run
from bench.engine.run import Run
from bench.engine.stacks import part
from bench.errors import NotApplicableError
from bench.federation.types import Federation
from bench.methods.fedbabu import COMMON
from bench.nn.gcn import GCN
from bench.spec import Newcomers


def test_the_common_head_is_one_for_all_and_never_moves(federation: Federation) -> None:
    it = Run(make_spec("fedbabu", federation, initial="own"), federation)
    head = {name: it.method.task.common()[name] for name in it.method.task.head}
    it.warm_up()
    for _ in range(3):
        it.step(_)
        assert furthest(part(COMMON, it.own), head) == 0
        own = {name: it.own[name] for name in head}
        assert furthest(own, head) > 1e-3, "the personal head does move"


def test_the_body_is_that_of_alternating_training_without_head_epochs(federation: Federation) -> None:
    """FedRep from one common model trains bodies alone where its heads have no epoch: the same bits."""
    body = play(make_spec("fedbabu", federation, hyper={"weights": "samples"}), federation)
    other = play(make_spec("fedrep", federation, initial="common", hyper={"head_epochs": 0}), federation)
    assert set(body.method.model) == set(body.method.task.backbone)  # type: ignore[attr-defined]
    assert furthest(body.method.model, other.method.model) == 0  # type: ignore[attr-defined]
    assert np.array_equal(body.correct()["received", "test"], other.correct()["received", "test"])


@pytest.mark.parametrize("family", ["graph", "images"])
def test_fine_tuning_is_not_noticed_by_the_federation(family: str, federation: Federation) -> None:
    """Without it the personal model is the one received; with it, received models stay the same bits."""
    clients = federation if family == "graph" else image_federation(30, 40)
    plain = make_spec("fedbabu", federation) if family == "graph" else image_spec("fedbabu", 2)
    none, some = (
        play(plain.model_copy(update={"hyper": {"fine_tuning": epochs}}), clients) for epochs in (0, 4)
    )
    for split in ("train", "val", "test"):
        assert np.array_equal(none.correct()["received", split], none.correct()["trained", split])
        assert np.array_equal(none.correct()["received", split], some.correct()["received", split])
    assert furthest(none.method.model, some.method.model) == 0  # type: ignore[attr-defined]
    assert some.correct()["trained", "train"][-1].sum() > some.correct()["received", "train"][-1].sum()
    passes = plain.protocol.rounds * (plain.protocol.local_epochs + 4)
    assert some.clients.passes == pytest.approx(passes)


def test_every_round_fine_tunes_with_a_new_optimiser(federation: Federation) -> None:
    """Two rounds that receive the same body fine-tune it to the same model, Adam's moments forgotten."""
    settings: dict[str, Any] = {"client": {"dropout": 0.0}, "hyper": {"fine_tuning": 3}}
    it = begun("fedbabu", federation, **settings)
    first, copies = dict(it.method.broadcast().model), []
    for index in range(2):
        it.method.model = {name: value[0].clone() for name, value in first.items()}  # type: ignore[attr-defined]
        it.step(index)
        copies.append({name: it.own[name].clone() for name in it.model.shapes})
    assert furthest(*copies) == 0


def test_newcomers_hold_the_same_head(federation: Federation) -> None:
    """Without fine-tuning they are the last body under it, whatever they were drawn with."""
    spec = make_spec("fedbabu", federation, initial="own", hyper={"fine_tuning": 0})
    spec = spec.model_copy(update={"newcomers": Newcomers(ratio=0.4, epochs=2)})
    result = run(spec, federation)
    assert result.state == "done"
    assert np.array_equal(result.correct["received", "test"], result.correct["trained", "test"])


def test_a_head_that_starts_at_zero_is_refused(
    federation: Federation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under it the body's gradient is zero, and nothing would ever be learnt."""
    drawn = GCN.initial

    def headless(model: GCN, rng: np.random.Generator) -> dict[str, Any]:
        parameters = drawn(model, rng)
        return {**parameters, "head.weight": np.zeros_like(parameters["head.weight"])}

    monkeypatch.setattr(GCN, "initial", headless)
    with pytest.raises(NotApplicableError):
        Run(make_spec("fedbabu", federation), federation)
