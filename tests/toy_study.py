"""A study of a paper that there is not, in two versions: what tests of tables, figures and reports show.

Also a plug-in file, which ``BENCH_PLUGINS`` may name.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from bench.studies.experiment import Line, read
from bench.studies.published import Published, PublishedRuns
from bench.studies.settings import Column, Reading, Settings
from bench.studies.study import Study

FOLDER = Path(__file__).parent / "toy_study"
"""The tables, and what each version of the paper prints."""

FOREIGN = "value of another paper"
"""Why no run has a target in ``FOREIGN_VALUES``."""

FOREIGN_VALUES = (("toy", "fedprox"), ("toy_earlier", "local"))
"""Versions of the paper and methods."""

LINES = (
    Line("local", "Local"),
    Line("fedavg", "FedAvg", printed_stages=("trained", "received")),
    Line("fedprox", "FedProx"),
    Line("fedper", "FedPer"),
    Line("pfedhn", "pFedHN"),
    Line("fggp", "FGGP"),
    Line("pfedgraph", "pFedGraph"),
    Line("fedpub", "FED-PUB"),
    Line("flow", "Flow"),
    Line("fedsheafhn", "FedSheafHN"),
    Line("majority", "Majority class"),
    Line("fedavg_ft", "FedAvg + fine-tuning", reads="fedavg", stage="trained"),
)


class ToyStudy(Study):
    """Ten methods in nine federations, in two main tables. The usual settings are those that the runs have,
    and no seeds are planned.
    """

    name = "toy"
    title = "Toy"
    grids = ()
    lines = LINES
    experiments = read(FOLDER, ("tables",), LINES)
    primary = Reading("trained", "best_val")
    readings = (Reading("trained", "best_test"), Reading("received", "best_val"))
    remarks = ("The paper names no machine.",)
    proposed = "fedsheafhn"
    paper_titles: ClassVar[dict[str, str]] = {
        "toy": "Toy, final version",
        "toy_earlier": "Toy, earlier version",
    }
    published = FOLDER

    def published_runs(self, target: Published, column: Column) -> PublishedRuns:
        """Five runs behind every published mean."""
        return PublishedRuns(5)

    def barred(self, target: Published, column: Column, settings: Settings) -> str:
        """``FOREIGN_VALUES`` were taken over."""
        return FOREIGN if (target.paper, target.method) in FOREIGN_VALUES else ""

    def paper_protocol(self, target: Published, column: Column) -> dict[str, Any]:
        """A hundred rounds everywhere."""
        return {"protocol.rounds": 100}


class PlannedToy(ToyStudy):
    """The same with its grid, which plans five seeds in the default settings."""

    grids = (str(FOLDER / "tables.toml"),)
