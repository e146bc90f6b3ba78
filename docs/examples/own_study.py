"""A study of one's own: a paper's table beside measured numbers.

bench sweep --grid docs/examples/own_study/table1.toml --dry-run
BENCH_PLUGINS=docs/examples/own_study.py bench report --study own_study -d cora --print own_study_table1
"""

from pathlib import Path

from bench.studies.claims import Claim, Claims
from bench.studies.experiment import Line, read
from bench.studies.published import Published, PublishedRuns
from bench.studies.settings import Column, Reading
from bench.studies.study import Study

FOLDER = Path(__file__).parent / "own_study"
"""The experiments, and the paper's numbers: ``a_paper.csv``."""

LINES = (Line("local", "Local"), Line("fedavg", "FedAvg"), Line("fedprox", "FedProx"))

TEXT = Claims(
    "claims",
    "What the text says",
    (
        Claim("FedProx is better than FedAvg", ("FedProx",), ("FedAvg",), ("table1",), source="Section 5"),
        Claim(
            "a larger term changes less than a point",
            ("mu = 0.1",),
            ("mu = 0.001",),
            ("proximal",),
            range=(-1.0, 1.0),
        ),
    ),
)
"""What the paper claims in words, by the titles of lines and the names of experiments."""


class OwnStudy(Study):
    """Three methods on Cora, and FedProx with two weights of its proximal term."""

    name = "own_study"
    title = "A study of one's own"
    grids = (str(FOLDER / "table1.toml"),)
    lines = LINES
    experiments = read(FOLDER, ("table1", "proximal", "local_epochs"), LINES)
    primary = Reading("trained", "best_val")
    readings = (Reading("received", "best_val"),)
    published = FOLDER
    proposed = "fedprox"
    claims = (TEXT,)

    def published_runs(self, target: Published, column: Column) -> PublishedRuns:
        """Five runs behind every published mean."""
        return PublishedRuns(5)
