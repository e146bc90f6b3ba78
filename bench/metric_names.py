"""Names of the metrics of results; ``bench.metrics`` computes the metrics."""

from __future__ import annotations

from typing import Literal, get_args

Metric = Literal["accuracy", "macro_f1", "balanced_accuracy", "roc_auc"]
METRICS: tuple[Metric, ...] = get_args(Metric)
"""All metrics. The area under the ROC curve exists only for data sets with two classes."""

ACCURACY: Metric = "accuracy"
ROC_AUC: Metric = "roc_auc"

TITLES: dict[Metric, str] = {
    ACCURACY: "accuracy",
    "macro_f1": "macro-F1",
    "balanced_accuracy": "balanced accuracy",
    ROC_AUC: "area under the ROC curve",
}
"""Metrics in words."""
