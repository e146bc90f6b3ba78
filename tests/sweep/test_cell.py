"""A cell's commands: what they plan is exactly the cell's runs."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from fake_database import FakeDatabase

from bench.cli.main import main
from bench.errors import RequestError
from bench.grids import Filters, ad_hoc, expand
from bench.resolve import parse_overrides, resolve
from bench.sweep.cell import cell

NAME = "cora/non-overlapping/10/fedprox"


def database() -> FakeDatabase:
    """FedProx with three seeds, two of them at another mu as well, and another method beside."""
    made = FakeDatabase()
    for seed in (0, 4, 1):
        made.add("fedprox", seed, [1], spec=resolve("cora", "non-overlapping", 10, "fedprox", seed))
    for seed in (0, 1):
        spec = resolve("cora", "non-overlapping", 10, "fedprox", seed, {"method.mu": 0.5})
        made.add("fedprox", seed, None, state="failed", spec=spec)
    made.add("local", 0, [1], spec=resolve("cora", "non-overlapping", 10, "local", 0))
    return made


def planned(command: str) -> set[str]:
    """Spec hashes of what a ``bench sweep`` line runs."""
    words = shlex.split(command)[2:]
    given: dict[str, list[str]] = {}
    for option, value in zip(words[::2], words[1::2], strict=True):
        given.setdefault(option, []).append(value)
    filters = Filters(
        tuple(given["-d"]),
        tuple(given["-s"]),
        tuple(map(int, given["-k"])),
        tuple(given["-m"]),
        tuple(map(int, given["--seed"])),
    )
    runs = expand(ad_hoc(filters), filters, parse_overrides(given.get("--set", [])))
    return {run.spec.hash for run in runs if run.spec}


def test_the_commands_make_exactly_the_runs_of_the_cell() -> None:
    runs = database().runs().assign(origin="")
    found = cell(runs, NAME)
    assert [(each.seeds, each.states) for each in found] == [
        ((0, 1, 4), {"done": 3}),
        ((0, 1), {"failed": 2}),
    ]
    wanted = set(runs.loc[runs["method"] == "fedprox", "spec_hash"])
    assert planned(found[0].command) | planned(found[1].command) == wanted
    assert planned(found[0].command).isdisjoint(planned(found[1].command))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("cora", "expected a run's id or DATASET/SCENARIO/CLIENTS/METHOD"),
        ("cora/non-overlapping/10/fedproxx", f"did you mean '{NAME}'"),
    ],
)
def test_names_that_are_no_cell(name: str, message: str) -> None:
    with pytest.raises(RequestError, match=message):
        cell(database().runs().assign(origin=""), name)


def test_cells_that_come_with_the_suite_have_commands_too(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BENCH_HOME", str(tmp_path))
    with pytest.raises(SystemExit) as end:
        main(["runs", "show", "cora/non-overlapping/10/fedavg"])
    assert end.value.code == 0
    first = capsys.readouterr().out.splitlines()[:2]
    assert "done (cora)" in first[0]
    assert first[1].startswith("  bench sweep -d cora -s non-overlapping -k 10 -m fedavg --seed 0 --seed 1")
