"""What methods become at the ends of their hyper-parameters, and whether own initial models matter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from toy_federations import furthest, make_spec, play, random_federation, same_counts

from bench.engine.execute import run
from bench.engine.methods import METHODS
from bench.engine.run import Run
from bench.federation.types import Federation

N = 5
"""Clients of the federation."""

LIMITS: list[tuple[str, dict[str, Any], str, dict[str, Any]]] = [
    ("cfl", {"eps1": 1e9, "eps2": 0.0, "start_round": 3}, "fedavg", {}),
    ("ditto", {"mu": 0.0, "personal_epochs": 2}, "local", {}),
    ("fedaghn", {"q": 0.0, "p": 1 / (N - 1), "trained": "none"}, "fedavg", {}),
    ("fedaux", {"alpha": 0.0, "sigma": 1e4}, "fedaux_control", {}),
    ("fedgcn_0hop", {}, "fedavg", {"weights": "samples"}),
    ("fedgta", {"threshold": 1.0}, "local", {}),
    ("fediih", {"tau": 0.0}, "fediih_average", {}),
    ("fedprox", {"mu": 0.0}, "fedavg", {}),
    ("fedpub_gradient", {"sparsity": 0.0, "proximity": 0.0}, "fedpub", {}),
    ("fedsage", {}, "fedavg", {"weights": "samples"}),
    ("h_fedamp", {"strength": 0.0}, "local", {}),
    ("pfedgraph", {"alpha": 1e-6, "attraction": 0.0}, "local", {}),
    ("pfedgraph", {"alpha": 1e9, "attraction": 0.0}, "fedavg", {"weights": "samples"}),
    ("pfedgraph", {"attraction": 0.0}, "pfedgraph_released", {"attraction": 0.0}),
]
"""A method, its hyper-parameters, the method that it then is, and that one's."""


@pytest.mark.parametrize(
    ("method", "hyper", "simpler", "simpler_hyper"), LIMITS, ids=[f"{row[0]}-{row[2]}" for row in LIMITS]
)
def test_at_its_limit_a_method_is_a_simpler_one(
    federation: Federation, method: str, hyper: dict[str, Any], simpler: str, simpler_hyper: dict[str, Any]
) -> None:
    """Models and counts, from one model for all; by the hyper-parameters that nobody sets the two differ."""

    def played(name: str, values: dict[str, Any]) -> Run:
        spec = make_spec(name, federation, hyper=values).with_settings(METHODS.named(method).settings)
        return play(spec.with_settings({"protocol.initial": "common"}), federation)

    limit, expected = played(method, hyper), played(simpler, simpler_hyper)
    assert furthest({name: limit.own[name] for name in expected.own}, expected.own) < 1e-5
    assert same_counts(expected, limit)
    if hyper or simpler_hyper:
        usual, usual_simpler = played(method, {}), played(simpler, {})
        assert furthest({name: usual.own[name] for name in expected.own}, usual_simpler.own) > 1e-3


@pytest.mark.parametrize(
    ("method", "matters"),
    [
        ("local", True),
        ("fedper", True),
        ("fedsheafhn", True),
        *((name, False) for name in ("fedavg", "fedpub", "flow", "pfedgraph", "fggp")),
    ],
)
def test_own_initial_models_matter_where_clients_keep_parameters(method: str, matters: bool) -> None:
    """The experiment on weight decay leaves out what this says is the same run."""
    federation = random_federation((24, 30, 28), seed=3, width=20)
    hyper = {"warm_up_epochs": 2} if method == "fedsheafhn" else {}
    own = make_spec(method, federation, client={"hidden": 8}, hyper=hyper, rounds=3)
    one, other = (
        run(own.with_settings({"protocol.initial": initial}), federation) for initial in ("own", "common")
    )
    assert np.array_equal(one.loss, other.loss) != matters
