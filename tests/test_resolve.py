"""From names and overrides to a spec; whatever is wrong is one line with the nearest name."""

from __future__ import annotations

from typing import Any

import pytest

from bench.dataset import DATASETS
from bench.engine.methods import METHODS
from bench.errors import RequestError, unknown
from bench.hyper import HyperParameters, tunable
from bench.methods.fedavg import FedAvg
from bench.resolve import parse_overrides, resolve, run_of


def on_cora(method: str, **overrides: Any) -> Any:
    named = {key.replace("__", "."): value for key, value in overrides.items()}
    return resolve("cora", "non-overlapping", 10, method, 0, named)


@pytest.mark.parametrize("method", sorted(METHODS.all()))
def test_every_method_resolves_with_all_its_hyper_parameters(method: str) -> None:
    kind = METHODS.named(method)
    spec = on_cora(method)
    assert spec.hyper == kind.Hyper().model_dump()
    assert spec.method == {"fedavg_ft": "fedavg", "fedprox_ft": "fedprox"}.get(method, method)
    assert type(spec).model_validate_json(spec.canonical()).hash == spec.hash


def test_defaults_come_from_the_data_set() -> None:
    for name, data in DATASETS.all().items():
        spec = resolve(name, data.scenarios[0], 2, "fedavg", 3)
        assert spec.protocol == data.protocol
        assert spec.client == data.client
        assert (spec.dataset, spec.clients, spec.seed) == (name, 2, 3)


def test_settings_that_are_part_of_a_method_stand_between_the_data_sets_and_the_requests() -> None:
    wanted = {"protocol.initial": "own"}
    assert DATASETS.named("cora").protocol.initial == "own"
    assert resolve("cora", "non-overlapping", 10, "fedavg", 0).protocol.initial == "own"
    assert resolve("cora", "non-overlapping", 10, "fedper", 0).protocol.initial == "common"
    assert resolve("cora", "non-overlapping", 10, "fedper", 0, wanted).protocol.initial == "own"
    rest = resolve("cora", "non-overlapping", 10, "fedper", 0).protocol.model_dump(exclude={"initial"})
    assert rest == DATASETS.named("cora").protocol.model_dump(exclude={"initial"})


class Mixin:
    """What makes another method of a class that is beside it."""

    def shared(self) -> tuple[str, ...]:
        return ()


class Sends(FedAvg):
    """A base without a name: no runs are its own."""

    shared = Mixin.shared


@pytest.mark.parametrize(
    ("bases", "values", "runs"),
    [
        ((FedAvg,), {"stage": "trained"}, "fedavg"),
        ((FedAvg,), {"stage": "trained", "shared": Mixin.shared}, "other"),
        ((FedAvg,), {}, "other"),
        ((Sends,), {"stage": "trained"}, "other"),
        ((FedAvg, Mixin), {"stage": "trained"}, "other"),
        ((Mixin, FedAvg), {"stage": "trained"}, "other"),
    ],
)
def test_only_a_class_that_changes_nothing_but_the_stage_shows_runs_of_its_base(
    bases: tuple[type, ...], values: dict[str, Any], runs: str
) -> None:
    assert run_of(type("Other", bases, {"name": "other", "title": "Other", **values})) == runs


@pytest.mark.parametrize("name", ["client", "protocol", "adapt"])
def test_a_method_of_0_2_0_with_a_name_that_nothing_uses_is_refused(name: str) -> None:
    with pytest.raises(TypeError, match=name):
        type("Old", (FedAvg,), {name: {}})


def test_hyper_parameters_have_the_values_of_the_data_set_s_study() -> None:
    def on_images(dataset: str, method: str, **overrides: Any) -> Any:
        return resolve(dataset, "dirichlet0.1", 20, method, 0, overrides).hyper

    for dataset in ("cifar10", "cifar100-sample", "tiny-imagenet"):
        assert on_images(dataset, "fedprox") == {"mu": 0.01, "weights": "samples"}
        assert on_images(dataset, "fedavg") == on_images(dataset, "fedavg_ft") == {"weights": "samples"}
    assert on_images("cifar10", "fedprox", **{"method.mu": 0.001})["mu"] == 0.001
    assert [on_images(dataset, "fedcp")["strength"] for dataset in ("cifar10", "tiny-imagenet")] == [5, 1]
    assert on_cora("fedprox").hyper == {"mu": 0.001, "weights": "uniform"}


def test_overrides_reach_their_section_and_whole_numbers_are_floats() -> None:
    spec = on_cora("fedprox", protocol__rounds=8, client__weight_decay=0, method__mu=1)
    assert spec.protocol.rounds == 8
    assert repr(spec.client.weight_decay) == "0.0"
    assert repr(spec.hyper["mu"]) == "1.0"
    assert spec.hash == on_cora("fedprox", method__mu=1.0, client__weight_decay=0.0, protocol__rounds=8).hash
    assert on_cora("fedprox", method__mu=0.001).hash == on_cora("fedprox").hash
    assert spec.hash != on_cora("fedprox").hash


def test_fine_tuned_fedavg_is_read_from_fedavgs_run() -> None:
    assert on_cora("fedavg_ft").hash == on_cora("fedavg").hash
    assert (
        on_cora("fedavg_ft", method__weights="samples").hash
        == on_cora("fedavg", method__weights="samples").hash
    )


def test_methods_that_train_nothing_run_one_round() -> None:
    assert on_cora("majority").protocol.rounds == 1
    assert on_cora("majority", protocol__rounds=50).protocol.rounds == 1


@pytest.mark.parametrize(
    ("request_", "says"),
    [
        ({"dataset": "croa"}, ["dataset", "'croa'", "'cora'"]),
        ({"method": "fedag"}, ["method", "'fedag'", "'fedavg'"]),
        ({"clients": 0}, ["clients", "equal to 1", "0"]),
        ({"seed": -2}, ["seed", "-2"]),
        ({"overrides": {"protocol.rounds": 2**63}}, ["protocol.rounds", str(2**63)]),
        ({"overrides": {"protocol.round": 3}}, ["protocol.round", "'rounds'"]),
        ({"overrides": {"method.mux": 3}}, ["method.mux", "'mu'"]),
        ({"overrides": {"protocol.participation": 0.04}}, ["protocol.participation", "0.04", "10 clients"]),
        (
            {"overrides": {"protocol.participation": 0.2, "newcomers.ratio": 0.8}},
            ["protocol.participation", "0.2", "2 clients"],
        ),
        ({"overrides": {"method.mu": -1}}, ["method.mu", "-1"]),
        ({"overrides": {"protocol.split": [1, 2]}}, ["protocol.split"]),
        (
            {"overrides": {"attack.ratio": 0.96}},
            ["attack.ratio: 0.96 of 10 clients is"],
        ),
        ({"overrides": {"attack.tau": 5.0}}, ["attack.ratio: expected beside attack.tau"]),
        ({"overrides": {"newcomers.ratio": 0.2, "attack.ratio": 0.2}}, ["two experiments"]),
        (
            {"method": "fedsheafhn", "overrides": {"method.collaboration": "transformer"}},
            ["method.collaboration", "'sheaf', 'gcn', 'gat' or 'none'"],
        ),
    ],
)
def test_a_wrong_request_is_one_line(request_: dict[str, Any], says: list[str]) -> None:
    right: dict[str, Any] = {
        "dataset": "cora",
        "scenario": "non-overlapping",
        "clients": 10,
        "method": "fedprox",
        "seed": 0,
    }
    with pytest.raises(RequestError) as caught:
        resolve(**{**right, **request_})
    message = str(caught.value)
    assert "\n" not in message
    for part in says:
        assert part in message


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("8", 8),
        ("[20, 40, 40]", [20, 40, 40]),
        ("false", False),
        ("gcn", "gcn"),
        ('"knn"', "knn"),
        (" 1e-3", 1e-3),
    ],
)
def test_overrides_are_read_as_toml_else_as_text(text: str, value: object) -> None:
    assert parse_overrides([f"method.mu={text}", "client.model =cnn"]) == {
        "method.mu": value,
        "client.model": "cnn",
    }


@pytest.mark.parametrize("pair", ["protocol.rounds", "rounds=8", "=8", ""])
def test_an_override_without_section_or_value_is_refused(pair: str) -> None:
    with pytest.raises(RequestError, match=r"SECTION\.KEY=VALUE"):
        parse_overrides([pair])


def test_unknown_names_list_what_there_is() -> None:
    near = str(unknown("method", "fedvag", ["local", "fedavg"]))
    assert "did you mean 'fedavg'" in near
    far = str(unknown("method", "zzz", ["local", "fedavg"]))
    assert "did you mean" not in far
    assert "fedavg, local" in far
    many = [f"method{letter}" for letter in "abcdefghijklmnop"]
    assert "methodb" not in str(unknown("method", "methoda_", many)), "a near name alone is enough"
    assert str(unknown("method", "foo", many)).endswith("methodl, ...")
    assert "did you mean" not in str(unknown("method", "gradmix", ["fedpub_gradient"]))


def test_a_search_space_names_tunable_hyper_parameters_only() -> None:
    class Hyper(HyperParameters):
        rate: float = tunable(0.1, search=[0.1, 0.2], gt=0)
        fixed: int = 3

    assert Hyper.search_space() == {"rate": [0.1, 0.2]}
    with pytest.raises(ValueError, match="greater than 0"):
        Hyper(rate=0)
