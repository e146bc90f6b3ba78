"""The frame path gives what the objects of ``bench.studies`` give, of a toy study's runs in memory."""

from __future__ import annotations

import pandas as pd
import pytest
from stored_runs import MemoryStore
from toy_study import PlannedToy, ToyStudy

from bench.frames.graded_cells import collect
from bench.reports.fedhgn import FedHGN
from bench.studies.collect import collect as collect_old
from bench.studies.frame import TYPES
from bench.studies.frame import frame as frame_old
from bench.studies.study import Study


@pytest.mark.parametrize("study", [ToyStudy(), PlannedToy(), FedHGN()])  # the last has no number then
def test_cells_of_few_runs_are_equal(study: Study) -> None:
    database = MemoryStore()
    for seed in range(7):  # two more than are planned
        database.add("local", seed, [60 + seed, 80])
        database.add("fedavg", seed, [70, 76 - seed])
    database.add("fedprox", 0, None, state="diverged", reason="round 4")
    old = frame_old(
        cell for _, tables in collect_old(database, [study])[1] for cells in tables for cell in cells
    )
    new = collect(database, [study]).cells[list(TYPES)]
    pd.testing.assert_frame_equal(old, new, rtol=1e-12, atol=1e-12)
