"""The measures of experiments: one number per run, from its clients' results or its costs."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Annotated, Any

import pandas as pd
from pydantic import PlainValidator, ValidationInfo

from bench.errors import unknown
from bench.metric_names import ACCURACY, ROC_AUC, TITLES, Metric
from bench.studies.members import Members
from bench.studies.settings import Reading


@dataclass(frozen=True, eq=False)
class Measure:
    """A measure gives one number per run. ``title`` heads its columns; captions show its ``meaning``."""

    name: str
    title: str
    meaning: str
    of: Callable[[Members], pd.Series[float]]  #: returns the numbers of all members that have one
    metric: str = ""  #: its name in the published numbers; "": ``name``
    printed: str = ""  #: its setting in the published numbers
    reading: Reading | None = None  #: None: the study's primary reading
    digits: int = 2
    ranked: bool = False  #: the measure is an accuracy; the highest and the second are marked
    is_extra: bool = False  #: the experiment's first measure under another reading
    not_comparable_reason: str = ""  #: why no published value is a target for the measure


def _by_name(measure: Any, info: ValidationInfo) -> Measure:
    measures: dict[str, Measure] = info.context or {}
    if isinstance(measure, Measure):
        return measure
    if measure not in measures:
        raise unknown("measure", str(measure), measures)
    return measures[measure]


NamedMeasure = Annotated[Any, PlainValidator(_by_name)]
"""A measure. Files give its name; the context of the validation maps names to measures."""

TEST = Measure("accuracy", "Test", "test accuracy in percent", Members.accuracy, "accuracy", ranked=True)


@cache
def measure_of_metric(measure: Measure, metric: Metric) -> Measure | None:
    """Return a measure of test accuracy with another metric; None if it measures something else.

    Nothing is published for the result. If the metric is accuracy, every measure is returned unchanged.
    """
    if metric == ACCURACY:
        return measure
    if measure.of is not TEST.of:
        return None
    name = metric if measure is TEST else f"{metric}_{measure.name}"
    meaning = measure.meaning.replace("accuracy", TITLES[metric])
    return replace(measure, name=name, meaning=meaning, metric=metric)


def accuracy_under(reading: Reading) -> Measure:
    """Return test accuracy under a reading other than the primary one; the reading gives the name."""
    name, title = f"{reading.stage}_{reading.rule}", f"{reading.stage}, {reading.rule}"
    return replace(TEST, name=name, title=title, reading=reading, is_extra=True)


def _below_baseline(members: Members) -> pd.Series[float]:
    pairs = members.beside_baseline
    return (pairs["value"] < pairs["value_alone"]).groupby(pairs["member"]).sum().astype(float)


def _megabytes(members: Members) -> pd.Series[float]:
    return (members.rows["bytes_up"] + members.rows["bytes_down"]) / 1e6


def _megabytes_coded(members: Members) -> pd.Series[float]:
    exchanged = members.artefacts("exchanged_bytes")  # see ``TrafficMeter.exchanges``
    saved = exchanged.map(lambda rows: float((rows[:, 0] - rows[:, 1]).sum()) / 1e6)
    return _megabytes(members) - saved.reindex(members.rows.index, fill_value=0.0).astype(float)


NUMBERS: dict[str, Callable[[Members], pd.Series[float]]] = {
    "roc_auc": lambda members: members.accuracy(metric=ROC_AUC),
    "validation": lambda members: members.accuracy("val"),
    "best_test": Members.accuracy,
    "received": Members.accuracy,
    "std_over_clients": lambda members: 100.0 * members.clients.groupby("member")["value"].std().dropna(),
    "below_local": _below_baseline,
    "server_seconds": lambda members: members.rows["seconds_server"] / members.rows["rounds"],
    "peak_memory": lambda members: members.rows["peak_memory"] / 2**20,
    "total_megabytes": _megabytes,
    "total_megabytes_coded": _megabytes_coded,
}
"""How the measures in ``measures.toml`` are computed."""


def _measures() -> Iterator[Measure]:
    yield TEST
    content = (files("bench.studies") / "measures.toml").read_text(encoding="utf-8")
    for name, texts in tomllib.loads(content).items():
        reading = Reading(**texts.pop("reading")) if "reading" in texts else None
        yield Measure(name, of=NUMBERS[name], reading=reading, **texts)


MEASURES = {measure.name: measure for measure in _measures()}
"""The measures that experiments of any study may use, by name."""
