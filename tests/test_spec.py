"""What a run is: the canonical form, its hash, limits; and the rules that pick a round."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray
from pydantic import ValidationError

from bench.errors import RequestError
from bench.selection import RULES, client_mean
from bench.spec import Attack, ClientSettings, Newcomers, Protocol, RunSpec, difference

BASE: dict[str, Any] = {
    "dataset": "cora",
    "scenario": "non-overlapping",
    "clients": 10,
    "method": "fedprox",
    "seed": 0,
    "protocol": {**Protocol().model_dump(), "participation": 1.0, "metric": "accuracy"},
    "client": {
        **ClientSettings().model_dump(),
        "optimizer_state": "keep",
    },
    "hyper": {"mu": 0.001, "weights": "uniform"},
    "attack": Attack(ratio=0.2).model_dump(),
    "newcomers": Newcomers(ratio=0.2).model_dump(),
}
CHANGES: dict[str, Any] = {
    "dataset": "citeseer",
    "scenario": "overlapping",
    "clients": 20,
    "method": "fedavg",
    "seed": 1,
    "protocol.rounds": 99,
    "protocol.local_epochs": 4,
    "protocol.partition_seed": 124,
    "protocol.split": [20.0, 40.0, 40.0],
    "protocol.initial": "common",
    "protocol.evaluate": "epoch",
    "protocol.participation": 0.5,
    "protocol.metric": "roc_auc",
    "client.model": "hgnn",
    "client.hidden": 64,
    "client.dropout": 0.4,
    "client.optimizer": "sgd",
    "client.learning_rate": 0.02,
    "client.weight_decay": 0.0,
    "client.batch_size": 16,
    "client.optimizer_state": "reset",
    "hyper.mu": 0.002,
    "hyper.weights": "samples",
    "attack.kind": "gaussian",
    "attack.ratio": 0.4,
    "attack.tau": 20.0,
    "attack.target": "model",
    "newcomers.ratio": 0.4,
    "newcomers.epochs": 4,
}
PARTS = {"protocol": Protocol, "client": ClientSettings, "attack": Attack, "newcomers": Newcomers}


def set_path(tree: dict[str, Any], path: str, value: Any) -> None:
    """Set ``tree['a']['b'] = value`` for the path ``a.b``, making what is missing on the way."""
    *parents, leaf = path.split(".")
    for part in parents:
        tree = tree.setdefault(part, {})
    tree[leaf] = value


def changed(path: str, value: Any) -> dict[str, Any]:
    tree = json.loads(json.dumps(BASE))
    set_path(tree, path, value)
    return dict(tree)


def test_every_field_is_among_the_changes() -> None:
    fields = {name for name in RunSpec.model_fields if name not in (*PARTS, "hyper")}
    fields |= {f"{part}.{name}" for part, model in PARTS.items() for name in model.model_fields}
    assert fields == {path for path in CHANGES if not path.startswith("hyper.")}


def test_any_changed_field_changes_the_hash() -> None:
    hashes = [RunSpec.model_validate(BASE).hash]
    hashes += [RunSpec.model_validate(changed(path, value)).hash for path, value in CHANGES.items()]
    assert len(set(hashes)) == len(hashes)


def shuffled(tree: Any, data: Any) -> Any:
    """The same tree with keys in another order, some defaults left away, whole floats as ints."""
    if isinstance(tree, dict):
        order = data.draw(st.permutations(sorted(tree)))
        return {key: shuffled(tree[key], data) for key in order}
    if isinstance(tree, float) and tree.is_integer() and data.draw(st.booleans()):
        return int(tree)
    if isinstance(tree, list | tuple):
        return [shuffled(part, data) for part in tree]
    return tree


@settings(max_examples=60)
@given(st.data())
def test_order_of_keys_defaults_and_whole_numbers_do_not_matter(data: Any) -> None:
    tree = changed("client.weight_decay", 0.0)
    same = shuffled(tree, data)
    for part, model in (("protocol", Protocol), ("client", ClientSettings)):
        for name, info in model.model_fields.items():
            if tree[part][name] == BASE[part][name] == info.default and data.draw(st.booleans()):
                same[part].pop(name)
        if not same[part] and data.draw(st.booleans()):
            same.pop(part)
    one, other = RunSpec.model_validate(tree), RunSpec.model_validate(same)
    assert one.canonical() == other.canonical()
    assert one.hash == other.hash
    assert RunSpec.model_validate_json(one.canonical()) == one


def test_the_hash_is_sha256_of_sorted_compact_json() -> None:
    spec = RunSpec.model_validate(BASE)
    text = json.dumps(json.loads(spec.canonical()), sort_keys=True, separators=(",", ":"))
    assert spec.canonical() == text
    assert spec.hash == hashlib.sha256(text.encode()).hexdigest()


def test_settings_of_later_versions_are_absent_from_the_canonical_form_at_their_defaults() -> None:
    for path in ("protocol.participation", "protocol.metric", "client.optimizer_state"):
        section, _, name = path.partition(".")
        assert name not in RunSpec.model_validate(BASE).canonical()
        spec = RunSpec.model_validate(changed(path, CHANGES[path]))
        assert json.loads(spec.canonical())[section][name] == CHANGES[path]
        assert RunSpec.model_validate_json(spec.canonical()) == spec


def test_the_federation_key_is_what_decides_the_clients() -> None:
    spec = RunSpec.model_validate(BASE)
    assert spec.federation_key == ("cora", "non-overlapping", 10, 123, (40.0, 30.0, 30.0))
    decides = {"dataset", "scenario", "clients", "protocol.partition_seed", "protocol.split"}
    for path, value in CHANGES.items():
        other = RunSpec.model_validate(changed(path, value)).federation_key
        assert (other != spec.federation_key) == (path in decides), path


def test_settings_are_what_set_takes() -> None:
    """Every change by its dotted key gives the spec in which that key alone differs."""
    spec = RunSpec.model_validate(BASE)
    dotted = {
        path.replace("hyper.", "method."): (path, value) for path, value in CHANGES.items() if "." in path
    }
    assert set(spec.settings()) == set(dotted)
    for key, (path, value) in dotted.items():
        other = spec.with_settings({key: value})
        assert other == RunSpec.model_validate(changed(path, value))
        assert difference(spec, other) == {key: (spec.settings()[key], value)}
    assert difference(spec, spec) == {}
    assert spec.with_settings(spec.settings()) == spec


def test_what_one_spec_alone_has_differs_from_nothing() -> None:
    honest = RunSpec.model_validate({**BASE, "attack": None})
    attacked = RunSpec.model_validate(BASE)
    differences = difference(honest, attacked)
    assert {key: mine for key, (mine, _) in differences.items()} == {
        "attack.kind": None,
        "attack.ratio": None,
        "attack.tau": None,
        "attack.target": None,
    }
    assert differences["attack.ratio"][1] == 0.2


def test_a_section_or_key_that_does_not_exist_is_refused() -> None:
    spec = RunSpec.model_validate(BASE)
    with pytest.raises(RequestError, match="clients"):
        spec.with_settings({"clients.dropout": 0.1})
    with pytest.raises(ValidationError):
        spec.with_settings({"client.drop": 0.1})


def test_a_cell_is_everything_but_the_seed() -> None:
    spec = RunSpec.model_validate(BASE)
    for path, value in CHANGES.items():
        other = RunSpec.model_validate(changed(path, value))
        assert (other.cell == spec.cell) == (path == "seed"), path
        same = path in ("seed", "protocol.partition_seed")
        assert (other.cell_on_any_partition == spec.cell_on_any_partition) == same, path
    tree = json.loads(spec.canonical())
    del tree["seed"]
    text = json.dumps(tree, sort_keys=True, separators=(",", ":"))
    assert spec.cell == hashlib.sha256(text.encode()).hexdigest()


def test_hashes_with_other_seeds_are_those_of_the_specs_with_them() -> None:
    spec = RunSpec.model_validate(BASE)
    others = [spec.model_copy(update={"seed": seed}) for seed in (0, 7, 123)]
    assert spec.hashes((0, 7, 123)) == tuple(other.hash for other in others)
    redrawn = [
        other.with_settings({"protocol.partition_seed": seed})
        for seed, other in zip((0, 7, 123), others, strict=True)
    ]
    assert spec.hashes((0, 7, 123), partition_per_seed=True) == tuple(other.hash for other in redrawn)


# rules that pick a round


@st.composite
def curves(draw: st.DrawFn) -> tuple[NDArray[np.int32], ...]:
    """Validation counts and samples, test counts and samples; few values, so that ties are common."""
    rounds, clients = draw(st.integers(1, 6)), draw(st.integers(1, 4))
    drawn: list[NDArray[np.int32]] = []
    for _ in range(2):
        samples = draw(arrays.arrays(np.int32, clients, elements=st.integers(0, 4)))
        share = draw(arrays.arrays(np.int32, (rounds, clients), elements=st.integers(0, 4)))
        drawn += [np.minimum(share, samples), samples]
    return tuple(drawn)


def slow_mean(correct: NDArray[np.int32], samples: NDArray[np.int32], row: int) -> float:
    shares = [int(correct[row, c]) / int(samples[c]) for c in range(len(samples)) if samples[c] > 0]
    return sum(shares) / len(shares) if shares else 0.0


def first_best(values: list[float]) -> int:
    best = 0
    for row, value in enumerate(values):
        if value > values[best] + 1e-12:
            best = row
    return best


@given(curves())
def test_rules_against_slow_ones(curve: tuple[NDArray[np.int32], ...]) -> None:
    val, n_val, test, n_test = curve
    rounds, clients = val.shape
    by_val = [slow_mean(val, n_val, row) for row in range(rounds)]
    by_test = [slow_mean(test, n_test, row) for row in range(rounds)]
    np.testing.assert_allclose(client_mean(val, n_val), by_val, atol=1e-12)
    picked = {name: rule(val, n_val, test, n_test).tolist() for name, rule in RULES.items()}
    assert picked["last"] == [rounds - 1] * clients
    assert picked["client_best_val"] == [first_best([float(v) for v in val[:, c]]) for c in range(clients)]
    for name, values in (("best_val", by_val), ("best_test", by_test)):
        (row,) = set(picked[name])
        assert len(picked[name]) == clients
        assert values[row] == pytest.approx(max(values))
        assert row == first_best(values) or values[first_best(values)] == pytest.approx(
            values[row], abs=1e-12
        )


def test_ties_go_to_the_first_round_and_clients_without_samples_are_left_out() -> None:
    val = np.array([[1, 0], [2, 9], [2, 0]], np.int32)
    n_val = np.array([4, 0], np.int32)  # the second client has no validation item
    test = np.array([[3, 1], [0, 0], [3, 1]], np.int32)
    n_test = np.array([3, 2], np.int32)
    assert client_mean(val, n_val).tolist() == [0.25, 0.5, 0.5]
    assert RULES["best_val"](val, n_val, test, n_test).tolist() == [1, 1]
    assert RULES["best_test"](val, n_val, test, n_test).tolist() == [0, 0]
    assert RULES["last"](val, n_val, test, n_test).tolist() == [2, 2]
    assert RULES["client_best_val"](val, n_val, test, n_test).tolist() == [1, 1]
