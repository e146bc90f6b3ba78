"""How a run that was made again agrees with what a bundle states of it, and what a sample of them says."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, get_args

import numpy as np
import pandas as pd
from scipy.stats import binomtest

from bench.engine.states import SETTLED
from bench.store.bundle_import import Finding, Outcome, Reading
from bench.studies.metric import TITLES
from bench.sweep.policy import sort_of

TOLERANCE, LOOSE = 0.5, 1.0
"""Points by which the pooled test accuracy may differ: of rule ``best_val``, and of the others, which
scatter more. Other machines sum in another order, and a hundred rounds carry the last digit far."""

OTHER_METRICS = 10.0
"""So many times as many points as ``TOLERANCE`` and ``LOOSE`` may other metrics differ by, which are means
over clients: there an item of a rare class counts as much as all of a common one. With other kernels of the
same processor the macro-F1 of pFedGraph on Cora, five clients, moved by 2.8 points for ``best_val`` and by
3.9 for others, its accuracy by 0.4."""

TRAFFIC = 5.0
"""Percent by which the traffic may differ where accuracies do, too: what some methods send depends on what
was learned (the neighbours that FedSage+ makes up, the prototypes of FGGP)."""

FAR = 20.0
"""So many times as much may a run be off that was made on another sort of device, another processor or
another number of threads, before it contradicts: some hang on a last digit. The furthest that was seen is
8.8 points, of pFedGraph on Computers; of nineteen runs on processors of two makers three were off by 0.7 to
6.7."""

LIFTED = 0.001
"""Level of the sign test of runs that are not equal: roundings go either way, so that runs which are all
stated above what comes out here were made by other code or changed, however small the difference is."""

PREDICTIONS = 2
"""So many test predictions may always differ: on a small test split each is worth a point or more."""

ROUNDING = 1e-9


@dataclass(frozen=True)
class Check:
    """What came of one run. ``finding`` is None if it could not be made here; ``points`` as of ``lead``."""

    spec_hash: str
    run: str
    finding: Finding | None
    detail: str
    points: float = 0.0


class Place(NamedTuple):
    """What decides how a run's sums are rounded: the sort of device, the name of the processor or accelerator
    and the number of threads, as far as they are known.
    """

    device: str = ""
    hardware: str = ""
    threads: int = 0

    def rounds_as(self, other: Place) -> bool:
        """Whether nothing that is known of both is another."""
        return all(mine == its for mine, its in zip(self, other, strict=True) if mine and its)

    def __str__(self) -> str:
        threads = f"{self.threads} thread{'' if self.threads == 1 else 's'}" if self.threads else ""
        return ", ".join(filter(None, (self.device, self.hardware, threads)))


def place_of(run: Mapping[Any, Any], environments: pd.DataFrame) -> Place:
    """Where a run was made, given the ``environments`` of its source."""
    descriptions = environments.loc[environments["id"] == run["environment_id"], "description"]
    environment: dict[str, Any] = next(map(json.loads, descriptions), {})
    sort, threads = sort_of(run["device"]), environment.get("threads")
    hardware = environment.get("accelerator" if sort == "cuda" else "processor")
    return Place(sort, str(hardware or ""), threads if sort == "cpu" and threads else 0)


def contradict_lifted(checks: Iterable[Check]) -> list[Check]:
    """The checks; where the runs that are not equal are stated above what came out here, too many to be
    roundings (``LIFTED``), those differ.
    """
    all_checks = list(checks)
    leads = [check.points for check in all_checks if abs(check.points) > ROUNDING]
    above = sum(points > 0 for points in leads)
    if not leads or binomtest(above, len(leads), alternative="greater").pvalue >= LIFTED:
        return all_checks
    words = f"{above} of the {len(leads)} runs that are not equal are stated above what came out here"
    return [
        replace(check, finding="differs", detail=f"{check.detail}; {words}")
        if check.points > ROUNDING
        else check
        for check in all_checks
    ]


class _Gap(NamedTuple):
    """How far a number is from the stated one as a share of what is allowed (at most 1: within), and both in
    words.
    """

    share: float
    words: str


def compare(
    bundle_outcome: Outcome,
    new_outcome: Outcome,
    reason: str = "",
    places: tuple[Place, Place] = (Place(), Place()),
) -> tuple[Finding | None, str]:
    """How a run that was made again (and why it ended, if it did) compares with what a bundle states.

    ``equal``: every count is the same, those by class, too, where both have them, and so is the traffic.
    ``close``: for every stage and rule the pooled test accuracy is within ``TOLERANCE`` (``LOOSE`` but for
    ``best_val``) or within ``PREDICTIONS`` of each other, other metrics are within ``OTHER_METRICS`` times
    as many points, and the traffic is within ``TRAFFIC``. What is further apart, or ended otherwise,
    ``differs``, unless it was made in another of the two ``places`` and is within ``FAR`` times as much: then
    nothing can be told, since roundings alone go as far. Other clients or test items always differ.
    """
    if new_outcome.state not in SETTLED:  # that says something about this machine
        return None, f"it ended here as {new_outcome.state}: {reason}"
    if new_outcome.partition_hash != bundle_outcome.partition_hash:
        hashes = f"partition {bundle_outcome.partition_hash[:12]}, here {new_outcome.partition_hash[:12]}"
        return "differs", f"other clients: {hashes}"
    stated_place, new_place = places
    difference: Finding | None = "differs"
    suffix = ""
    if not stated_place.rounds_as(new_place):
        difference, suffix = None, f"; made on {stated_place} and here on {new_place}, which can do that"
    if new_outcome.state != bundle_outcome.state:
        ending = f"it ended here as {new_outcome.state}{f': {reason}' if reason else ''}"
        stated = "" if bundle_outcome.state == "done" else f"; the bundle says {bundle_outcome.state}"
        return difference, f"{ending}{stated}{suffix}"
    if new_outcome.state != "done":
        return "equal", f"it ended here as {new_outcome.state}, too: {reason}"
    if new_outcome.same(bundle_outcome) and new_outcome.traffic == bundle_outcome.traffic:
        return "equal", f"every count is the same, {_extent(bundle_outcome, new_outcome)}"
    sums, recount = bundle_outcome.tested(), new_outcome.tested()
    if {key: total for key, (_, total) in sums.items()} != {
        key: total for key, (_, total) in recount.items()
    }:
        return "differs", "other stages, rules or numbers of test samples"
    if bundle_outcome.has_classes_as(new_outcome) and not _same_items(bundle_outcome, new_outcome):
        return "differs", "other stages, rules or test items by class"
    gaps = [
        *(_accuracy_gap(reading, sums[reading][0], *recount[reading]) for reading in sums),
        *_metric_gaps(bundle_outcome, new_outcome, sums),
        *_traffic_gaps(bundle_outcome, new_outcome),
    ]
    share, words = max(gaps)
    if share <= 1 + ROUNDING:
        return "close", words
    return ("differs", words) if share > FAR else (difference, f"{words}{suffix}")


def lead(stated: Outcome, new: Outcome) -> float:
    """Points by which the stated pooled test accuracy is above the new one, for the stage and rule where the
    two are furthest apart, as a share of what is allowed; 0 where there are none to compare.
    """
    recount = new.tested()
    gaps = [
        (abs(points) / _limit(reading[1], samples), points)
        for reading, (correct, samples) in stated.tested().items()
        if reading in recount
        for points in [100 * (correct - recount[reading][0]) / samples]
    ]
    return max(gaps)[1] if gaps else 0.0


def _extent(stated: Outcome, new: Outcome) -> str:
    """What was compared beside accuracies and curves."""
    if stated.has_classes_as(new):
        return "by class, too, and the traffic"
    return "and the traffic; no counts by class to compare"


def _same_items(stated: Outcome, new: Outcome) -> bool:
    """Whether the counts by class are of the same readings, and of as many test items of every client and
    true class.
    """
    first, second = stated.confusions, new.confusions
    return first.keys() == second.keys() and all(
        np.array_equal(counts.sum(axis=2), second[reading].sum(axis=2)) for reading, counts in first.items()
    )


def _points_gap(name: str, reading: Reading, percent: float, new_percent: float, limit: float) -> _Gap:
    stage, rule = reading
    words = f"{name} {percent:.2f} %, here {new_percent:.2f} % ({stage} model, rule {rule})"
    return _Gap(abs(percent - new_percent) / limit, f"{words}; {limit:.2f} points are allowed")


def _limit(rule: str, samples: int) -> float:
    """Points by which the pooled test accuracy of so many samples may differ."""
    return max(TOLERANCE if rule == "best_val" else LOOSE, 100 * PREDICTIONS / samples)


def _accuracy_gap(reading: Reading, correct: float, recount: float, samples: int) -> _Gap:
    limit = _limit(reading[1], samples)
    return _points_gap("test accuracy", reading, 100 * correct / samples, 100 * recount / samples, limit)


def _metric_gaps(stated: Outcome, new: Outcome, sums: Mapping[Reading, tuple[float, int]]) -> Iterator[_Gap]:
    """Of every other metric that both have; ``sums`` as of ``Outcome.tested``."""
    new_means = new.other_metrics()
    for (metric, reading), mean in stated.other_metrics().items():
        if (metric, reading) in new_means:
            limit = OTHER_METRICS * _limit(reading[1], sums[reading][1])
            yield _points_gap(TITLES[metric], reading, mean, new_means[metric, reading], limit)


def _traffic_gaps(stated: Outcome, new: Outcome) -> Iterator[_Gap]:
    for direction, count, new_count in zip(("up", "down"), stated.traffic, new.traffic, strict=True):
        percent = 100 * abs(count - new_count) / max(new_count, 1)
        yield _Gap(
            percent / TRAFFIC,
            f"{count:,} bytes {direction}, here {new_count:,}; {TRAFFIC:.0f} % are allowed",
        )


def counted(checks: Sequence[Check]) -> str:
    """How many runs came out as what, and on which side of the new accuracies those are that are close."""
    counts = Counter(check.finding or "not checked" for check in checks)
    text = ", ".join(f"{counts[word]} {word}" for word in (*get_args(Finding), "not checked") if counts[word])
    points = [check.points for check in checks if check.finding == "close"]
    if not points:
        return text
    above, below = (sum(sign * value > ROUNDING for value in points) for sign in (1, -1))
    mean = sum(points) / len(points)
    sides = f"{above} above and {below} below what came out here, {mean:+.2f} points in the mean"
    return f"{text} (of those close, {sides})"


def outcome(checks: Sequence[Check]) -> str:
    """``contradicted`` if a run differs, ``agreed`` if every one was made and none does, else
    ``incomplete``.
    """
    findings = [check.finding for check in checks]
    if "differs" in findings:
        return "contradicted"
    return "agreed" if all(findings) else "incomplete"
