"""Studies as a table and lines for people, and as plain values for programs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapreplace
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

from bench.sweep.estimate import Estimator
from bench.sweep.show import duration
from bench.tune.ledger import Ledger
from bench.tune.record import EPSILON, Budget, Record, Trial, best_of, dearest, ended
from bench.tune.run import Tuned, width_of
from bench.tune.space import Value
from bench.tune.tuning import Tuning

TEXTS = ("dataset", "scenario", "method", "state")
COLUMNS = (*TEXTS[:2], "clients", "method", "space", "trials", "client epochs", "best", "time", "state")


@dataclass(frozen=True)
class Standing:
    """How far a study is. ``seconds`` is what the rest takes if no trial is pruned, one at a time; None where
    no like run is known. ``lacking`` says why its data are not at hand.
    """

    tuning: Tuning
    trials: Sequence[Trial]
    seconds: float | None
    lacking: str = ""

    @property
    def client_epochs(self) -> float:
        """Used so far."""
        return sum(trial.client_epochs for trial in self.trials)

    @property
    def ended(self) -> str:
        """What of the budget is used up; empty while the study goes on."""
        budget = Budget(trials=self.tuning.trials, client_epochs=self.tuning.budget)
        return ended(len(self.trials), self.client_epochs, budget, self.tuning.run_epochs, self.tuning.size)

    @property
    def best(self) -> float | None:
        """The best validation accuracy so far."""
        best = best_of(self.trials)
        return None if best is None else best.validation

    def side_by_side(self, width: int) -> float | None:
        """What ``seconds`` come to with so many trials at a time: none is split, and until it is known what
        one takes, each runs alone.
        """
        if self.seconds is None:
            return None
        tuning, most = self.tuning, dearest(self.trials, self.tuning.run_epochs)
        alone = int(most is None)
        left = int((tuning.budget - self.client_epochs + EPSILON) // (most or tuning.run_epochs))
        left = max(1, min(left, min(tuning.trials, tuning.size) - len(self.trials)))
        return self.seconds / left * (alone + math.ceil((left - alone) / width))


def standing(tuning: Tuning, trials: Sequence[Trial], history: Estimator, lacking: str) -> Standing:
    """Where a study stands, with the time that its unused client epochs take, by its own trials or else
    by stored runs.
    """
    found = Standing(tuning, trials, 0.0, lacking)
    if found.ended:
        return found
    left = tuning.budget - found.client_epochs
    if found.client_epochs:
        return Standing(
            tuning, trials, left * sum(trial.seconds for trial in trials) / found.client_epochs, lacking
        )
    run = history.seconds(tuning.spec)
    each = None if run is None else run * len(tuning.seeds)
    return Standing(tuning, trials, None if each is None else left / tuning.run_epochs * each, lacking)


def table(every: Sequence[Standing]) -> Table:
    """One row a study."""
    grid = Table(box=SIMPLE_HEAD, padding=(0, 1))
    for title in COLUMNS:
        grid.add_column(title, justify="left" if title in TEXTS else "right", overflow="fold")
    for each in every:
        spec, tuning = each.tuning.spec, each.tuning
        grid.add_row(
            spec.dataset,
            spec.scenario,
            str(spec.clients),
            spec.method,
            f"{tuning.size:,}",
            f"{len(each.trials)}/{tuning.trials}",
            f"{each.client_epochs:,.0f}/{tuning.budget:,}",
            percent(each.best),
            "unknown" if each.seconds is None else duration(each.seconds) if each.seconds else "-",
            each.lacking or (f"done: {each.ended}" if each.ended else "to do"),
        )
    return grid


def cost(every: Sequence[Standing], slots: int) -> str:
    """How many studies are to be done, and how long that takes if no trial is pruned."""
    at_hand = [each for each in every if not each.lacking]
    to_do = [each for each in at_hand if not each.ended]
    width = width_of(slots, len(at_hand) or 1)
    known = [seconds for each in to_do if (seconds := each.side_by_side(width)) is not None]
    text = f"{len(every)} stud{'y' if len(every) == 1 else 'ies'}, {len(to_do)} to do"
    if known:
        ends = [0.0] * (slots // width)
        for seconds in known:  # as they begin: spread evenly they would take the least, not the most
            heapreplace(ends, ends[0] + seconds)
        text += f", {duration(max(ends))} on {slots} at a time if no trial is pruned"
    unknown = len(to_do) - len(known)
    return text + (f"; the time of {unknown} is unknown, no like run is stored" if unknown else "")


def percent(accuracy: float | None) -> str:
    """An accuracy as people read it; ``-`` where there is none."""
    return "-" if accuracy is None else f"{100 * accuracy:.2f}"


def settings(parameters: dict[str, Value]) -> str:
    """A configuration in one phrase."""
    return " ".join(f"{key}={value}" for key, value in parameters.items())


def line(ledger: Ledger, trial: Trial) -> str:
    """One line on a trial that has ended."""
    tuning = ledger.tuning
    best = best_of(ledger.trials)
    what = (
        trial.state if trial.validation is None else f"{trial.state}, validation {percent(trial.validation)}"
    )
    why = f" ({trial.reason})" if trial.reason else ""
    return (
        f"[{len(ledger.trials)}/{tuning.trials}] {tuning.title}: {what}{why}, best "
        f"{percent(best.validation if best else None)}, {trial.seconds:.1f} s: {settings(trial.parameters)}"
    )


def result(record: Record) -> str:
    """One line on a finished study."""
    spec, used, budget = record.spec, record.used, record.budget
    return (
        f"{spec.method} {spec.dataset} {spec.scenario} {spec.clients}: validation "
        f"{percent(record.winner.validation)}, default {percent(record.default_validation)}, after "
        f"{used.trials} of {budget.trials} trials and {used.client_epochs:,.0f} of "
        f"{budget.client_epochs:,.0f} client epochs: {settings(record.winner.overrides)}"
    )


def as_json(every: Sequence[Standing], skipped: dict[str, str], slots: int) -> dict[str, Any]:
    """A dry run for programs."""
    studies = [
        {
            "study": each.tuning.name,
            "method": each.tuning.spec.method,
            "dataset": each.tuning.spec.dataset,
            "scenario": each.tuning.spec.scenario,
            "clients": each.tuning.spec.clients,
            "space": {key: list(values) for key, values in each.tuning.space.items()},
            "trials": {"done": len(each.trials), "asked": each.tuning.trials},
            "client_epochs": {"used": each.client_epochs, "asked": each.tuning.budget},
            "best_validation": each.best,
            "seconds": each.seconds,
            "ended": each.ended,
            "lacking": each.lacking,
        }
        for each in every
    ]
    return {"studies": studies, "skipped": skipped, "slots": slots}


def outcome_json(tuned: Tuned) -> dict[str, Any]:
    """What a request came to, for programs."""
    finished = [
        {
            "study": record.study,
            "file": str(path),
            "winner": record.winner.model_dump(),
            "default_validation": record.default_validation,
            "budget": record.budget.model_dump(),
            "used": record.used.model_dump(),
        }
        for record, path in tuned.records
    ]
    return {"finished": finished, "failed": tuned.failed}
