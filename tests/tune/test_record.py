"""The files of finished searches, and which runs they make; those that come with the suite."""

import functools
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from stored_runs import FakeFederation

from bench.errors import NoDataError, RequestError
from bench.federation.build import build
from bench.grids import Filters, Planned, expand, load_grid
from bench.resolve import resolve
from bench.runner.plan import make_plan
from bench.runner.run import refuse_tuned_elsewhere
from bench.tune.record import Record, configurations, tuned, winner_of
from bench.tune.tuning import numerics

from .toy_tuning import EPOCHS, ROUNDS, finished, tuning

NAME = "local-cora-non-overlapping-3.json"
SETTINGS = {"protocol.rounds": ROUNDS, "protocol.local_epochs": EPOCHS}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("home")
    for method in ("local", "fedavg", "fedprox"):
        finished(folder, tuning(method, trials=5))
    return folder


@pytest.fixture
def shipped(tmp_path: Path) -> Path:
    """A folder in the place of what comes with the suite."""
    folder = tmp_path / "shipped"
    folder.mkdir()
    return folder


def planned(method: str, seed: int = 0, variant: str = "", **changes: Any) -> Planned:
    spec = resolve("cora", "non-overlapping", 3, method, seed, {**SETTINGS, **changes})
    return Planned(spec, method, variant)


@pytest.mark.parametrize(
    ("change", "message"), [({"test": 0.5}, "test: Extra inputs"), ({"cell": {}}, "dataset: Field required")]
)
def test_a_record_that_is_none_is_refused(
    home: Path, shipped: Path, change: dict[str, Any], message: str
) -> None:
    tree = json.loads((home / "tuned" / NAME).read_text()) | change
    (shipped / NAME).write_text(json.dumps(tree))
    with pytest.raises(RequestError, match=f"^tuned configuration {NAME}: {message}"):
        configurations(home, shipped)


def test_planned_runs_get_the_winner_of_their_cell(home: Path, shipped: Path) -> None:
    known = configurations(home, shipped)
    best = Record.model_validate_json((home / "tuned" / NAME).read_bytes()).winner.overrides
    every = [planned("local", 0), planned("local", 1), planned("majority"), planned("fedavg_ft")]
    runs = tuned(every, known)
    assert [run.names for run in runs] == [run.names for run in every]
    for run, seed in zip(runs[:2], (0, 1), strict=True):
        assert run.spec == resolve("cora", "non-overlapping", 3, "local", seed, {**SETTINGS, **best})
    assert runs[2] == every[2]
    (average,) = tuned([planned("fedavg")], known)
    assert runs[3].spec == average.spec, "one configuration serves FedAvg and what is read from its run"


def test_the_partition_may_differ_and_nothing_else(home: Path, shipped: Path) -> None:
    known = configurations(home, shipped)
    (other,) = tuned([planned("local", **{"protocol.partition_seed": 5})], known)
    assert other.spec.protocol.partition_seed == 5
    for change in ({"protocol.rounds": 7}, {"client.hidden": 64}, {"protocol.split": [60, 20, 20]}):
        with pytest.raises(RequestError, match="no tuned configuration with these settings for local cora"):
            tuned([planned("local", **change)], known)
    with pytest.raises(RequestError, match=r"fedprox cora non-overlapping 3 \(method.mu=0.1\)"):
        tuned([planned("fedprox", variant="method.mu=0.1", **{"method.mu": 0.1})], known)


def test_a_configuration_of_other_clients_is_not_applied(home: Path, shipped: Path) -> None:
    known = configurations(home, shipped)
    plan = make_plan(tuned([planned("local"), planned("fedavg")], known), {}, lambda dataset: "")
    key = plan[0].spec.federation_key
    refuse_tuned_elsewhere(plan, {key: FakeFederation().hash})
    text = "--use-tuned: local .* seed 0 was tuned on other clients than there are now"
    with pytest.raises(RequestError, match=text):
        refuse_tuned_elsewhere(plan, {key: "another"})
    elsewhere = tuned([planned("local", **{"protocol.partition_seed": 5})], known)
    plan = make_plan(elsewhere, {}, lambda dataset: "")
    refuse_tuned_elsewhere(plan, {plan[0].spec.federation_key: "another"})


def test_a_configuration_of_other_numerics_is_not_applied(home: Path, shipped: Path, tmp_path: Path) -> None:
    """``shipped`` is of the installed code where the user's own is not."""
    tree = json.loads((home / "tuned" / NAME).read_text())
    tree["numerics"]["engine"] -= 1
    (tmp_path / "tuned").mkdir()
    (tmp_path / "tuned" / NAME).write_text(json.dumps(tree))
    text = r"local cora non-overlapping 3 \(tuned by code of other numerics\): run bench tune for it"
    with pytest.raises(RequestError, match=text):
        tuned([planned("local")], configurations(tmp_path, shipped))
    shutil.copy(home / "tuned" / NAME, shipped / NAME)
    (run,) = tuned([planned("local")], configurations(tmp_path, shipped))
    assert run.spec == tuned([planned("local")], configurations(home, shipped))[0].spec


def test_seeds_of_the_search_are_not_reported(home: Path, shipped: Path) -> None:
    with pytest.raises(RequestError, match="seed 1001 was used to tune local on cora"):
        tuned([planned("local", 1001)], configurations(home, shipped))


def test_ones_own_configuration_comes_before_the_suites(home: Path, shipped: Path, tmp_path: Path) -> None:
    shutil.copy(home / "tuned" / NAME, shipped / NAME)
    longer, other = tuning("local", trials=7), tuning("local", trials=3)
    protocol = other.spec.protocol.model_copy(update={"initial": "common"})
    other = replace(other, spec=other.spec.model_copy(update={"protocol": protocol}))
    found = []
    for search in (None, longer, other):  # the last is for other settings: the suite's is used where it fits
        if search is not None:
            finished(tmp_path, search)
        winner = configurations(tmp_path, shipped)[planned("local").spec.cell_on_any_partition][0]
        found.append((winner.own, winner.budget.trials))
    assert found == [(False, 5), (True, 7), (False, 5)]


# What comes with the suite: whole, of the present code, on the present clients -------------------------

FOLDER = Path(__file__).parents[2] / "results" / "tuned"
FILES = sorted(FOLDER.glob("*.json"))
CELLS = (("cora", 10), ("cora", 20), ("citeseer", 10), ("citeseer", 20))


@functools.cache
def hash_of(key: tuple[Any, ...]) -> str:
    try:
        return build(*key).hash
    except NoDataError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_search_that_was_whole_and_fair(path: Path) -> None:
    record = Record.model_validate_json(path.read_bytes())
    spec = record.spec
    assert path.stem == f"{spec.method}-{spec.dataset}-{spec.scenario}-{spec.clients}"
    assert record.winner == winner_of(record.trials)
    assert record.numerics == numerics(spec.method), "older code: tune again"
    assert record.clients == hash_of(spec.federation_key)
    assert record.budget.trials == 20
    left = record.budget.client_epochs - record.used.client_epochs
    dearest = max(trial.client_epochs for trial in record.trials)
    assert record.used.trials == 20 or left < max(dearest, 0.05 * record.budget.client_epochs)
    assert record.seeds == (1000,), "as many for every method, and none of the reports'"


@pytest.mark.parametrize(("dataset", "clients"), CELLS)
def test_every_method_of_the_study_is_tuned(dataset: str, clients: int, tmp_path: Path) -> None:
    planned = expand(load_grid("tuning_fedsheafhn"), Filters(datasets=(dataset,), clients=(clients,)))
    known = configurations(tmp_path)  # nobody's own
    assert len({run.method for run in tuned(planned, known) if run.tuned_on}) == 12
