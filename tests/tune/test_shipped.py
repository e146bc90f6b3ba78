"""The tuned configurations that come with the suite: whole, of the present code, on the present clients."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import pytest

from bench.errors import NoDataError
from bench.federation.build import build
from bench.grids import Filters, expand, load_grid
from bench.tune.record import Record, configurations, tuned, winner_of
from bench.tune.tuning import numerics

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
