"""What a run is: the canonical form, its hash, limits; and the rules that pick a round."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from bench.selection import RULES, client_mean
from bench.spec import Attack, ClientSettings, Newcomers, Protocol, RunSpec

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


def test_order_of_keys_defaults_and_whole_numbers_do_not_matter() -> None:
    tree = changed("client.weight_decay", 0.0)
    same = {**BASE, "attack": dict(reversed(BASE["attack"].items()))}
    same |= {"protocol": {"split": [40, 30, 30]}, "client": {"weight_decay": 0}}
    same = dict(reversed(same.items()))
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
        assert {name for name, own in spec.settings().items() if own != other.settings()[name]} == {key}
    assert spec.with_settings(spec.settings()) == spec


def test_a_key_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValidationError):
        RunSpec.model_validate(BASE).with_settings({"client.drop": 0.1})


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


def test_rules_take_the_first_best_round_and_leave_out_clients_without_samples() -> None:
    val = np.array([[1, 0, 2], [2, 9, 1], [2, 0, 1]], np.int32)
    n_val = np.array([4, 0, 4], np.int32)  # the second client has no validation item
    test = np.array([[3, 1, 0], [0, 0, 1], [3, 1, 0]], np.int32)
    n_test = np.array([3, 2, 5], np.int32)
    assert client_mean(val, n_val).tolist() == [0.375, 0.375, 0.375]
    assert client_mean(test, n_test) == pytest.approx([(1 + 1 / 2) / 3, (1 / 5) / 3, (1 + 1 / 2) / 3])
    picked = {name: rule(val, n_val, test, n_test).tolist() for name, rule in RULES.items()}
    assert picked == {
        "best_val": [0] * 3,
        "best_test": [0] * 3,
        "last": [2] * 3,
        "client_best_val": [1, 1, 0],
    }
    later = np.array([[1, 0, 1], [2, 9, 2], [2, 0, 2]], np.int32)
    assert RULES["best_val"](later, n_val, later, n_val).tolist() == [1, 1, 1]
    assert client_mean(later, np.zeros(3, np.int32)).tolist() == [0, 0, 0]
