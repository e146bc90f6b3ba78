"""``bench tune``: what it prints, returns, writes and draws."""

from pathlib import Path

from bench.grids import Filters, expand, requested_grid
from bench.resolve import parse_overrides
from bench.tune.record import Record, configurations, tuned

from .conftest import Bench

SETTINGS = ("protocol.rounds=2", "client.hidden=8")
SEARCH = f"tune -m local -d cora -k 3 --set {SETTINGS[0]} --set {SETTINGS[1]} --jobs 1 --devices cpu"
LOCAL = f"{SEARCH} --trials 2"


def test_from_a_dry_run_to_a_tuned_run(home: Path, bench: Bench) -> None:
    assert bench(LOCAL, "--dry-run").out.endswith("to do, time unknown\n")
    assert not home.exists(), "a dry run writes nothing"

    code, out, _ = bench(LOCAL)
    assert code == 0
    assert "trial 1 of 2, local cora non-overlapping 3: complete, validation " in out
    assert "after 2 of 2 trials: " in out

    (file,) = (home / "tuned").iterdir()
    record = Record.model_validate_json(file.read_bytes())
    assert record.winner.validation >= (record.default_validation or 0.0) > 0

    ended = "2 of 2 trials, 24 of 24 client epochs, best "
    assert ended in bench(LOCAL, "--dry-run").out
    assert ": to do, " in bench(SEARCH, "--trials 6 --dry-run").out
    assert "unknown" not in bench(SEARCH, "--trials 6 --dry-run").out, "by the runs of the search itself"

    grid = requested_grid(None, Filters(("cora",), (), (3,), ("local",)))
    planned = expand(grid, overrides=parse_overrides(SETTINGS))
    (run,) = tuned(planned, configurations(home))
    assert run.spec.client.learning_rate == record.winner.overrides["client.learning_rate"]
    assert run.spec.client.hidden == 8
    assert run.spec.seed == 0
