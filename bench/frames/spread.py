"""The spread between partitions: how much a mean differs between draws of the clients, training apart."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import astuple

import numpy as np
import pandas as pd

from bench.engine.methods import METHODS
from bench.federation.scenarios import parse
from bench.frames.stored_runs import WHERE, rows_of, usual_of
from bench.grids.grid import PARTITION_SEED
from bench.studies.settings import PER_SEED, Settings
from bench.studies.study import Study

LEAST_PARTITIONS = 3
"""Partitions that an estimate of the spread between them takes."""

OWN, POOLED, UNKNOWN, SAME_CLIENTS, REDRAWN = "own", "pooled", "none", "same clients", "redrawn"
"""Where the spread between partitions of a cell comes from: its own runs, other cells of the study, nowhere
(it counts as 0); or why there is none: the clients are the paper's, or both sides redraw them in every run.
"""

SPLIT = "split"
"""The parts are the paper's and the roles are drawn: the spread is that between draws of the split alone."""

Pools = tuple[pd.DataFrame, pd.DataFrame]
"""What ``pools_of`` gives."""


def between_partitions(values: pd.DataFrame) -> pd.DataFrame:
    """Spread of each family: runs that differ in seed and partition alone.

    ``values`` has a row a run: columns family, partition_hash, value. Gives by family:

    partitions   number of partitions
    s_d          standard deviation between them

    The variance of the partitions' means less the share that the runs' own variance has in it (pooled over
    partitions with several runs); 0 where nothing is left. Missing for fewer than ``LEAST_PARTITIONS``, or
    where no partition has two runs, so that the two cannot be told apart.
    """
    partitions = values.groupby(["family", "partition_hash"])["value"].agg(["count", "mean", "var"])
    partitions["freedom"] = partitions["count"] - 1
    partitions["within"] = partitions["freedom"] * partitions["var"].fillna(0.0)
    partitions["share"] = 1 / partitions["count"]
    families = partitions.groupby("family").agg(
        partitions=("mean", "size"),
        between=("mean", "var"),
        within=("within", "sum"),
        freedom=("freedom", "sum"),
        share=("share", "mean"),
    )
    is_known = (families["partitions"] >= LEAST_PARTITIONS) & (families["freedom"] > 0)
    noise = families["within"] / families["freedom"].where(is_known)
    variance = families["between"] - noise * families["share"]
    return families[["partitions"]].assign(s_d=np.sqrt(variance.clip(lower=0)))


def pooled(cells: pd.DataFrame) -> tuple[float, float]:
    """Root mean square of the spread of cells, and its degrees of freedom; missing where no cell has one.

    The cells of one column have the same partitions, and count once in the degrees of freedom.
    """
    known = cells.dropna(subset="s_d")
    if known.empty:
        return math.nan, math.nan
    partitions = known.groupby(WHERE)["partitions"].max()
    return float(np.sqrt((known["s_d"] ** 2).mean())), float((partitions - 1).sum())


def with_spread(
    cells: pd.DataFrame, values: pd.DataFrame, pools: Pools, settings: Mapping[int, Settings]
) -> pd.DataFrame:
    """The cells of a study under one reading, with these columns:

    partitions    number of partitions that were run
    s_d           standard deviation between partitions in points; missing where not known or not needed
    s_d_source    where it comes from: ``OWN`` or another
    s_d_freedom   its degrees of freedom; missing without it
    draws         how many of the two means, published and measured, rest on one draw of clients

    A cell has its own spread, else that of the study's cells in the same scenario, else that of all cells of
    the study; never that of another study's, whose protocol is another one. On the papers' own parts it has
    the spread between draws of the split alone.

    ``cells`` has the columns place, scenario, family, redrawn (every published run has clients of its own).
    ``values`` are those of all runs, as ``between_partitions`` takes them.
    """
    families = between_partitions(values)
    usual, splits = (pool.join(families, on="family") for pool in pools)
    of_all, of_splits = pooled(usual), pooled(splits)
    of_scenarios = {name: pooled(part) for name, part in usual.dropna(subset="s_d").groupby("scenario")}
    scenarios = {name: parse(name) for name in cells["scenario"].unique()}
    cells = cells.join(families, on="family")
    nothing = math.nan, math.nan
    rows = []
    for cell in rows_of(cells[["place", "scenario", "redrawn", "partitions", "s_d"]]):
        scenario, its_settings = scenarios[cell.scenario], settings[cell.place]
        own = None if math.isnan(cell.s_d) else (cell.s_d, cell.partitions - 1)
        pool = of_scenarios.get(cell.scenario, of_all)
        per_seed = its_settings.get(PARTITION_SEED) == PER_SEED
        draws = 2 - int(cell.redrawn) - int(per_seed)
        if scenario.papers_own and not scenario.deals_roles(tuple(its_settings.get("protocol.split", ()))):
            rows.append((SAME_CLIENTS, *nothing, 0))
        elif scenario.papers_own:
            rows.append((SPLIT, *(own or of_splits), 2))
        elif cell.redrawn and per_seed:
            rows.append((REDRAWN, *nothing, 0))
        elif own:
            rows.append((OWN, *own, draws))
        else:
            rows.append((UNKNOWN if math.isnan(pool[0]) else POOLED, *pool, draws))
    names = ["s_d_source", "s_d", "s_d_freedom", "draws"]
    return cells.drop(columns="s_d").join(pd.DataFrame(rows, cells.index, names))


def pools_of(study: Study, runs: pd.DataFrame) -> Pools:
    """The cells over which a study pools the spread between partitions, and the spread between draws of the
    split: columns dataset, scenario, clients, family.
    """
    columns = pd.DataFrame(map(astuple, dict.fromkeys(study.columns)), columns=WHERE)
    usual = _cells_of_grids(study.pooled_grids, runs).merge(columns, on=WHERE)
    splits = _cells_of_grids(study.split_grids, runs)
    return usual, splits if study.split_grids else splits[:0]


def _cells_of_grids(grids: Sequence[str], runs: pd.DataFrame) -> pd.DataFrame:
    """The cells in the settings that grids plan (without grids: in the usual ones) whose methods train."""
    groups = runs[~runs["special"]].drop_duplicates("cell")
    is_asked = groups["setting"] == ""
    if grids:
        is_asked = groups["cell"].isin({one.cell for one in usual_of(grids).values()})
    idle = [name for name, kind in METHODS.all().items() if not kind.trains]
    return groups.loc[is_asked & ~groups["method"].isin(idle), [*WHERE, "family"]]
