"""The journal: what comes next, what counts, and what a stop leaves."""

import json
import os
from pathlib import Path

import optuna
import pytest
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from tune_fakes import EPOCHS, ROUNDS, FakeFederation, answer, costly, tuning
from tune_studies import go_on, opened, order, room

from bench.engine.result import RunResult
from bench.errors import RequestError
from bench.tune.journal import journal, lock
from bench.tune.ledger import check_totals, stored_trials
from bench.tune.record import record
from bench.tune.sampler import OUTCOME
from bench.tune.trial import TrialResult

SMALL = {"client.learning_rate": (0.001, 0.01), "client.dropout": (0.0, 0.5)}


def test_the_default_comes_first_and_nothing_twice(tmp_path: Path) -> None:
    study = tuning(trials=30)
    trials = go_on(tmp_path, study)
    assert trials[0].parameters == study.default
    assert len(trials) == 30
    assert len({json.dumps(trial.parameters) for trial in trials}) == 30
    assert {trial.state for trial in trials} == {"complete", "pruned"}
    used = {"complete": ROUNDS * EPOCHS * 2}
    for trial in trials:
        if trial.state in used:
            assert trial.client_epochs == used[trial.state]
        else:
            assert 0 < trial.client_epochs < ROUNDS * EPOCHS * 2
    best = max(trial.validation or 0 for trial in trials)
    assert best in [trial.validation for trial in trials if trial.state == "complete"]
    assert {trial.seconds for trial in trials} == {0.25}, "the worker's, not what waiting took"


def test_curves_are_optunas_intermediate_values(tmp_path: Path) -> None:
    study = tuning(trials=3)
    go_on(tmp_path, study)
    storage = JournalStorage(JournalFileBackend(str(tmp_path / "journal.log")))
    (name,) = optuna.get_all_study_names(storage)
    assert name == study.name
    stored = optuna.load_study(study_name=name, storage=storage)
    assert [trial.state.name for trial in stored.trials] == ["COMPLETE"] * 3
    for trial in stored.trials:
        assert list(trial.intermediate_values) == list(range(ROUNDS))
        assert trial.value == trial.intermediate_values[ROUNDS - 1]


def test_the_same_study_takes_the_same_way(tmp_path: Path) -> None:
    study = tuning(trials=25)
    whole = go_on(tmp_path / "one", study)
    assert go_on(tmp_path / "two", study) == whole
    other = go_on(tmp_path / "three", tuning("fedavg", trials=25))
    assert [trial.parameters for trial in other] != [trial.parameters for trial in whole]


@pytest.mark.parametrize("stop", [0, 1, 7, 14])
@pytest.mark.parametrize("left", ["between", "running", "drawing", "ended"])
def test_a_study_that_was_stopped_goes_on_as_if_it_had_not(tmp_path: Path, stop: int, left: str) -> None:
    study = tuning(trials=16)
    whole = go_on(tmp_path / "whole", study)
    folder = tmp_path / "stopped"
    go_on(folder, study, stop)
    if left != "between":
        ledger = opened(folder, study)
        begun = ledger.begin()
        if left == "ended":  # all is written but that it has ended
            result = answer(order(study, begun))
            for round, value in enumerate(result.curve):
                ledger._asked[begun.number].report(value, round)
            state = result.stopped or "complete"
            outcome = {"state": state, "client_epochs": result.client_epochs, "seconds": 0.25, "reason": ""}
            ledger._asked[begun.number].set_user_attr(OUTCOME, outcome)
        if left == "drawing" and stop:  # the last of its parameters was not written yet
            path = folder / "journal.log"
            lines = path.read_bytes().splitlines(keepends=True)
            path.write_bytes(b"".join(lines[:-1]))
    assert len(stored_trials(folder, [study])[study.name]) == stop
    assert go_on(folder, study) == whole


def test_a_lost_trial_does_not_count_and_is_run_again_only_once(tmp_path: Path) -> None:
    study = tuning(trials=6)
    go_on(tmp_path, study, 3)
    first = opened(tmp_path, study)
    lost = first.begin()
    for _ in range(3):  # stopped again before it could begin
        opened(tmp_path, study)
    second = opened(tmp_path, study, 2)
    assert second.begin().parameters == lost.parameters
    assert second.begin().parameters != lost.parameters
    assert len(second.trials) == 3


def test_nothing_runs_beside_the_default(tmp_path: Path) -> None:
    study = tuning(trials=9)
    ledger = opened(tmp_path, study, 4)
    assert ledger.begin().parameters == study.default
    assert not ledger.ready
    again = opened(tmp_path, study, 4)  # it was killed
    default = again.begin()
    assert default.parameters == study.default
    assert default.allowance == study.budget
    again.end(default, answer(order(study, default)), 1.0)
    assert len([again.begin() for _ in range(4) if again.ready]) == 4


def test_a_default_that_failed_has_no_number(tmp_path: Path) -> None:
    study = tuning(trials=3)
    ledger = opened(tmp_path, study)
    ledger.end(ledger.begin(), RunResult("failed", "no"), 1.0)
    assert record(study, FakeFederation.hash, go_on(tmp_path, study)).default_validation is None


def test_an_exhausted_space_ends_the_study(tmp_path: Path) -> None:
    study = tuning(trials=9, space=SMALL)
    ledger = opened(tmp_path, study)
    assert ledger.ended == ""
    trials = go_on(tmp_path, study)
    assert len(trials) == 4
    assert opened(tmp_path, study).ended == "space"


def test_a_method_with_a_warm_up_gets_fewer_trials_and_no_more_client_epochs(tmp_path: Path) -> None:
    study = tuning(trials=8)
    trials = go_on(tmp_path, study, execute=costly)
    # 8 x 24 = 192 client epochs, 36 a trial: five trials take 180, and 12 do not make another.
    assert [trial.client_epochs for trial in trials] == [36.0] * 5
    assert opened(tmp_path, study).ended == "client epochs"
    more = tuning(trials=9)
    trials = go_on(tmp_path, more, execute=costly)
    # 216: the sixth trial has 36 left.
    assert [trial.client_epochs for trial in trials] == [36.0] * 6
    trials = go_on(tmp_path, tuning(trials=10), execute=costly)
    assert [trial.state for trial in trials] == ["complete"] * 6 + ["cut"]  # 240 - 216 = 24 of 36
    assert sum(trial.client_epochs for trial in trials) == 240


@pytest.mark.parametrize("slots", [2, 3, 20])
def test_trials_side_by_side_are_as_many_and_as_whole_as_one_by_one(tmp_path: Path, slots: int) -> None:
    # 20 x 24 = 480 client epochs, 36 a trial: 13 trials take 468.
    study = tuning(trials=20)
    assert [trial.state for trial in go_on(tmp_path / "one", study, execute=costly)] == ["complete"] * 13
    ledger = opened(tmp_path / "many", study, slots)
    under_way, most = [], 0
    while not ledger.ended:
        while ledger.ready:
            under_way.append(ledger.begin())
        most = max(most, len(under_way))
        assert ledger.used + sum(each.allowance for each in under_way) <= study.budget + 1e-9
        begun = under_way.pop(0)
        ledger.end(begun, costly(order(study, begun)), 1.0)
    assert most == min(slots, 12), "the default alone, then 444 client epochs for as many as have room"
    assert [trial.client_epochs for trial in ledger.trials] == [36.0] * 13
    assert {trial.state for trial in ledger.trials} == {"complete"}


def test_after_failures_alone_until_it_is_known_what_a_trial_takes(tmp_path: Path) -> None:
    study = tuning(trials=9)
    ledger = opened(tmp_path, study, 4)
    for _ in range(2):
        ledger.end(ledger.begin(), RunResult("failed", "no"), 1.0)
        begun = ledger.begin()
        assert not ledger.ready
        ledger.end(begun, RunResult("oom", "no room"), 1.0)
    begun = ledger.begin()
    ledger.end(begun, costly(order(study, begun)), 1.0)
    # 9 x 24 - 4 x 24 - 36 = 84 are left, two of 36 side by side.
    assert [ledger.begin().allowance for _ in range(4) if ledger.ready] == [42.0, 42.0]


@pytest.mark.parametrize("totals", [(1, 5, 18), (8, 10, 11, 18)])
def test_what_a_smaller_total_has_cut_is_run_again(tmp_path: Path, totals: tuple[int, ...]) -> None:
    whole = go_on(tmp_path / "whole", tuning(trials=18), execute=costly)
    cut = 0
    for total in totals:
        study = tuning(trials=total)
        trials = go_on(tmp_path / "steps", study, execute=costly)
        cut += trials[-1].state == "cut"
        assert sum(trial.client_epochs for trial in trials) <= study.budget
        assert go_on(tmp_path / "steps", study, execute=costly) == trials, "nothing is left to do"
    assert cut, "else nothing is shown"
    assert len(trials) == 12, "432 of 432 client epochs, 36 each, more than the ten drawn at random"
    assert trials == whole
    assert record(study, FakeFederation.hash, trials).default_validation == whole[0].validation


def test_a_cut_trial_of_an_exhausted_space_is_run_again_once(tmp_path: Path) -> None:
    study = tuning(trials=5, space=SMALL)
    ledger = opened(tmp_path, study)
    ledger.end(ledger.begin(), RunResult("failed", "no"), 1.0)
    trials = go_on(tmp_path, study, execute=costly)
    assert [trial.client_epochs for trial in trials] == [24.0, 36.0, 36.0, 24.0]  # of 5 x 24
    assert trials[-1].state == "cut"
    study = tuning(trials=6, space=SMALL)
    assert opened(tmp_path, study).begin().parameters == trials[-1].parameters  # and is killed
    again = go_on(tmp_path, study, execute=costly)
    assert again[:3] == trials[:3]
    assert [(trial.state, trial.parameters) for trial in again[3:]] == [("complete", trials[-1].parameters)]


def test_failures_count_with_their_reason(tmp_path: Path) -> None:
    study = tuning(trials=4)
    ledger = opened(tmp_path, study)
    ended = [
        ledger.end(ledger.begin(), result, 2.5)
        for result in (
            RunResult("failed", "ValueError: no"),
            TrialResult("diverged", "nan", seconds={"total": 0.5}, curve=(0.9,), client_epochs=4.0),
            RunResult("oom", "MemoryError"),
        )
    ]
    assert [(each.state, each.reason, each.validation) for each in ended] == [
        ("failed", "ValueError: no", None),
        ("diverged", "nan", None),
        ("oom", "MemoryError", None),
    ]
    assert [each.client_epochs for each in ended] == [24.0, 4.0, 24.0]
    assert [each.seconds for each in ended] == [2.5, 0.5, 2.5]
    assert ledger.ready


def test_a_torn_last_line_is_cut_off(tmp_path: Path) -> None:
    study = tuning(trials=12)
    whole = go_on(tmp_path / "whole", study)
    go_on(tmp_path / "torn", study, 5)
    path = tmp_path / "torn" / "journal.log"
    text = path.read_bytes()
    path.write_bytes(text + b'{"op_code":4,"worker_id":"x')
    assert len(stored_trials(tmp_path / "torn", [study])[study.name]) == 5
    assert go_on(tmp_path / "torn", study) == whole


def test_a_torn_line_harms_no_tuner_that_shares_the_journal(tmp_path: Path) -> None:
    one, two = tuning(trials=6), tuning("fedavg", trials=6)
    alone = go_on(tmp_path / "one", one), go_on(tmp_path / "two", two)
    shared = tmp_path / "shared"
    go_on(shared, one, 3)
    alive = opened(shared, two)
    under_way = alive.begin()
    dying = opened(shared, one)
    begun = dying.begin()
    with (
        room((shared / "journal.log").stat().st_size + 40),
        pytest.raises(RequestError, match=r"expected to write .*journal\.log: File too large") as caught,
    ):
        dying.end(begun, answer(order(one, begun)), 1.0)
    assert "\n" not in str(caught.value)
    assert not (shared / "journal.log").read_bytes().endswith(b"\n"), "else nothing is torn"

    alive.end(under_way, answer(order(two, under_way)), 1.0)
    assert stored_trials(shared, [one, two]) == {one.name: alone[0][:3], two.name: alone[1][:1]}
    assert go_on(shared, two) == alone[1]
    assert go_on(shared, one) == alone[0]


@pytest.mark.parametrize("act", ["begin", "take up"])
def test_no_room_for_a_trial_to_begin(tmp_path: Path, act: str) -> None:
    study = tuning(trials=6)
    whole = go_on(tmp_path / "whole", study)
    go_on(tmp_path / "full", study, 2)
    ledger = opened(tmp_path / "full", study)
    with (
        room((tmp_path / "full" / "journal.log").stat().st_size),
        pytest.raises(RequestError, match=r"expected to write .*journal\.log"),
    ):
        ledger.begin() if act == "begin" else opened(tmp_path / "full", study)
    assert go_on(tmp_path / "full", study) == whole


def test_totals_below_what_is_done(tmp_path: Path) -> None:
    go_on(tmp_path, tuning(trials=5))
    check_totals(tmp_path, [tuning(trials=5)])
    with pytest.raises(
        RequestError, match="5 trials are done, and --trials is a total: expected 5 or more, got 4"
    ):
        check_totals(tmp_path, [tuning(trials=4)])
    check_totals(tmp_path / "nothing", [tuning(trials=1)])
    assert not (tmp_path / "nothing").exists()


def test_a_total_below_the_client_epochs_that_are_used(tmp_path: Path) -> None:
    go_on(tmp_path, tuning(trials=9), execute=costly)  # 6 x 36 = 9 x 24
    check_totals(tmp_path, [tuning(trials=9)])
    with pytest.raises(RequestError, match=r"6 trials are done, .*: expected 9 or more, got 8"):
        check_totals(tmp_path, [tuning(trials=8)])


def test_a_study_does_not_go_on_with_other_clients(tmp_path: Path) -> None:
    study = tuning(trials=6)
    whole = go_on(tmp_path / "whole", study)
    go_on(tmp_path / "half", study, 3)
    before = (tmp_path / "half" / "journal.log").read_bytes()
    text = r"local .* 3: its trials were made on other clients \(fake\) than there are now \(another\)"
    with pytest.raises(RequestError, match=text) as caught:
        opened(tmp_path / "half", study, clients="another")
    assert "\n" not in str(caught.value)
    assert (tmp_path / "half" / "journal.log").read_bytes().count(b"\n") == before.count(b"\n") + 1, (
        "but for the library's asking for the study nothing is written"
    )
    assert go_on(tmp_path / "half", study) == whole


def test_trials_of_unknown_clients_are_not_gone_on_with(tmp_path: Path) -> None:
    study = tuning()
    optuna.create_study(storage=journal(tmp_path), study_name=study.name, direction="maximize")
    assert opened(tmp_path, study).ready, "one that was killed before it noted the clients has no trial"
    path = tmp_path / "journal.log"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(line for line in lines if b"fake" not in line))
    with pytest.raises(RequestError, match=r"other clients \(unknown\) than there are now \(fake\)"):
        opened(tmp_path, study)


def test_one_tuner_a_study(tmp_path: Path) -> None:
    first = lock(tmp_path, tuning())
    with pytest.raises(RequestError, match="another bench tune is at it"):
        lock(tmp_path, tuning(trials=99))
    lock(tmp_path, tuning("fedavg")).release()
    first.release()
    lock(tmp_path, tuning()).release()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(RequestError, match="expected to write"):
        journal(tmp_path / "tuning")


def test_a_file_in_the_folders_place(tmp_path: Path) -> None:
    (tmp_path / "tuning").write_text("x")
    for broken in (lambda: journal(tmp_path / "tuning"), lambda: lock(tmp_path / "tuning", tuning())):
        with pytest.raises(RequestError, match="expected to write"):
            broken()
