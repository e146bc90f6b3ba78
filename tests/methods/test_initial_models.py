"""Whether it matters that clients start from one common model or each from its own."""

from __future__ import annotations

import numpy as np
import pytest
from toy_federations import make_spec, random_federation

from bench.engine.execute import run


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
    own = own.model_copy(update={"protocol": own.protocol.model_copy(update={"initial": "own"})})
    common = own.model_copy(update={"protocol": own.protocol.model_copy(update={"initial": "common"})})
    one, other = (run(spec, federation) for spec in (own, common))
    assert np.array_equal(one.loss, other.loss) != matters
