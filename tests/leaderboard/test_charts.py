"""The data of charts as scripts, and the library that draws them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from stored_runs import CORA, MemoryStore
from study_cells import main_tables
from toy_study import ToyStudy

from bench.errors import RequestError
from bench.leaderboard import charts
from bench.leaderboard.boards import StudyBoards
from bench.leaderboard.charts import script_json
from bench.report.findings import Findings
from bench.spec import RunSpec
from bench.studies.planned import PlannedCell
from bench.studies.results import Results
from bench.studies.settings import Column, settings_of


def test_scripts_hold_no_sign_that_html_knows() -> None:
    value = {"a</script>": ["\u2028\u2029é", "<!--", 1.5, None, True]}
    text = script_json(value)
    assert not set("<>&'\u2028\u2029é") & set(text)
    assert json.loads(text) == value
    with pytest.raises(ValueError, match="Out of range"):
        script_json(float("nan"))


def test_the_library_is_named_by_version_and_hash(site: Path) -> None:
    library = charts.library()
    assert library.sha256[:12] in library.file
    assert (site / "assets" / library.file).read_text(encoding="utf-8") == library.text
    assert "window.vegaEmbed" in library.text
    assert library.sha256 in (site / "about.html").read_text()


def local_by_seed(folder: Path, per_seed: bool, seeds: int) -> dict[str, Any]:
    """What a board draws of Local, whose one client has 70 of 100 right with seed 0, 50 with the others, and
    sends 3 MB with seed 0 alone.
    """
    database = MemoryStore()
    for seed in range(seeds):
        database.add(
            "local",
            seed,
            [50 if seed else 70],
            protocol=CORA.model_copy(update={"partition_seed": seed if per_seed else 0}),
            partition_hash=f"{seed if per_seed else 0:064d}",
            bytes_up=0 if seed else 3_000_000,
        )
    spec = RunSpec.model_validate_json(database.runs()["spec"].iloc[0])
    usual = {
        (Column("cora", "non-overlapping", 10), "local"): PlannedCell(settings_of(spec, per_seed=per_seed))
    }
    study, results = ToyStudy(), Results(database, usual)
    tables = main_tables(study, results)
    boards = StudyBoards(study, tables, Findings(study, tables, None), (), results)
    assert charts.write(boards, "cora", folder, "toy")
    script = (folder / "toy.js").read_text(encoding="ascii")
    ((method,),) = json.loads(script.removeprefix("benchCharts(").removesuffix(");\n")).values()
    return dict(method)


def test_clients_of_other_partitions_are_not_averaged(tmp_path: Path) -> None:
    assert local_by_seed(tmp_path, per_seed=True, seeds=2)["clients"] == [
        ["0 of seed 0", 70.0],
        ["0 of seed 1", 50.0],
    ]
    names = [line.split(",")[3] for line in (tmp_path / "toy-clients.csv").read_text().splitlines()]
    assert names == ["client", "0 of seed 0", "0 of seed 1"]
    assert local_by_seed(tmp_path, per_seed=False, seeds=2)["clients"] == [["0", 60.0]]


@pytest.mark.parametrize(("seeds", "is_drawn"), [(2, False), (3, True)])
def test_two_seeds_have_no_interval_in_a_chart(seeds: int, is_drawn: bool, tmp_path: Path) -> None:
    drawn = local_by_seed(tmp_path, per_seed=False, seeds=seeds)
    assert (drawn["low"] is not None, drawn["high"] is not None) == (is_drawn, is_drawn)


@pytest.mark.parametrize("changed", ["script", "version"])
def test_a_script_that_is_not_known_is_refused(changed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if changed == "script":
        monkeypatch.setattr("vl_convert.javascript_bundle", lambda: "window.vegaEmbed = 1")
    else:
        monkeypatch.setattr(charts, "version", lambda package: "0.0.1")
    with pytest.raises(RequestError, match="SHA-256") as refused:
        charts.library()
    assert "\n" not in str(refused.value)
