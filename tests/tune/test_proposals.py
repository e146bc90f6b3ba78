"""What is proposed, and searches as the library's own studies."""

from __future__ import annotations

from pathlib import Path

import optuna
import pytest
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

from bench.errors import RequestError
from bench.tune.proposals import export, propose

from .toy_tuning import go_on, tuning


def test_proposals_follow_from_the_trials_and_are_new() -> None:
    search = tuning(trials=20)
    trials = go_on(search).trials[:15]
    first = propose(search, trials)
    assert propose(search, trials) == first
    assert first not in {search.configurations.index(trial.parameters) for trial in trials}
    assert propose(search, trials[:14]) != first


def test_the_space_is_numbered_with_the_last_parameter_fastest() -> None:
    search = tuning(space={"client.learning_rate": (0.001, 0.01), "client.dropout": (0.0, 0.5)})
    configurations = [tuple(configuration.values()) for configuration in search.configurations]
    assert configurations == [(0.001, 0.0), (0.001, 0.5), (0.01, 0.0), (0.01, 0.5)]


def test_the_dashboard_reads_what_is_exported(tmp_path: Path) -> None:
    search = tuning(trials=16)
    where = go_on(search)
    path = tmp_path / "searches.log"
    export([(search, where.trials)], path)
    storage = JournalStorage(JournalFileBackend(str(path)))
    (name,) = optuna.get_all_study_names(storage)
    assert name == search.name
    stored = optuna.load_study(study_name=name, storage=storage)
    assert len(stored.trials) == 16
    for trial, mine in zip(stored.trials, where.trials, strict=True):
        assert trial.params == mine.parameters
        assert (trial.state.name, trial.value) == ("COMPLETE", mine.validation)
    with pytest.raises(RequestError, match="--optuna expects a new file"):
        export([(search, where.trials)], path)
