"""The results of the runs of cells, as measures read them: by client, by round, and as stored arrays.

A member is a run in a cell. If several tables show a run, it is a member in each.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from bench.errors import RequestError
from bench.metric_names import ACCURACY, ROC_AUC, TITLES, Metric
from bench.metrics import OF_COUNTS
from bench.store.tables import Tables

CLIENTS = ["run", "client", "stage", "split", "rule", "value", "samples"]
"""Columns of ``client_rows``."""


def client_rows(
    source: Tables,
    runs: Collection[int],
    metric: Metric,
    stage: str | None = None,
    split: str | None = None,
    rule: str | None = None,
) -> pd.DataFrame:
    """Return the scores of clients with samples: one row per run, client and reading, ``value`` from 0 to 1.
    If stage, split or rule is None, all are returned.

    Metrics other than accuracy exist only for the test split, and for runs that store the needed data.
    """
    if metric in (ACCURACY, ROC_AUC):
        rows = source.client_results(runs, stage=stage, split=split, rule=rule, metric=metric)
        return rows[rows["samples"] > 0].rename(columns={"run_id": "run"})[CLIENTS]
    found = []
    confusions = source.confusions(runs) if split in ("test", None) else {}
    for (run, run_stage, run_rule), counts in confusions.items():
        if stage in (run_stage, None) and rule in (run_rule, None):
            samples = counts.sum(axis=(1, 2))
            clients = np.flatnonzero(samples)
            values = OF_COUNTS[metric](counts)[clients]
            found.append((run, clients, run_stage, "test", run_rule, values, samples[clients]))
    rows = pd.DataFrame(found, columns=CLIENTS).explode(["client", "value", "samples"], ignore_index=True)
    return rows.astype({"run": "int64", "client": "int64", "value": "float64", "samples": "int64"})


def check_kept(metric: Metric, runs: Collection[int], kept: pd.DataFrame) -> None:
    """Raise ``RequestError`` if there are finished ``runs`` but none has scores by a metric."""
    if runs and kept.empty:
        raise RequestError(
            f"--metric {metric}: no finished run has {TITLES[metric]}: older runs and other data sets lack "
            "it; 'bench sweep --grid NAME' makes shipped runs again, with --rerun changed your own"
        )


def accuracy_by_run(clients: pd.DataFrame) -> pd.DataFrame:
    """Return accuracy (or another metric) in percent, one row per run, from rows of clients.

    The column ``clients`` is the mean over clients, ``samples`` the mean over all samples of the clients.
    """
    sums = clients.assign(right=clients["value"] * clients["samples"]).groupby("run")
    by_run = sums.agg(clients=("value", "mean"), right=("right", "sum"), samples=("samples", "sum"))
    by_run["samples"] = by_run["right"] / by_run["samples"]
    return 100.0 * by_run[["clients", "samples"]]


def curves_by_run(source: Tables, clients: pd.DataFrame, split: str) -> pd.DataFrame:
    """Return accuracy in percent by evaluation for runs that store a curve: columns run, stage, row (from 1),
    and those of ``accuracy_by_run``. The argument ``clients``: rows of clients at the last round of a split.
    """
    stored = source.curves(clients["run"].unique().tolist(), split)
    clients = clients.sort_values("client", kind="stable", ignore_index=True)
    numbers, samples = clients["client"].to_numpy(), clients["samples"].to_numpy()
    keys, lengths, means, pooled = [], [], [np.zeros(0)], [np.zeros(0)]
    for key, place in clients.groupby(["run", "stage"], observed=True).indices.items():
        if key in stored:
            correct = stored[key][:, numbers[place]]
            means.append(100.0 * (correct / samples[place]).mean(axis=1))
            pooled.append(100.0 * correct.sum(axis=1) / samples[place].sum())
            keys.append(key)
            lengths.append(len(correct))
    curves = pd.DataFrame(keys, columns=["run", "stage"]).astype({"run": np.int64})
    curves = curves.loc[np.repeat(np.arange(len(keys)), np.array(lengths, int))]
    curves["row"] = curves.groupby(level=0).cumcount() + 1
    curves = curves.assign(clients=np.concatenate(means), samples=np.concatenate(pooled))
    return curves.reset_index(drop=True)


@dataclass(frozen=True)
class Members:
    """The data that a measure reads: the runs of all its cells under one reading.

    ``rows`` has one row per member (its index): the columns of the runs frame, ``place`` (the cell's number),
    ``point`` (the label of its point), ``baseline`` (the run of Local with the same seed and clients).
    ``test`` has run, client, value and samples of all runs on the test split, at ``stage`` and by ``rule``.
    ``settings`` maps a place to its settings.
    """

    rows: pd.DataFrame
    source: Tables
    metric: Metric
    stage: str
    rule: str
    test: pd.DataFrame
    settings: dict[int, Mapping[str, Any]]

    @cached_property
    def clients(self) -> pd.DataFrame:
        """Test results: columns member, run, client, value (0 to 1), samples."""
        return self._clients_of("run")

    @property
    def beside_baseline(self) -> pd.DataFrame:
        """``clients`` with ``value_alone``, the baseline's value of the same client, if that was run."""
        alone = self._clients_of("baseline")
        return self.clients.merge(alone, on=["member", "client"], suffixes=("", "_alone"))

    def _clients_of(self, column: str) -> pd.DataFrame:
        runs = self.rows[column].dropna().rename("run").rename_axis("member").reset_index()
        return runs.merge(self.test[self.test["run"].isin(runs["run"])], on="run")

    def accuracy(
        self, split: str = "test", metric: Metric | None = None, of: str = "run"
    ) -> pd.Series[float]:
        """Return accuracy, or another metric of test items, in percent by member. With ``of="baseline"`` the
        member's baseline is read. Clients are averaged as the study does.
        """
        runs, clients = self.rows[of].dropna(), self.test
        if split != "test" or metric:
            numbers = runs.unique().tolist()
            clients = client_rows(self.source, numbers, metric or self.metric, self.stage, split, self.rule)
        by_run = accuracy_by_run(clients[clients["run"].isin(runs)])
        by_samples = self.rows["average"].reindex(runs.index) == "samples"
        return runs.map(by_run["samples"]).where(by_samples, runs.map(by_run["clients"])).dropna()

    def curves(self) -> pd.DataFrame:
        """Return test accuracy in percent by round: columns member, row (from 1), value. The curves of a cell
        are cut to the length of the shortest one.
        """
        runs = sorted(self.rows["run"].unique().tolist())
        clients = client_rows(self.source, runs, ACCURACY, self.stage, "test", "last")
        members = self.rows[["run", "place", "average"]].rename_axis("member").reset_index()
        curves = members.merge(curves_by_run(self.source, clients, "test"), on="run")
        curves["value"] = curves["samples"].where(curves["average"] == "samples", curves["clients"])
        shortest = curves.groupby("member")["row"].max().groupby(members.set_index("member")["place"]).min()
        return curves.loc[curves["row"] <= curves["place"].map(shortest), ["member", "row", "value"]]

    def artefacts(self, name: str) -> pd.Series[Any]:
        """Return the array ``name`` stored with the run, by member; members without it are left out."""
        kept = self.source.artefacts(self.rows["run"].unique().tolist(), name)
        arrays = [kept.get(run) for run in self.rows["run"].tolist()]
        return pd.Series(arrays, self.rows.index, dtype=object).dropna()
