"""The frame path gives, over everything that ships, what the objects of ``bench.studies`` give."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest

from bench.frames.graded_cells import COLUMNS, collect
from bench.studies.cells import Cell
from bench.studies.collect import collect as collect_old
from bench.studies.frame import TYPES
from bench.studies.frame import frame as frame_old
from bench.studies.published import published
from bench.studies.shipped import opened_results
from bench.studies.source import Source
from bench.studies.study import STUDIES, Study

OLD = [*TYPES, "primary", "paper", "printed", "population", "usual", "order"]
"""Columns that the objects have, too."""

PRECISION = 1e-12
"""Relative; of differences and deviations to the size of the numbers that they are taken of."""


@pytest.fixture(scope="module")
def source() -> Iterator[Source]:
    with opened_results(None, False, shipped=True) as source:
        yield source


@pytest.fixture(scope="module")
def studies() -> list[Study]:
    return [study() for study in STUDIES.all().values()]


@pytest.fixture(scope="module")
def old_cells(source: Source, studies: list[Study]) -> list[Cell]:
    return [cell for _, tables in collect_old(source, studies)[1] for cells in tables for cell in cells]


@pytest.fixture(scope="module")
def old(old_cells: list[Cell], studies: list[Study]) -> pd.DataFrame:
    numbers = {
        value: number
        for study in studies
        for paper in study.papers
        for number, value in enumerate(published(paper, study.published))
    }
    evidence = [cell.evidence for cell in old_cells]
    return frame_old(old_cells).assign(
        primary=[not cell.measure.is_extra for cell in old_cells],
        paper=pd.array([cell.target.paper if cell.target else None for cell in old_cells], "string"),
        printed=pd.array([numbers[cell.target] if cell.target else None for cell in old_cells], "Int64"),
        population=pd.array([found.runs.population if found else None for found in evidence], "boolean"),
        usual=[not cell.line.setting for cell in old_cells],
        order=range(len(old_cells)),
    )


@pytest.fixture(scope="module")
def new(source: Source, studies: list[Study]) -> pd.DataFrame:
    return collect(source, studies).cells


@pytest.mark.slow
def test_the_public_columns_keep_their_names_and_types() -> None:
    assert {name: COLUMNS[name] for name in TYPES} == TYPES


@pytest.mark.slow
def test_both_paths_have_the_same_cells_in_the_same_order(old: pd.DataFrame, new: pd.DataFrame) -> None:
    key = ["study", "document", "table", "dataset", "scenario", "clients", "line", "point", "measure"]
    pd.testing.assert_frame_equal(old[key], new[key])
    assert not new.duplicated(key).any()


@pytest.mark.slow
@pytest.mark.parametrize("name", OLD)
def test_a_column_is_equal_in_every_row(name: str, old: pd.DataFrame, new: pd.DataFrame) -> None:
    assert len(old) == len(new) > 12_000
    if COLUMNS[name] != "float64":
        differing = ~old[name].eq(new[name]).fillna(False) & ~(old[name].isna() & new[name].isna())
    else:
        size = np.fmax(np.fmax(old[name].abs(), new[name].abs()), old["mean"].abs().fillna(0))
        is_close = (old[name] - new[name]).abs() <= PRECISION * size
        is_equal = is_close | (old[name] == new[name]) | (old[name].isna() & new[name].isna())
        differing = ~is_equal
    rows = pd.DataFrame({"old": old[name], "new": new[name]})[differing.to_numpy(bool)]
    assert rows.empty, f"{len(rows)} rows of {name}\n{rows.head(20)}"
