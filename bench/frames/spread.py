"""The spread between partitions: how much a mean varies with the draw of the clients, not with training."""

from __future__ import annotations

import math
from collections.abc import Mapping
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
"""Fewest partitions from which the spread between partitions is estimated."""

OWN, POOLED, SPLIT, UNKNOWN = "own", "pooled", "split", "none"
SAME_CLIENTS, REDRAWN = "same clients", "redrawn"
"""Source of a cell's spread between partitions: its own runs, other cells of the study, draws of the split
alone (on the paper's own parts), unknown (it counts as 0). The last two mean that there is no such spread:
the clients are the paper's, or paper and suite both redraw the clients in every run.
"""


def between_partitions(values: pd.DataFrame) -> pd.DataFrame:
    """Return per family the number of ``partitions`` and ``s_d``, the standard deviation between partitions.

    Runs of a family differ in seed and partition alone. ``values``: columns family, partition_hash, value, a
    row per run. The variance ``s_d ** 2`` is the variance of the partitions' means minus the share of the
    variance between runs (pooled over partitions with several runs), at least 0. ``s_d`` is missing for fewer
    than ``LEAST_PARTITIONS``, and if no partition has two runs, because both variances are then inseparable.
    """
    partitions = values.groupby(["family", "partition_hash"])["value"].agg(["count", "mean", "var"])
    freedom = partitions["count"] - 1
    within = (freedom * partitions["var"].fillna(0.0)).groupby("family").sum()
    share = (1 / partitions["count"]).groupby("family").mean()
    means, freedom = partitions["mean"].groupby("family"), freedom.groupby("family").sum()
    is_known = (means.size() >= LEAST_PARTITIONS) & (freedom > 0)
    variance = means.var() - within / freedom.where(is_known) * share
    return pd.DataFrame({"partitions": means.size(), "s_d": np.sqrt(variance.clip(lower=0))})


def pooled(cells: pd.DataFrame) -> tuple[float, float]:
    """Return the root mean square of the cells' spreads, and its degrees of freedom; NaN if no cell has one.

    Cells of one column have the same partitions, which count once in the degrees of freedom.
    """
    known = cells.dropna(subset="s_d")
    if known.empty:
        return math.nan, math.nan
    partitions = known.groupby(WHERE)["partitions"].max()
    return float(np.sqrt((known["s_d"] ** 2).mean())), float((partitions - 1).sum())


def with_spread(
    cells: pd.DataFrame, values: pd.DataFrame, pool: pd.DataFrame, settings: Mapping[int, Settings]
) -> pd.DataFrame:
    """Add partitions, s_d, s_d_source, s_d_freedom and draws to a study's cells under one reading.

    A cell's spread is estimated from its own runs, else from the study's cells in the same scenario, else
    from all cells of the study. Cells of other studies are not used: their protocol differs. On the papers'
    own parts, only draws of the split are used. ``draws`` counts the means (published, measured) that rest on
    one draw of clients.

    ``values`` contains all runs in the form that ``between_partitions`` reads; ``pool_of`` returns ``pool``.
    """
    families = between_partitions(values)
    known = pool.join(families, on="family").dropna(subset="s_d")
    usual, of_splits = known[known["pool"] == POOLED], pooled(known[known["pool"] == SPLIT])
    of_all, of_scenarios = pooled(usual), {name: pooled(part) for name, part in usual.groupby("scenario")}
    cells = cells.join(families, on="family")
    scenarios = {name: parse(name) for name in cells["scenario"].unique()}
    unknown = math.nan, math.nan
    rows: list[tuple[str, float, float, int]] = []
    for cell in rows_of(cells[["place", "scenario", "redrawn", "partitions", "s_d"]]):
        scenario, its_settings = scenarios[cell.scenario], settings[cell.place]
        own = None if math.isnan(cell.s_d) else (cell.s_d, cell.partitions - 1)
        per_seed = its_settings.get(PARTITION_SEED) == PER_SEED
        if scenario.papers_own and not scenario.deals_roles(tuple(its_settings.get("protocol.split", ()))):
            rows.append((SAME_CLIENTS, *unknown, 0))
        elif scenario.papers_own:
            rows.append((SPLIT, *(own or of_splits), 2))
        elif cell.redrawn and per_seed:
            rows.append((REDRAWN, *unknown, 0))
        else:
            spread = own or of_scenarios.get(cell.scenario, of_all)
            source = OWN if own else UNKNOWN if math.isnan(spread[0]) else POOLED
            rows.append((source, *spread, 2 - int(cell.redrawn) - int(per_seed)))
    names = ["s_d_source", "s_d", "s_d_freedom", "draws"]
    return cells.drop(columns="s_d").join(pd.DataFrame(rows, cells.index, names))


def pool_of(study: Study, runs: pd.DataFrame) -> pd.DataFrame:
    """Return the cells over which a study pools a spread: columns dataset, scenario, clients, family, pool.
    ``pool`` is ``POOLED`` for the spread between partitions, ``SPLIT`` for the spread between splits.
    """
    idle = [name for name, kind in METHODS.all().items() if not kind.trains]
    cells = runs[~runs["special"] & ~runs["method"].isin(idle)].drop_duplicates("cell")
    columns = pd.DataFrame(map(astuple, dict.fromkeys(study.columns)), columns=WHERE)
    planned, split = (
        {one.cell for one in usual_of(grids).values()} for grids in (study.pooled_grids, study.split_grids)
    )
    usual = cells[cells["cell"].isin(planned) if study.pooled_grids else cells["setting"] == ""]
    splits = cells[cells["cell"].isin(split)]
    both = pd.concat([usual.merge(columns, on=WHERE).assign(pool=POOLED), splits.assign(pool=SPLIT)])
    return both[[*WHERE, "family", "pool"]]
