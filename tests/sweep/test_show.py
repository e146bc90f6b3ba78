"""Plans, as people and programs see them."""

from __future__ import annotations

import io

import pytest
from fake_runs import grid, have, stored
from rich.console import Console

from bench.grids import expand
from bench.resolve import resolve
from bench.store.queries import Stored, Timing
from bench.sweep import fingerprint, show
from bench.sweep.plan import make_plan

pytestmark = pytest.mark.usefixtures("older_code_exists")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0 s"),
        (0.03, "under 0.1 s"),
        (0.25, "0.2 s"),
        (9.94, "9.9 s"),
        (9.96, "10 s"),
        (59.4, "59 s"),
        (59.6, "1 min"),
        (5360.0, "89 min"),
        (5400.0, "1.5 h"),
    ],
)
def test_durations_as_people_say_them(seconds: float, text: str) -> None:
    assert show.duration(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "slots", "expected", "time"),
    [
        ((3600.0, 10.0), 2, 3600.0, "60 min on 2 at a time"),
        ((3600.0, 10.0), 1, 3610.0, "60 min on 1 at a time"),
        ((3600.0,), 2, 3600.0, "60 min on 2 at a time"),
        ((50.0, 20.0, 50.0), 2, 60.0, "1 min on 2 at a time"),
        ((50.0, 20.0, 50.0), 8, 50.0, "50 s on 8 at a time"),
    ],
)
def test_more_slots_than_runs_shorten_nothing(
    seconds: tuple[float, ...], slots: int, expected: float, time: str
) -> None:
    """Beside every run is one whose data are not at hand, which takes no slot."""
    methods = ("local", "fedavg", "fedprox")[: len(seconds)]
    history = []
    for method, each in zip(methods, seconds, strict=True):
        canonical = resolve("cora", "non-overlapping", 3, method, 0).canonical()
        history.append(Timing("cora", "non-overlapping", 3, method, canonical, each))
    planned = expand(grid(("cora", "citeseer"), methods, seeds=(0,)))
    plan = make_plan(planned, {}, lambda dataset: "no" * (dataset != "cora")).timed(history, "cpu")
    runs = len(seconds)
    assert show.to_do(plan, slots) == (
        f"{runs} to run, time {time}; {runs} more need data that the sweep tries to download"
    )
    tree = show.as_json(plan, slots, None)
    assert tree["seconds"] == pytest.approx(expected)
    assert tree["device_hours"] == pytest.approx(sum(seconds) / 3600)


def test_the_table_and_the_json_name_every_cell() -> None:
    plan = make_plan(expand(grid()), {}, have)
    out = io.StringIO()
    Console(file=out, width=120).print(show.table(plan))
    rows = [line.split() for line in out.getvalue().splitlines() if "cora" in line]
    assert [row[3:6] for row in rows] == [
        ["local", "2", "missing"],
        ["fedavg", "2", "missing"],
    ]
    tree = show.as_json(plan, 2, None)
    assert tree["counts"] == {"missing": 4}
    assert tree["to_run"] == 4
    assert [run["spec_hash"] for run in tree["runs"]] == [step.spec.hash for step in plan.steps]


def test_a_dry_run_says_what_is_exact_compatible_and_stale_and_what_it_costs() -> None:
    planned = expand(grid(methods=("local", "fedavg"), seeds=(0, 1, 2)))
    by_name = {plan.names[3:]: plan.spec.hash for plan in planned}
    here = fingerprint.code("fedavg")
    rows = {
        ("local", 0): stored("done", 2),
        ("local", 1): stored("done", 1),
        ("local", 2): stored("failed", 2),
        ("fedavg", 0): Stored(2, "done", "", here.method_numerics, here.engine_numerics, "other"),
        ("fedavg", 1): Stored(3, "diverged", "", here.method_numerics, here.engine_numerics, here.source),
    }
    states = {by_name[name]: row for name, row in rows.items()}
    states[by_name["local", 0]] = Stored(
        1, "done", "", 2, here.engine_numerics, fingerprint.code("local").source
    )
    spec = planned[0].spec
    history = [Timing("cora", "non-overlapping", 3, "local", spec.canonical(), 120.0)]
    plan = make_plan(planned, states, have).timed(history, "cpu")
    assert {level: row["runs"] for level, row in show.levels(plan).items()} == {
        "exact": 2,
        "compatible": 1,
        "stale": 1,
    }
    out = io.StringIO()
    Console(file=out, width=120).print(show.table(plan))
    text = " ".join(out.getvalue().split())
    assert "local 1 done, 1 failed, 1 stale 4 min" in text
    assert "fedavg 1 changed, 1 diverged, 1 missing unknown" in text
    tree = show.as_json(plan, 2, 2000.0)
    assert (tree["seconds"], tree["device_hours"], tree["bytes"]) == (120.0, pytest.approx(1 / 15), 6000)
