"""What goes wrong around a sweep: other sweeps, dead claims, the disk, locks, and servers that are away.

After each, what is stored equals what an undisturbed sweep stores, once each, and no process is left.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, get_args

import pytest
from fake_execute import outcome
from fake_runs import Scripted, grid, here, stored
from stored_runs import save

from bench.engine.states import State
from bench.errors import BusyError, RequestError
from bench.grids import expand
from bench.runner import claims
from bench.runner.claims import LEASE, Claims, status
from bench.store import Store, connect, open_store
from bench.store.store import now


@pytest.mark.usefixtures("older_code_exists")
@pytest.mark.parametrize("state", get_args(State))
def test_what_another_sweep_has_stored_spares_making_it(state: State, tmp_path: Path) -> None:
    """If it says how the run ends, and by code of the present numerics."""
    (step,) = Scripted(tmp_path).plan(expand(grid(methods=("local",), seeds=(0,))))
    row = stored(state, method=2)
    known = replace(step, stored=row._replace(started=now()))
    expected = "" if state == "no_data" else state
    assert step.ended_elsewhere(row) == known.ended_elsewhere(row) == expected
    assert step.ended_elsewhere(stored(state, method=1)) == "", "of older code"
    assert known.ended_elsewhere(known.stored) == "", "what the plan knew"
    assert step.ended_elsewhere(None) == ""


def test_a_claim_outlasts_the_longest_wait_for_the_database() -> None:
    last_try = connect.CONNECT_SECONDS + connect.BUSY_SECONDS
    assert claims.RENEW + claims.PATIENCE + last_try < LEASE


def test_a_sweep_asks_a_busy_database_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = {"states": Store.states, "transaction": Store.transaction}
    asked: Counter[str] = Counter()

    def busy_at_first(name: str) -> Callable[..., Any]:
        def ask(*arguments: Any) -> Any:
            asked[name] += 1
            if asked[name] % 2:
                raise BusyError("away")
            return real[name](*arguments)

        return ask

    for name in real:
        monkeypatch.setattr(Store, name, busy_at_first(name))
    monkeypatch.setattr(claims, "BUSY_PAUSE", 0.01)
    planned = expand(grid(methods=("local",), seeds=(0, 1)))
    assert Scripted(tmp_path).sweep(planned, pool=here()).counts == {"done": 2}
    assert min(asked.values()) >= 4, "what is read and what is written, in vain and again"


def test_a_database_is_waited_for_no_longer_than_it_makes_sense(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(error: Exception) -> None:
        raise error

    monkeypatch.setattr(claims, "BUSY_PAUSE", 0.01)
    busy = partial(fail, BusyError("locked"))
    with open_store(f"sqlite:///{tmp_path / 'bench.db'}", create=True) as store:
        with pytest.raises(BusyError):
            Claims(store, patience=0.05).ask(busy)
        with pytest.raises(KeyboardInterrupt):
            Claims(store, stopping=lambda: True).ask(busy)
        with pytest.raises(RequestError, match="readonly"):
            Claims(store).ask(partial(fail, RequestError("readonly")))


# What sweeps say of themselves ----------------------------------------------------------------------


def test_sweeps_of_other_machines_are_seen_and_dead_ones_are_not(tmp_path: Path) -> None:
    """What a run claims is running until it is stored."""
    work = Scripted(tmp_path)
    first, second = expand(grid(methods=("local",), seeds=(0, 1)))

    def said() -> list[str]:
        return sorted(line.partition(": ")[2] for line in status(work.url).splitlines())

    with open_store(work.url, create=True) as store:
        here, elsewhere, dead = (Claims(store) for _ in range(3))
        expired = Claims(store, lease=0)
        elsewhere.owner = f"else{elsewhere.owner}"
        host, pid, started, token = dead.owner.split(":")
        dead.owner = f"{host}:{pid}:{float(started) - 100}:{token}"
        for claims, spec_hash in ((here, first.spec.hash), (elsewhere, "b"), (dead, "c"), (expired, "d")):
            assert claims.take(spec_hash, f"run {spec_hash[0]}", "cpu")
        assert here.take(second.spec.hash, "second", "cuda:1")
        expected = ["0 made, 1 running", "0 made, 2 running", f"run {first.spec.hash[0]}", "run b", "second"]
        assert said() == sorted(expected)
        here.drop(first.spec.hash)
        save(store, second.spec, replace(outcome(second.spec), started=now()))
        assert said() == ["0 made, 1 running", "1 made, 0 running", "run b"]
        elsewhere.__exit__()
        assert said() == ["1 made, 0 running"]
