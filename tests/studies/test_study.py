"""What the suite's studies name there is; data that no study has stand in a table of their own."""

from __future__ import annotations

import pytest
from stored_runs import MemoryStore
from toy_study import ToyStudy

from bench.engine.methods import METHODS
from bench.report.report import compose
from bench.report.request import Request
from bench.studies.published import published
from bench.studies.study import STUDIES, with_data_studies

TOY = {ToyStudy.name: ToyStudy}


@pytest.mark.parametrize("name", ["fedaghn", "fedhgn", "fedpub", "fedsheafhn"])
def test_a_study_names_methods_tables_and_lines_that_there_are(name: str) -> None:
    study, methods = STUDIES.named(name)(), set(METHODS.all())
    named = {study.baseline, study.control, study.proposed, *study.references}
    assert named - {""} | {line.runs for line in study.lines} <= methods
    titles = set(map(study.title_of, methods))
    for table in study.experiments:
        for paper, name in [target for targets in table.comparisons.values() for target in targets]:
            printed = {value.table for value in published(paper, study.published)}
            assert name in printed, table.name
        titles |= {study.line_title(line) for line in (study.lines if table.main else table.lines)}
    tables = {table.name for table in study.experiments}
    for claim in [claim for claims in study.claims for claim in claims.claims]:
        assert {*claim.tables, *claim.reduced} <= tables, claim.text
        # A main table may have lines of settings, in brackets, that are not known yet.
        assert {line.partition(" [")[0] for line in {*claim.first, *claim.second} - titles} <= titles


def test_its_runs_are_averaged_and_ranked_without_a_published_value() -> None:
    database = MemoryStore()
    for seed in range(3):
        for method, base in (("fedavg", 60), ("local", 70), ("majority", 20)):
            for clients in (2, 4):
                counts = [base + seed + clients] * clients
                database.add(method, seed, counts, dataset="mine", clients=clients)
    studies = with_data_studies(TOY, ["mine"], database.runs())
    (part,) = compose(database, Request(datasets=("mine",)), studies)
    assert (part.study, len(part.runs), len(part.counts)) == ("mine", 18, 0)
    cells = part.documents[0].cells
    cells = cells[cells["primary"]].set_index(["line", "clients"])
    for line, clients, mean in (("Local", 2, 73), ("Local", 4, 75), ("FedAvg", 2, 63), ("FedAvg", 4, 65)):
        assert abs(cells.loc[(line, clients), "mean"] - mean) < 1e-9
    assert cells["published_mean"].isna().all()
    assert part.ranking is not None
    assert part.ranking.ranks.set_index("method")["rank"].to_dict() == {"local": 1, "fedavg": 2}


def test_a_data_set_that_a_study_has_and_one_that_was_not_run_get_none() -> None:
    database = MemoryStore()
    database.add("local", 0, [70, 80])
    assert with_data_studies(TOY, ["cora", "unheard"], database.runs()) == TOY
