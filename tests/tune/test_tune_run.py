"""Whole studies in worker processes, and what stops them."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tune_fakes import (
    EPOCHS,
    ROUNDS,
    Crowded,
    Killed,
    answer,
    any_federation,
    broken,
    costly,
    cpu,
    faulty,
    not_applicable,
    too_large,
    tuning,
)
from tune_studies import room

from bench.errors import NoDataError, RequestError
from bench.sweep.devices import Slots
from bench.tune.ledger import stored_trials
from bench.tune.record import Record, parse
from bench.tune.run import Tuned, tune
from bench.tune.tuning import Tuning

SCRIPT = Path(__file__).with_name("tune_script.py")


def run(home: Path, studies: list[Tuning], execute: Any = answer, slots: int = 1, said: Any = None) -> Tuned:
    lines: list[str] = [] if said is None else said
    return tune(
        studies, home, (), cpu(slots), lines.append, lambda ledger, trial: None, execute, any_federation
    )


def read(home: Path, name: str = "local-cora-non-overlapping-3.json") -> Record:
    return parse((home / "tuned" / name).read_bytes(), name)


def plain(record: Record) -> dict[str, Any]:
    """A record without what depends on the clock."""
    tree = record.model_dump()
    for trial in tree["trials"]:
        del trial["seconds"]
    return tree


def test_the_winner_is_the_best_by_validation_and_written_when_the_budget_is_used_up(tmp_path: Path) -> None:
    tuned = run(tmp_path, [tuning(trials=9)])
    assert tuned.exit_code == 0
    path = tmp_path / "tuned" / "local-cora-non-overlapping-3.json"
    assert [file for _, file in tuned.records] == [path]
    tree = json.loads(path.read_text())
    best = max(tree["trials"], key=lambda trial: trial["validation"])
    assert tree["winner"] == {
        "number": best["number"],
        "overrides": best["parameters"],
        "validation": best["validation"],
    }
    assert tree["budget"] == {"trials": 9, "client_epochs": 9 * ROUNDS * EPOCHS * 2}
    assert tree["used"]["trials"] == len(tree["trials"]) == 9
    assert tree["used"]["client_epochs"] == sum(trial["client_epochs"] for trial in tree["trials"])
    assert tree["default_validation"] == tree["trials"][0]["validation"] <= best["validation"]
    assert tree["packages"].keys() == {"bench", "numpy", "optuna", "torch"}
    text = path.read_bytes()
    again = run(tmp_path, [tuning(trials=9)])
    assert [file for _, file in again.records] == [path]
    assert path.read_bytes() == text, "nothing was left to do"


def test_a_larger_total_goes_on(tmp_path: Path) -> None:
    run(tmp_path / "stepwise", [tuning(trials=4)])
    first = read(tmp_path / "stepwise")
    run(tmp_path / "stepwise", [tuning(trials=9)])
    run(tmp_path / "at-once", [tuning(trials=9)])
    assert plain(read(tmp_path / "stepwise")) == plain(read(tmp_path / "at-once"))
    assert read(tmp_path / "stepwise").trials[:4] == first.trials
    with pytest.raises(RequestError, match="expected 9 or more, got 8"):
        run(tmp_path / "stepwise", [tuning(trials=8)])


def test_a_study_ends_before_a_trial_where_its_clients_are_others_now(tmp_path: Path) -> None:
    def other_federation(*key: Any, roots: tuple[Path, ...]) -> Any:
        made = any_federation(*key, roots=roots)
        made.hash = "another"
        return made

    run(tmp_path, [tuning(trials=2)])
    before = read(tmp_path)
    assert before.clients == "fake"
    with pytest.raises(RequestError, match=r"made on other clients \(fake\) than there are now \(another\)"):
        tune([tuning(trials=4)], tmp_path, (), cpu(1), print, lambda *_: None, answer, other_federation)
    run(tmp_path, [tuning(trials=4)])
    assert read(tmp_path).trials[:2] == before.trials


def test_with_a_study_for_every_worker_their_number_changes_nothing(tmp_path: Path) -> None:
    studies = [tuning(trials=7), tuning("fedprox", trials=7), tuning("fedsheafhn", trials=7)]
    for slots in (1, 3):
        tuned = run(tmp_path / str(slots), studies, slots=slots)
        assert sorted(record.study for record, _ in tuned.records) == sorted(study.name for study in studies)
    for name in ("local", "fedprox", "fedsheafhn"):
        file = f"{name}-cora-non-overlapping-3.json"
        assert plain(read(tmp_path / "1", file)) == plain(read(tmp_path / "3", file))


def test_several_workers_on_one_study_keep_to_its_budget(tmp_path: Path) -> None:
    run(tmp_path, [tuning(trials=8)], costly, slots=3)
    record = read(tmp_path)
    assert record.used.client_epochs <= record.budget.client_epochs
    assert len({json.dumps(trial.parameters) for trial in record.trials}) == record.used.trials


def test_failures_are_trials_and_killed_workers_are_tried_again(tmp_path: Path) -> None:
    said: list[str] = []
    space = {"client.learning_rate": (0.001, 0.01), "client.weight_decay": (0.0, 0.0005, 0.005)}
    tuned = run(tmp_path, [tuning(trials=6, space=space)], faulty, said=said)
    assert tuned.exit_code == 0
    by = {tuple(trial.parameters.values()): trial for trial in read(tmp_path).trials}
    assert by[0.001, 0.0].reason == by[0.01, 0.0].reason == "ValueError: first line"
    assert by[0.01, 0.005].state == "diverged"
    assert by[0.01, 0.005].validation is None, "what it reached before is not its result"
    assert by[0.001, 0.005].state == "failed"
    assert by[0.001, 0.005].reason == "the worker process died (killed by signal 9), 4 times"
    assert sum("trying again" in line for line in said) == 3
    assert read(tmp_path).winner.overrides["client.weight_decay"] == 0.0005


def test_what_does_not_fit_beside_others_is_tried_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.tune.run.Workers", Crowded)
    space = {"client.learning_rate": (0.001, 0.003, 0.01, 0.03), "client.weight_decay": (0.0, 0.0005)}
    said: list[str] = []
    tune(
        [tuning(trials=8, space=space)], tmp_path, (), Slots(("cuda:0", "cuda:1") * 2, 1),
        said.append, lambda *_: None, answer, any_federation,
    )  # fmt: skip
    trials = read(tmp_path).trials
    assert len(trials) == 8
    assert {trial.state for trial in trials} <= {"complete", "pruned"}
    assert said, "else all of them were alone from the start"
    assert set(said) == {"local cora non-overlapping 3: no room; trying again alone on the device"}


def test_what_the_system_kills_for_want_of_memory_is_tried_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.tune.run.Workers", Killed)
    monkeypatch.setattr("bench.sweep.pool.kills_for_memory", lambda: Killed.kills)
    said: list[str] = []
    tuned = run(tmp_path, [tuning(trials=2)], slots=2, said=said)
    (reason,) = tuned.failed.values()
    (trials,) = stored_trials(tmp_path / "tuning", [tuning()]).values()
    assert [trial.state for trial in trials] == ["oom", "oom"]
    assert {trial.reason for trial in trials} == {
        "the system killed the worker for want of memory; peak unknown; "
        "tried beside other runs, alone on the device"
    }
    assert "none of 2 trials gave a number" in reason
    assert len(said) == 2
    assert all(line.endswith("for want of memory; trying again alone on the device") for line in said)


@pytest.mark.slow
def test_what_does_not_fit_alone_is_a_trial(tmp_path: Path) -> None:
    for slots, tried in ((2, "beside other runs, alone on the device"), (1, "alone on the device")):
        run(tmp_path / str(slots), [tuning(trials=2)], too_large, slots=slots)
        (trials,) = stored_trials(tmp_path / str(slots) / "tuning", [tuning()]).values()
        assert [trial.state for trial in trials] == ["oom", "oom"]
        assert {trial.reason.rpartition("; ")[2] for trial in trials} == {f"tried {tried}"}


@pytest.mark.parametrize("what", ["journal", "record"])
def test_a_full_disk_ends_in_one_line_and_the_same_request_goes_on(tmp_path: Path, what: str) -> None:
    run(tmp_path / "whole", [tuning(trials=4)])
    home = tmp_path / "full"

    def fill(ledger: Any, trial: Any) -> None:
        if trial.number == (1 if what == "journal" else 3):
            size = (home / "tuning" / "journal.log").stat().st_size
            disk.enter_context(room(size + 50 if what == "journal" else 100))

    with (
        ExitStack() as disk,
        pytest.raises(RequestError, match=r"expected to write .*: File too large") as caught,
    ):
        tune([tuning(trials=4)], home, (), cpu(1), lambda text: None, fill, answer, any_federation)
    assert "\n" not in str(caught.value)
    assert not list(home.glob("tuned/*"))
    run(home, [tuning(trials=4)])
    assert plain(read(home)) == plain(read(tmp_path / "whole"))


def test_without_a_single_number_there_is_no_winner(tmp_path: Path) -> None:
    tuned = run(tmp_path, [tuning(trials=3)], broken)
    assert tuned.exit_code == 1
    (reason,) = tuned.failed.values()
    assert "none of 3 trials gave a number: ValueError: no good" in reason
    assert not (tmp_path / "tuned").exists()


def test_what_is_not_applicable_is_left_and_the_rest_goes_on(tmp_path: Path) -> None:
    tuned = run(tmp_path, [tuning(trials=3)], not_applicable)
    assert tuned.failed == {"local cora non-overlapping 3": "not on this"}
    assert stored_trials(tmp_path / "tuning", [tuning()])[tuning().name] == []


def test_data_that_are_not_to_be_had(tmp_path: Path) -> None:
    def lacking(*key: Any, roots: tuple[Path, ...]) -> Any:
        if key[0] == "cora":
            raise NoDataError("missing cora.x")
        return any_federation(*key, roots=roots)

    def these(studies: list[Tuning]) -> Tuned:
        return tune(studies, tmp_path, (), cpu(1), print, lambda *_: None, answer, lacking)

    with pytest.raises(NoDataError, match=r"missing cora\.x"):
        these([tuning()])
    assert not list(tmp_path.iterdir())
    tuned = these([tuning(trials=2), tuning(trials=2, dataset="citeseer")])
    assert tuned.failed == {"local cora non-overlapping 3": "missing cora.x"}
    assert len(tuned.records) == 1


# A tuner in a process of its own ---------------------------------------------------------------


def start(home: Path, log: Path, trials: int, seconds: float = 0.05, slots: int = 1) -> subprocess.Popen[str]:
    log.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, str(SCRIPT), str(home), str(log), str(seconds), str(trials), str(slots)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)


def wait_for(log: Path, count: int) -> None:
    deadline = time.monotonic() + 60
    while len(list(log.iterdir())) < count:
        assert time.monotonic() < deadline, "the tuner does not get on"
        time.sleep(0.01)


def wait_for_the_end_of(processes: set[int]) -> None:
    deadline = time.monotonic() + 20
    while any(Path(f"/proc/{process}").exists() for process in processes):
        assert time.monotonic() < deadline, "orphans"
        time.sleep(0.05)


def records(home: Path) -> list[dict[str, Any]]:
    return [plain(read(home, f"{name}-cora-non-overlapping-3.json")) for name in ("local", "fedprox")]


@pytest.mark.slow
def test_a_killed_tuner_goes_on_where_it_was(tmp_path: Path) -> None:
    """Killed three times at seeded moments: the total is kept to, no trial is lost or there twice, and no
    worker is left behind.
    """
    whole = tmp_path / "whole"
    tune(
        [tuning("local", 10), tuning("fedprox", 10)],
        whole, (), cpu(1), lambda text: None, lambda *_: None, answer, any_federation,
    )  # fmt: skip
    rng = random.Random(11)
    home, log = tmp_path / "killed", tmp_path / "log"
    for kill in range(3):
        process = start(home, log, 10)
        wait_for(log, 5 * kill + 2)
        time.sleep(rng.random() * 0.1)
        os.kill(process.pid, signal.SIGKILL)
        process.communicate(timeout=30)
        assert not (home / "tuned" / "fedprox-cora-non-overlapping-3.json").exists()
    wait_for_the_end_of({int(file.name.partition("-")[2]) for file in log.iterdir()})
    done = {
        name: len(found)
        for name, found in stored_trials(home / "tuning", [tuning("local"), tuning("fedprox")]).items()
    }
    assert 5 <= sum(done.values()) < 20
    last = start(home, log, 10)
    out, _ = last.communicate(timeout=120)
    assert out.splitlines()[-1] == "2 {}"
    assert records(home) == records(whole)
    begun = len(list(log.iterdir()))
    assert 20 <= begun <= 23, "only what was running when it was killed was run again"


@pytest.mark.slow
def test_an_interrupt_finishes_what_runs_and_a_second_tuner_is_refused(tmp_path: Path) -> None:
    home, log = tmp_path / "home", tmp_path / "log"
    process = start(home, log, 4, seconds=0.2)
    wait_for(log, 1)
    with pytest.raises(RequestError, match="another bench tune is at it"):
        run(home, [tuning("fedprox", trials=4)])
    wait_for(log, 3)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Ctrl-C again stops now" in out
    studies = [tuning("local"), tuning("fedprox")]
    counted = sum(map(len, stored_trials(home / "tuning", studies).values()))
    assert counted == len(list(log.iterdir())), "what ran has ended and counts"
    assert counted < 8
    assert not (home / "tuned" / "fedprox-cora-non-overlapping-3.json").exists()
    again = start(home, log, 4, seconds=0)
    assert again.communicate(timeout=60)[0].splitlines()[-1] == "2 {}"
    assert len(list(log.iterdir())) == 8, "no trial was run twice"
