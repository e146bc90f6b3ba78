"""Grid files and how they become runs."""

import re
from pathlib import Path

import pytest

from bench.errors import RequestError
from bench.grids import Filters, Grid, expand, grid_names, load_grid, requested_grid
from bench.grids.grid import parse_grid
from bench.studies.published import published

SMALL = """
title = "small"
methods = ["local", "fedavg", "majority"]
seeds = [0, 1]

[protocol]
rounds = 7

[[settings]]
datasets = ["cora", "citeseer"]
scenario = "non-overlapping"
clients = [3, 5]

[[settings]]
datasets = "cora"
scenario = "overlapping"
clients = 10
methods = "local"

[[override]]
match = { method = "local", dataset = "cora" }
set = { "protocol.local_epochs" = 2, "client.dropout" = 0.25 }

[[override]]
match = { scenario = "overlapping" }
set = { "protocol.local_epochs" = 9 }
"""


@pytest.fixture
def small() -> Grid:
    return parse_grid(SMALL, "small")


def test_product_order_and_overrides(small: Grid) -> None:
    planned = expand(small)
    assert len(planned) == 2 * (2 * 2 * 3 + 1)
    assert [plan.spec.seed for plan in planned] == [0] * 13 + [1] * 13
    specs = {plan.names: plan.spec for plan in planned}
    local = specs["cora", "non-overlapping", 5, "local", 1]
    assert (local.protocol.rounds, local.protocol.local_epochs, local.client.dropout) == (7, 2, 0.25)
    other = specs["citeseer", "non-overlapping", 5, "local", 1]
    assert (other.protocol.rounds, other.protocol.local_epochs, other.client.dropout) == (7, 3, 0.5)
    last = specs["cora", "overlapping", 10, "local", 0]
    assert (last.protocol.local_epochs, last.client.dropout) == (9, 0.25), "later blocks win"


def test_every_run_is_made_once_for_each_variant_and_overrides_may_be_for_a_client_model() -> None:
    text = """
title = "variants"
methods = ["fedprox", "local"]
seeds = [0]
[[settings]]
datasets = ["cora"]
scenario = "non-overlapping"
clients = [5]
variants = [{}, { "method.mu" = 0.5 }, { "method.mu" = 0.001 }, { "client.model" = "sage" }]
methods = ["fedprox"]
[[settings]]
datasets = ["cora"]
scenario = "non-overlapping"
clients = [5]
[[override]]
match = { model = "sage", method = "fedprox" }
set = { "method.mu" = 0.7 }
[[override]]
match = { model = "gcn" }
set = { "protocol.rounds" = 3 }
"""
    plans = expand(parse_grid(text, "variants"))
    # mu = 0.001 is the default, so the third variant is the plain run, which the second setting repeats.
    found = [(run.method, run.spec.hyper.get("mu"), run.spec.protocol.rounds) for run in plans]
    assert found == [("fedprox", 0.001, 3), ("fedprox", 0.5, 3), ("fedprox", 0.7, 100), ("local", None, 3)]
    with pytest.raises(RequestError, match=r"settings\.0\.variants"):
        parse_grid(re.sub("variants = .*", "variants = []", text, count=1), "variants")


def test_command_line_overrides_come_last(small: Grid) -> None:
    planned = expand(small, overrides={"protocol.rounds": 2, "protocol.local_epochs": 1})
    trained = [plan.spec for plan in planned if plan.method != "majority"]
    assert {(spec.protocol.rounds, spec.protocol.local_epochs) for spec in trained} == {(2, 1)}


def test_partition_per_seed(small: Grid) -> None:
    fixed = {plan.spec.protocol.partition_seed for plan in expand(small)}
    assert fixed == {123}
    redrawn = small.model_copy(update={"partition_per_seed": True})
    assert {(p.spec.seed, p.spec.protocol.partition_seed) for p in expand(redrawn)} == {(0, 0), (1, 1)}
    forced = expand(redrawn, overrides={"protocol.partition_seed": 5})
    assert {plan.spec.protocol.partition_seed for plan in forced} == {5}


@pytest.mark.parametrize(
    ("filters", "count"),
    [
        (Filters(datasets=("citeseer",)), 12),
        (Filters(datasets=("citeseer",), seeds=(1,)), 6),
        (Filters(methods=("local", "majority"), clients=(3,)), 8),
        (Filters(scenarios=("overlapping",)), 2),
        (Filters(datasets=("citeseer",), seeds=(7, 1, 8)), 18),
    ],
)
def test_filters(small: Grid, filters: Filters, count: int) -> None:
    planned = expand(small, filters)
    assert len(planned) == count
    assert {run.spec.seed for run in planned} == set(filters.seeds or (0, 1)), (
        "named seeds replace the grid's"
    )


ONE_BRACKET = """title = "x"\nmethods = "local"\nseeds = 0\n
[settings]\ndatasets = "cora"\nscenario = "overlapping"\nclients = 10\n"""
POINTS = """title = "points"\nseeds = 0\nlines = ["fedprox", "local"]
points = [{ settings = { "method.mu" = 0.5 } }]
[[columns]]\ndatasets = "cora"\nscenario = "overlapping"\nclients = 10\n"""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("title = ", ["bad.toml", "TOML"]),
        (SMALL.replace("seeds =", "seed ="), ["seeds: "]),
        (ONE_BRACKET, ["settings: "]),
        (SMALL.replace("seeds = [0, 1]", 'seeds = ["0"]'), ["seeds.0: "]),
        (SMALL.replace('"citeseer"]', '"citesear"]'), ["'citesear'", "'citeseer'"]),
        (SMALL.replace('"overlapping"', '"dirichlet0.1"'), ["images"]),
        (SMALL.replace('"client.dropout" = 0.25', '"client.dropout" = 1.5'), ["client.dropout: "]),
        (POINTS, ["points", "local", "method.mu=0.5", "'method.mu'"]),  # that one line lacks
    ],
)
def test_bad_grid_files(tmp_path: Path, text: str, words: list[str]) -> None:
    (tmp_path / "bad.toml").write_text(text)
    with pytest.raises(RequestError) as caught:
        expand(load_grid(str(tmp_path / "bad.toml")))
    assert [word for word in words if word not in str(caught.value)] == []
    assert "\n" not in str(caught.value)


def test_paper_tables_is_both_tables_of_the_paper() -> None:
    cells = {plan.names[:4] for plan in expand(load_grid("paper_tables")) if plan.method != "majority"}
    values = [value for value in published("fedsheafhn_final") if value.metric == "accuracy"]
    assert cells == {
        (value.dataset, value.scenario, value.clients, value.method)
        for value in values
        if value.table in ("Table 1", "Table 2")
    }


@pytest.mark.parametrize("name", grid_names())
def test_every_shipped_grid_expands(name: str) -> None:
    planned = expand(load_grid(name))
    assert planned
    assert len({(plan.names, plan.spec.hash) for plan in planned}) == len(planned)


def test_method_overrides_go_to_the_methods_that_have_them() -> None:
    grid = requested_grid(None, Filters(datasets=("cora",), methods=("fedavg", "fedprox")))
    fedavg, fedprox = (run.spec for run in expand(grid, overrides={"method.mu": 0.5}))
    assert fedprox.hyper["mu"] == 0.5
    assert fedavg == expand(grid)[0].spec
    with pytest.raises(RequestError, match=r"method\.nu"):
        expand(grid, overrides={"method.nu": 0.5})
    with pytest.raises(RequestError, match="did you mean 'protocol'"):
        expand(grid, overrides={"protocl.rounds": 5})
