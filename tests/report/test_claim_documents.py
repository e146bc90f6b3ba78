"""Claims as a document: every one with its answer, and what was measured at each place."""

from __future__ import annotations

from typing import Any

from stored_runs import MemoryStore
from study_cells import plan_of

from bench.frames.graded_cells import collect
from bench.grids import expand, load_grid
from bench.grids.grid import ColumnMatch
from bench.report.claim_documents import claim_document
from bench.report.claims import FAILS, HOLDS, UNMEASURED
from bench.report.document import Document
from bench.reports.fedsheafhn import FedSheafHN
from bench.studies.claims import Claim, Claims
from bench.studies.measures import SERVER_SECONDS


def seconds(text: str, high: float, *clients: int) -> Claim:
    """That FedSheafHN's server takes fewer seconds a round, in federations of so many clients."""
    only = ColumnMatch(clients=clients)
    limits = (0.0, high)
    return Claim(text, ("FedSheafHN",), (), ("server_cost",), range=limits, only=only, measure=SERVER_SECONDS)


class Cost(FedSheafHN):
    """FedSheafHN's experiment on the server's cost."""

    grids = ()
    split_grids = ()
    claims = ()
    experiments = tuple(each for each in FedSheafHN.experiments if each.name == "server_cost")


FEW = Claims(
    "few",
    "Few",
    (
        seconds("less than two", 2.0, 20, 100),
        seconds("less than one, with 100 clients", 1.0, 100),
        seconds("less than two, with 50 clients", 2.0, 50),
    ),
)


def document(*runs: tuple[int, float]) -> Document | None:
    """The claims beside runs of two seeds on Cora, by number of clients and seconds a round of the first."""
    database, specs = MemoryStore(), {run.spec.hash: run.spec for run in expand(load_grid("server_cost"))}
    for (column, line, _), planned in plan_of(FedSheafHN, "server_cost").runs.items():
        for clients, first in runs:
            if (column.dataset, line.title, column.clients) == ("cora", "FedSheafHN", clients):
                for number, digest in enumerate(planned.hashes[:2]):
                    total = (first + number / 100) * specs[digest].protocol.rounds
                    database.add_run(specs[digest], [50] * clients, seconds={"server": total})
    database.add("local", 0, [70] * 5, dataset="pubmed", clients=5)
    results = collect(database, [Cost()])
    return claim_document(Cost(), results, results.cells, FEW)


def texts(document: Document, number: int) -> Any:
    """The texts of a table: the list of claims, or the places."""
    table = (*document.views, *document.details)[number]
    return [list(cells) for _, cells in table.rows]


def test_every_claim_has_its_answer_the_deciding_place_or_what_is_to_be_run() -> None:
    found = document((20, 0.5), (100, 1.5))
    assert found is not None
    first, second, third = texts(found, 0)
    assert (first[0], second[0], third[0]) == (HOLDS, FAILS, UNMEASURED)
    # Both places hold; 1.505 is nearer to the end of the range than 0.505.
    assert "100" in first[1]
    assert "1.505" in first[1].replace("+", "") or "1.51" in first[1]
    assert "server_cost" in third[1]
    measured = [row[0] for row in texts(found, 1) if row[0] != UNMEASURED]
    assert measured == [HOLDS, HOLDS, FAILS]
    assert found.summary.startswith("1 of 3 hold")


def test_there_is_none_without_runs() -> None:
    assert document() is None
