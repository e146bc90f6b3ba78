"""Names of what results can be read by; ``bench.metrics`` computes them."""

from __future__ import annotations

from typing import Literal, get_args

Metric = Literal["accuracy", "macro_f1", "balanced_accuracy", "roc_auc"]
METRICS: tuple[Metric, ...] = get_args(Metric)
"""The area under the ROC curve is of data sets with two classes."""

ACCURACY: Metric = "accuracy"
ROC_AUC: Metric = "roc_auc"

TITLES: dict[Metric, str] = {
    ACCURACY: "accuracy",
    "macro_f1": "macro-F1",
    "balanced_accuracy": "balanced accuracy",
    ROC_AUC: "area under the ROC curve",
}
"""Metrics in words."""
