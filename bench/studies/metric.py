"""What stored runs score by a metric, client by client."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pandas as pd

from bench.errors import RequestError
from bench.metric_names import ACCURACY, ROC_AUC, Metric
from bench.metrics import OF_COUNTS
from bench.studies.source import Source

TITLES: dict[Metric, str] = {
    ACCURACY: "accuracy",
    "macro_f1": "macro-F1",
    "balanced_accuracy": "balanced accuracy",
    ROC_AUC: "area under the ROC curve",
}
"""Metrics in words."""

COLUMNS = ["run_id", "client", "stage", "split", "rule", "value", "samples"]


def client_values(
    source: Source,
    runs: Collection[int],
    metric: Metric,
    stage: str | None = None,
    split: str | None = None,
    rule: str | None = None,
) -> pd.DataFrame:
    """A row a run, client and reading that has a value, from 0 to 1: columns ``COLUMNS``.

    Other metrics than accuracy are known of the test split alone, and of runs that keep what they need. A
    filter that is None takes everything.
    """
    if metric in (ACCURACY, ROC_AUC):
        rows = source.client_results(runs, stage=stage, split=split, rule=rule, metric=metric)
        return rows.loc[rows["samples"] > 0, COLUMNS]
    parts = [source.client_results([])[COLUMNS]]
    for (run, run_stage, run_rule), counts in (
        source.confusions(runs).items() if split in ("test", None) else ()
    ):
        if stage in (run_stage, None) and rule in (run_rule, None):
            values, samples = OF_COUNTS[metric](counts), counts.sum(axis=(1, 2))
            clients = np.flatnonzero(samples)
            fields = (run, clients, run_stage, "test", run_rule, values[clients], samples[clients])
            parts.append(pd.DataFrame(dict(zip(COLUMNS, fields, strict=True))))
    return pd.concat(parts[1:] or parts, ignore_index=True)


def check_kept(metric: Metric, runs: int, missing_runs: int) -> str:
    """How many of so many finished runs lack a metric, in a sentence; empty where none does.

    Raises:
        RequestError: all of them.
    """
    if not missing_runs:
        return ""
    reason = "older runs keep no counts by class"
    if metric == ROC_AUC:
        reason = "only data sets of two classes have one, and of these older runs keep none"
    text = f"{missing_runs:,} of {runs:,} finished runs have no {TITLES[metric]}: {reason}"
    text += "; 'bench sweep --grid NAME' makes shipped ones again, with --rerun changed your own"
    if missing_runs == runs:
        raise RequestError(f"--metric {metric}: {text}")
    return f"{text}."
