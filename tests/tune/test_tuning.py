"""What is searched, and what a search's name and budget follow from."""

import math
from dataclasses import replace

import pytest

from bench.dataset import DATASETS
from bench.engine.methods import METHODS
from bench.errors import RequestError
from bench.grids import Planned, load_grid
from bench.resolve import resolve
from bench.spec import RunSpec
from bench.tune.tuning import REPORT_SEEDS, configured, search_seeds, search_space, tunings

from .toy_tuning import tuning

FAMILIES = {"graph": "cora", "hypergraph": "coraca", "image": "cifar10"}


def spec_of(method: str) -> RunSpec:
    kind = METHODS.named(method)
    dataset = FAMILIES.get(kind.families[0], "cora")
    return resolve(dataset, DATASETS.named(dataset).scenarios[0], 10, method, 1000)


@pytest.mark.parametrize("method", sorted(name for name, kind in METHODS.all().items() if kind.trains))
def test_every_method_searches_few_parameters_around_its_default(method: str) -> None:
    spec = spec_of(method)
    space = search_space(spec)
    assert sum(key.startswith("method.") for key in space) <= 3
    assert set(space) >= {"client.learning_rate", "client.weight_decay"}
    for key, values in space.items():
        assert spec.settings()[key] in values, "the default is in the space"
        for value in values:
            assert configured(spec, {key: value}).settings()[key] == value


def test_shared_settings_have_the_same_values_for_all() -> None:
    local, other = (
        search_space(resolve("cora", "non-overlapping", 3, name, 0)) for name in ("local", "fedsheafhn")
    )
    assert local.items() <= other.items()
    assert {key.partition(".")[0] for key in local} == {"client"}
    assert {key.partition(".")[0] for key in other.keys() - local.keys()} == {"method"}


def test_a_default_outside_of_the_values_joins_them_and_batches_have_no_dropout() -> None:
    odd = resolve("cora", "non-overlapping", 3, "fedprox", 0, {"method.mu": 0.05, "client.dropout": 0.4})
    assert search_space(odd)["method.mu"] == (0.001, 0.01, 0.05, 0.1)
    assert search_space(odd)["client.dropout"] == (0.0, 0.3, 0.4, 0.5)
    assert "client.dropout" not in search_space(resolve("cifar10", "dirichlet0.1", 10, "fedavg", 0))


def test_a_configuration_changes_what_it_names_and_nothing_else() -> None:
    spec = resolve("cora", "non-overlapping", 3, "fedprox", 7)
    overrides = {"client.learning_rate": 0.03, "method.mu": 0.1}
    assert configured(spec, overrides) == resolve("cora", "non-overlapping", 3, "fedprox", 7, overrides)
    for wrong in ({"method.nu": 0.1}, {"method.mu": -1.0}):
        with pytest.raises(RequestError, match=r"^fedprox: \w+: "):
            configured(spec, wrong)


def test_budget_and_name() -> None:
    search = tuning("local", 8)
    assert search.budget == 8 * 6 * 2 * 2  # trials, rounds, local epochs, seeds
    assert len(search.configurations) == 4 * 4 * 3
    assert math.isclose(search.budget, tuning("fedsheafhn", 8).budget)
    same = replace(search, trials=20, spec=search.spec.model_copy(update={"seed": 3}))
    assert same.name == search.name, "a search goes on with a larger total"
    others = [
        replace(search, seeds=(1000, 1002)),
        replace(search, space={"client.dropout": (0.0, 0.5)}),
        replace(search, spec=configured(search.spec, {"client.dropout": 0.3})),
        tuning("fedavg", 8),
        tuning("local", 8, clients=4),
    ]
    assert len({search.name, *(search.name for search in others)}) == 6
    first, second = search.specs({**search.default, "client.dropout": 0.0})
    assert (first.seed, second.seed, first.client.dropout) == (1000, 1001, 0.0)


def test_the_search_keeps_away_from_the_seeds_of_every_grid() -> None:
    chosen = search_seeds(())
    assert chosen == (1000, 1001)
    for name in ("paper_tables", "robust", "fedhgn_tables", "tuning_fedsheafhn"):
        assert set(load_grid(name).seeds) <= set(REPORT_SEEDS)
    assert search_seeds((20, 77)) == (20, 77)
    for wrong in ((1000, 19), (0,), (-1,)):
        with pytest.raises(RequestError, match=f"20 or more, got {', '.join(map(str, wrong))}"):
            search_seeds(wrong)


def planned(method: str, variant: str = "") -> Planned:
    return Planned(resolve("cora", "non-overlapping", 10, method, 1000), method, variant)


def test_one_search_serves_a_method_and_those_that_read_its_run() -> None:
    runs = [planned(method) for method in ("fedavg", "fedavg_ft", "majority", "local")]
    searches, skipped = tunings(runs, 5, (1000,))
    assert [search.spec.method for search in searches] == ["fedavg", "local"]
    assert skipped == {"majority cora non-overlapping 10": "majority does not train"}
    (alone,), _ = tunings([planned("fedavg_ft")], 5, (1000,))
    assert alone.name == searches[0].name


def test_what_has_no_search() -> None:
    with pytest.raises(RequestError, match="expected plain cells"):
        tunings([planned("fedprox", "method.mu=0.1")], 5, (1000,))
    spec = resolve("coraca", "label-dirichlet", 10, "fedsheafhn", 1000)
    with pytest.raises(RequestError, match="not on hypergraph"):
        tunings([Planned(spec, "fedsheafhn")], 5, (1000,))
