"""Figures of studies: history, importance, learning rates and the best of k trials."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import optuna
from optuna.importance import PedAnovaImportanceEvaluator, get_param_importances

from bench.errors import RequestError
from bench.report.figures import Figure, save
from bench.tune.apply import configurations
from bench.tune.ledger import stored_trials
from bench.tune.panels import BestOfPanel, HistoryPanel, ImportancePanel, RatePanel, TrialsPanel
from bench.tune.record import Trial
from bench.tune.sampler import distributions
from bench.tune.tuning import Tuning

CLIENT_RATE = "client.learning_rate"
RATE = "learning_rate"

BEST = 0.25
"""Share of the trials that count as the best ones where importance is asked for."""

LEAST = 8
"""Trials from which on importance is computed: two of them are the best quarter then."""


def figures_of(studies: Sequence[Tuning], home: Path, folder: Path) -> list[Path]:
    """Draw every study that has trials, from the journal or else from its finished record.

    Equal trials give equal bytes. Written are PDF, PNG and CSV of each figure.

    Raises:
        RequestError: none of the studies has a trial that reached a number.
    """
    stored = stored_trials(home / "tuning", studies)
    known = configurations(home)
    drawn: list[Figure] = []
    for each in studies:
        trials = tuple(stored[each.name])
        finished = known.of(each.spec)
        if not trials and finished is not None and finished.record.study == each.name:
            trials = finished.record.trials
        if any(trial.validation is not None for trial in trials):
            drawn += figures(each, trials)
    if not drawn:
        raise RequestError(
            f"--plots: none of {len(studies)} studies has a trial yet: run bench tune first, without --plots"
        )
    folder.mkdir(parents=True, exist_ok=True)
    return [path for figure in drawn for path in save(figure, folder)]


def figures(tuning: Tuning, trials: tuple[Trial, ...]) -> list[Figure]:
    """The figures of one study; without importance where there are too few trials."""
    rates = [key for key in tuning.space if key.endswith(RATE) and key != CLIENT_RATE]
    panels: dict[str, TrialsPanel] = {"history": HistoryPanel(tuning, trials)}
    shares = importances(tuning, trials)
    if shares:
        panels["importance"] = ImportancePanel(tuning, trials, shares)
    if CLIENT_RATE in tuning.space:
        # Of a method's own rates the last is the one of what makes the models.
        panels["learning_rate"] = RatePanel(tuning, trials, CLIENT_RATE, rates[-1] if rates else None)
    panels["best_of_k"] = BestOfPanel(tuning, trials)
    stem = tuning.title.replace(" ", "-")
    return [Figure("tuning", f"{stem}-{name}", "", (panel,)) for name, panel in panels.items()]


def importances(tuning: Tuning, trials: Sequence[Trial]) -> dict[str, float]:
    """How much each parameter mattered for being among the best quarter of the trials (PED-ANOVA),
    adding up to 1, the largest first; empty where fewer than ``LEAST`` trials, or all the same, reached
    a number.
    """
    numbers = [(trial.parameters, trial.validation) for trial in trials if trial.validation is not None]
    if len(numbers) < LEAST or len({value for _, value in numbers}) == 1:
        return {}
    study = optuna.create_study(direction="maximize")
    space = distributions(tuning.space)
    for chosen, value in numbers:
        study.add_trial(optuna.trial.create_trial(params=chosen, distributions=dict(space), value=value))
    return get_param_importances(study, evaluator=PedAnovaImportanceEvaluator(target_quantile=BEST))
