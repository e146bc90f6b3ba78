"""A cell of a table: its runs, and the commands that make them."""

from __future__ import annotations

import difflib
from collections import Counter
from dataclasses import dataclass

import pandas as pd

from bench.errors import RequestError, unknown
from bench.spec import RunSpec
from bench.sweep.command import command

FORM = "DATASET/SCENARIO/CLIENTS/METHOD"

NEAR = 5
"""Cells that a message names where there is none of the name asked for."""


@dataclass(frozen=True)
class Made:
    """Runs of a cell that one command makes: their seeds, states and origins."""

    command: str
    seeds: tuple[int, ...]
    states: dict[str, int]
    origins: tuple[str, ...]


def cell(runs: pd.DataFrame, name: str) -> list[Made]:
    """The runs of the cell ``name`` (``FORM``), by the command that makes them, largest part first.

    ``runs`` has a row a run, as a report's source gives them. Runs that differ in more than their seed
    are made by different commands.

    Raises:
        RequestError: the name is none, or there is no run of such a cell.
    """
    if name.count("/") != 3:
        raise RequestError(
            f"expected a run's id or {FORM} such as cora/non-overlapping/10/fedavg, got '{name}'"
        )
    names = (
        runs["dataset"] + "/" + runs["scenario"] + "/" + runs["clients"].astype(str) + "/" + runs["method"]
    )
    here = runs[names == name]
    if here.empty:
        near = difflib.get_close_matches(name, sorted(set(names)), n=NEAR, cutoff=0.4)
        raise unknown("cell", name, near)
    specs = [RunSpec.model_validate_json(text) for text in here["spec"]]
    made = []
    for _, places in pd.Series(range(len(here))).groupby(here["cell"].to_numpy()):
        part = here.iloc[places]
        seeds = sorted({specs[place].seed for place in places})
        made.append(
            Made(
                command(specs[places.iloc[0]], seeds),
                tuple(seeds),
                dict(Counter(part["state"])),
                tuple(sorted(set(part["origin"]))),
            )
        )
    return sorted(made, key=lambda each: (-len(each.seeds), each.command))
