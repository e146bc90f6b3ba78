"""A study's files: what they run, what they show, and what is refused."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from stored_runs import MemoryStore
from study_cells import cells_of
from study_cells import shown as shown_cells

from bench import registry
from bench.cli.main import main
from bench.errors import RequestError
from bench.frames.graded_cells import collect
from bench.grids import expand, load_grid
from bench.report.request import Request
from bench.report.score import agreements
from bench.report.tables import document_of
from bench.site.documents import build
from bench.spec import RunSpec
from bench.studies.experiment import read
from bench.studies.settings import Reading
from bench.studies.study import STUDIES, Study

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "own_study.py"

TWO_MODELS = """
title = "two client models"
seeds = [0, 1]
lines = [
  { method = "fedavg", title = "FedAvg", stage = "received" },
  { method = "fedavg_ft", title = "FedAvg-FT", reads = "fedavg", stage = "trained" },
  { method = "fedprox", title = "FedProx", only = { dataset = "cora" } },
  { method = "fedprox", title = "FedProx, mu 0.1", settings = { "method.mu" = 0.1 }, points = "GCN" },
]
points = [
  { label = "GCN" },
  { label = "GraphSAGE", settings = { "client.model" = "sage" }, datasets = { cora = "cora_sage" } },
]

[[columns]]
datasets = ["cora", "citeseer"]
scenario = "non-overlapping"
clients = 10

[[override]]
match = { model = "sage" }
set = { "protocol.rounds" = 7 }

[[tables]]
name = "models"
title = "Two client models"
ranked = true
comparisons."Table 1" = [["mine", "T"]]
measures = ["accuracy"]
"""

PUBLISHED = """paper,table,study,dataset,scenario,clients,method,setting,metric,mean,std,unit,status
mine,T,s,cora,non-overlapping,10,fedavg,,accuracy,60,1,percent,
mine,T,s,cora_sage,non-overlapping,10,fedavg,,accuracy,70,1,percent,
mine,T,s,cora_sage,non-overlapping,10,fedavg_ft,,accuracy,80,1,percent,
"""


def study_in(folder: Path, text: str = TWO_MODELS) -> type[Study]:
    (folder / "models.toml").write_text(text, encoding="utf-8")
    (folder / "mine.csv").write_text(PUBLISHED, encoding="utf-8")

    class Mine(Study):
        name = "mine"
        title = "Mine"
        grids = ()
        lines = ()
        experiments = read(folder, ("models",), ())
        primary = Reading("trained", "best_val")
        published = folder

    return Mine


def filled(study: type[Study]) -> MemoryStore:
    """Every run of the study's grid: 60 % received with GCN and 70 % with GraphSAGE, ten more when trained,
    and by seed one more; FedProx has one more than FedAvg.
    """
    database = MemoryStore()
    for run in expand(load_grid(study.experiments[0].grid)):
        right = 70 + 10 * (run.spec.client.model == "sage") + run.spec.seed + (run.method == "fedprox")
        database.add_run(run.spec, [right, right], received=[right - 10] * 2)
    return database


def test_a_line_is_run_where_it_stands(tmp_path: Path) -> None:
    runs = expand(load_grid(study_in(tmp_path).experiments[0].grid))
    specs = [run.spec for run in runs]

    def shown(spec: RunSpec) -> tuple[Any, ...]:
        return spec.dataset, spec.method, spec.client.model, spec.hyper.get("mu"), spec.protocol.rounds

    # FedAvg-FT is read from FedAvg's runs: they are planned once.
    assert len(specs) == len({spec.hash for spec in specs}) == 2 * 8
    assert {shown(spec) for spec in specs} == {
        *(
            (dataset, "fedavg", model, None, rounds)
            for dataset in ("cora", "citeseer")
            for model, rounds in MODELS
        ),
        *(("cora", "fedprox", model, 0.001, rounds) for model, rounds in MODELS),
        *((dataset, "fedprox", "gcn", 0.1, 100) for dataset in ("cora", "citeseer")),
    }


MODELS = (("gcn", 100), ("sage", 7))


def test_columns_of_two_client_models_stand_beside_their_own_published_values(tmp_path: Path) -> None:
    study = study_in(tmp_path)
    found = cells_of(study, "models", filled(study))
    numbers = found[["mean", "stage", "published_mean"]].fillna({"published_mean": 0})
    keys = zip(found["dataset"], found["point"], found["line"], strict=True)
    beside = dict(zip(keys, numbers.itertuples(index=False, name=None), strict=True))
    assert beside["cora", "GCN", "FedAvg"] == (60.5, "received", 60)
    assert beside["cora", "GraphSAGE", "FedAvg"] == (70.5, "received", 70)
    assert beside["cora", "GraphSAGE", "FedAvg-FT"] == (80.5, "trained", 80)
    assert beside["cora", "GCN", "FedAvg-FT"] == (70.5, "trained", 0)
    assert beside["cora", "GCN", "FedProx, mu 0.1"] == (71.5, "trained", 0)
    assert ("cora", "GraphSAGE", "FedProx, mu 0.1") not in beside
    assert ("citeseer", "GCN", "FedProx") not in beside
    measured = document_of(shown_cells(study, "models", filled(study))).views[0]
    assert measured.groups == [
        ("Cora, 10 clients", 2),
        ("CiteSeer, 10 clients", 2),
    ]
    assert measured.columns == ["GCN", "GraphSAGE"] * 2


def test_methods_of_a_ranked_experiment_are_compared_at_every_point(tmp_path: Path) -> None:
    study = study_in(tmp_path)
    (built,) = build(filled(study), Request(studies=("mine",)), {"mine": study}, tmp_path / "out")
    (ranking,) = [each for each in built.documents if each.key == "mine_ranking"]
    points = ranking.records["pairs"]["point"].dropna()
    assert points.drop_duplicates().tolist() == ["GCN", "GraphSAGE"]


def test_a_reduced_experiment_is_compared_by_order_alone(tmp_path: Path) -> None:
    study = study_in(tmp_path, TWO_MODELS.replace("ranked = true", 'ranked = true\nreduced = "7 rounds"'))
    results = collect(filled(study), [study()])
    printed = results.cells.dropna(subset="printed")
    assert set(zip(printed["verdict"], printed["reason"], strict=True)) == {("not comparable", "7 rounds")}
    taus = agreements(study(), results, results.cells).set_index(["dataset", "point"])
    assert taus["tau"].isna().all()  # two methods have no order to speak of
    assert taus.loc[("cora", "GraphSAGE"), "methods"] == 2
    assert set(taus.index) == {("cora", "GCN"), ("cora", "GraphSAGE")}  # nothing of CiteSeer is printed


COLUMNS = '[[columns]]\ndatasets = ["cora", "citeseer"]\nscenario = "non-overlapping"\nclients = 10'
COMPARISONS = 'comparisons."Table 1" = [["mine", "T"]]'


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('method = "fedavg_ft"', 'methods = "fedavg_ft"', "method"),
        ("ranked = true", "rank = true", "rank"),
        ('measures = ["accuracy"]', 'measures = ["acuracy"]', "accuracy"),
        ('measures = ["accuracy"]', 'figures = ["lines", "converge"]', "figures.1: .*'convergence'"),
        (COLUMNS, "", "columns"),
        (COMPARISONS, "", "comparisons"),
    ],
)
def test_a_wrong_file_is_refused_in_one_line(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert old in TWO_MODELS
    with pytest.raises(RequestError, match=said) as error:
        study_in(tmp_path, TWO_MODELS.replace(old, new))
    assert "\n" not in str(error.value)


def test_the_example_of_a_study_brings_its_own_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("BENCH_HOME", str(tmp_path / "home"))
    monkeypatch.setenv(registry.PLUGINS, str(EXAMPLE))
    registry.forget()
    try:
        study = STUDIES.named("own_study")
        database = MemoryStore()
        for run in expand(load_grid(study.experiments[1].grid)):
            database.add_run(run.spec, [81 + run.spec.seed, 81 + run.spec.seed])
        (built,) = build(database, Request(studies=("own_study",)), {"own_study": study}, tmp_path / "out")
        cells = pd.concat([table.cells for table in built.documents if not table.is_statistic])
        found = cells[["table", "line", "published_mean", "verdict"]].itertuples(index=False)
        verdicts = {(table, line): (mean, verdict) for table, line, mean, verdict in found}
        assert verdicts["Table 2", "mu = 0.1"] == (81.2, "compatible")  # printed as a fraction
        assert verdicts["Table 1", "Local"] == (84.0, "compatible")  # 2.5 points off, by two runs
        assert verdicts["Table 1", "FedProx"][1] == "not comparable"  # out of memory, says the paper
        (said,) = [document for document in built.documents if document.name == "claims"]
        answers = [entries[0].text for _, entries in said.views[0].rows]
        assert answers == ["not measured", "holds"]  # no run of FedAvg; all runs are alike
        with pytest.raises(SystemExit) as end:
            main(["sweep", "--grid", study.experiments[1].grid, "--dry-run"])
        assert end.value.code == 0
        assert "6 runs" in capsys.readouterr().out
    finally:
        monkeypatch.undo()
        registry.forget()
