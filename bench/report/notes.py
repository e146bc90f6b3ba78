"""Notes of a table: why cells are missing or not comparable, and whose runs they are."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from bench.engine import NUMERICS
from bench.engine.methods import METHODS
from bench.frames.stored_runs import WHERE, parts_of, rows_of
from bench.report.document import DocumentCells
from bench.studies.settings import Column
from bench.studies.wording import ranges

OWN_RUNS = "runs of your own, beside those that come with the suite"

NAMED = 3
"""Up to so many columns a note names."""


def notes(shown: DocumentCells) -> tuple[str, ...]:
    """Why cells are missing or not comparable: one note a verdict and reason, or version of numbers, with
    its lines and their columns, or how many they are; and whose runs they are where a table has the user's
    and others. Columns of which nothing was run are named once.
    """
    cells = shown.cells
    columns = cells.sort_values("column_number").drop_duplicates("column_number")
    titles = {
        row.column_number: _title(shown, Column(row.dataset, row.scenario, row.clients))
        for row in rows_of(columns)
    }
    first = cells[cells["primary"] & (cells["comparison_number"] == 0)]
    members = shown.results.members
    members = members[members["place"].isin(cells.loc[cells["primary"], "place"])]
    texts = _older_numerics(members), _own_runs(members)
    remarks = _remarks(first[first["is_run_column"]], *texts)
    where = remarks["column_number"].map(titles).astype(object)
    remarks = remarks.assign(where=where.where(remarks["point"] == "", where + ", " + remarks["point"]))
    count = int(columns["is_run_column"].sum()) * len(shown.experiment.points)
    lines = [f"{head}: {_where(part, count)}" for head, part in remarks.groupby("head")]
    idle = [titles[number] for number in columns.loc[~columns["is_run_column"], "column_number"]]
    if idle:
        lines.append(f"nothing run yet: {'; '.join(idle)}")
    if other_runs := _other_runs(shown):
        lines.append(
            f"{other_runs} further runs of these columns stand in the tables of their experiments, "
            "were made under attack or with newcomers, or have further seeds beside all planned ones"
        )
    return tuple(lines)


def _title(shown: DocumentCells, column: Column) -> str:
    return f"{shown.study.title_of(column.dataset)}, {shown.place_of(column)}"


def _remarks(
    cells: pd.DataFrame, older_numerics: Mapping[int, str], own_runs: Mapping[int, str]
) -> pd.DataFrame:
    """What is to be said of cells besides their numbers: a row a remark, with its ``head``, in the order of
    lines, columns and points; ``older_numerics`` and ``own_runs`` are by place.
    """
    no_grade = cells["no_grade"].astype(object)
    states = cells["verdict"].where(no_grade == "", cells["verdict"] + " (" + no_grade + ")")
    heads = (
        states.where((no_grade != "") | (cells["n"] == 0), ""),
        cells["missing"],
        [older_numerics.get(place, "") for place in cells["place"]],
        [own_runs.get(place, "") for place in cells["place"]],
    )
    remarks = pd.concat([cells.assign(head=pd.Series(head, cells.index, dtype=object)) for head in heads])
    order = ["line_number", "column_number", "point_number"]
    return remarks[remarks["head"] != ""].sort_values(order, kind="stable")


def _where(remarks: pd.DataFrame, column_count: int) -> str:
    """The lines of a remark with the columns that they have in common."""
    lines_by_columns: dict[str, list[str]] = {}
    for title, part in remarks.groupby("line", sort=False):
        columns = part["where"].unique()
        is_short = len(columns) <= NAMED
        place = "; ".join(columns) if is_short else f"{len(columns)} of {column_count} columns"
        lines_by_columns.setdefault(place, []).append(str(title))
    return "; ".join(f"{', '.join(titles)} ({place})" for place, titles in lines_by_columns.items())


def _older_numerics(members: pd.DataFrame) -> dict[int, str]:
    """Which runs of a place were made by code of older numbers; nothing of a method that is not at hand."""
    done = members[members["is_done"]]
    oldest = done.groupby("place").agg(
        method=("method", "first"), of_method=("method_numerics", "min"), of_engine=("engine_numerics", "min")
    )
    kinds, texts = METHODS.all(), {}
    for row in rows_of(oldest):
        current = kinds[row.method].numerics if row.method in kinds else 0
        versions = (("method", row.of_method, current), ("engine", row.of_engine, NUMERICS))
        parts = [f"{name} numerics {version}, now {now}" for name, version, now in versions if version < now]
        if parts:
            texts[row.Index] = f"older numbers ({' and '.join(parts)}; a sweep makes them again)"
    return texts


def _own_runs(members: pd.DataFrame) -> dict[int, str]:
    """Which runs of a place are the user's, made here and neither shipped nor imported; nothing where all
    runs of the table are.
    """
    is_own = (members["origin"] == "") & (members["bundle"] == "")
    if is_own.all():
        return {}
    texts = {}
    has_own = members[["place", "seed"]].assign(is_own=is_own)[
        members["place"].isin(members["place"][is_own])
    ]
    for place, part in parts_of(has_own, "place"):
        own_seeds = part.loc[part["is_own"], "seed"].tolist()
        if part["is_own"].all():
            texts[place] = OWN_RUNS
        else:
            texts[place] = f"{OWN_RUNS} (seeds {ranges(own_seeds)} of {ranges(part['seed'].tolist())})"
    return texts


def _other_runs(shown: DocumentCells) -> int:
    """Number of runs of a main table's columns and methods that have no line in it."""
    places, runs, members = shown.results.places, shown.results.runs, shown.results.members
    is_here = (places["study"] == shown.study.name) & (places["document"] == shown.experiment.name)
    found = places[is_here & places["found"]]
    candidates = runs[runs["method"].isin(found["reads"])].merge(found[WHERE].drop_duplicates(), on=WHERE)
    shown_runs = members.loc[members["place"].isin(found["place"]), "run"]
    return int((~candidates["run"].isin(shown_runs)).sum())
