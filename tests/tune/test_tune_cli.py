"""``bench tune`` as a function: what it prints, returns, writes and draws."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from tune_fakes import EPOCHS, ROUNDS, tuning
from tune_studies import finished, go_on

from bench.cli.tune import tune
from bench.errors import RequestError
from bench.grids import Filters, ad_hoc, expand
from bench.resolve import parse_overrides
from bench.tune.apply import configurations, tuned
from bench.tune.panels import ENDED, BestOfPanel, HistoryPanel
from bench.tune.plots import figures, importances
from bench.tune.record import Trial
from bench.tune.show import Standing, cost
from bench.tune.tuning import Tuning

REQUEST: dict[str, Any] = {
    "dataset": ["cora"],
    "method": ["local"],
    "clients": [3],
    "trials": 2,
    "set_": ["protocol.rounds=2", "client.hidden=8"],
    "jobs": 1,
    "devices": "cpu",
}
TOY = [f"protocol.rounds={ROUNDS}", f"protocol.local_epochs={EPOCHS}"]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BENCH_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("BENCH_DATA", raising=False)
    return tmp_path / "home"


def test_from_a_dry_run_to_a_tuned_run(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert tune(**REQUEST, dry_run=True) == 0
    assert "1 study, 1 to do; the time of 1 is unknown" in capsys.readouterr().out
    assert not home.exists(), "a dry run writes nothing"

    assert tune(**REQUEST) == 0
    out = capsys.readouterr().out
    assert "[1/2] local cora non-overlapping 3: complete, validation " in out
    assert "after 2 of 2 trials and 24 of 24 client epochs" in out  # 2 trials x 2 rounds x 3 epochs x 2 seeds

    assert tune(**REQUEST, as_json=True) == 0
    outcome = json.loads(capsys.readouterr().out)
    (study,) = outcome["finished"]
    assert Path(study["file"]) == home / "tuned" / "local-cora-non-overlapping-3.json"
    assert study["winner"]["validation"] >= study["default_validation"] > 0
    assert outcome["failed"] == {}

    assert tune(**REQUEST, dry_run=True, as_json=True) == 0
    (row,) = json.loads(capsys.readouterr().out)["studies"]
    assert row["trials"] == {"done": 2, "asked": 2}
    assert row["client_epochs"] == {"used": 24.0, "asked": 24}
    assert row["ended"] == "trials"
    assert tune(**{**REQUEST, "trials": 6}, dry_run=True, as_json=True) == 0
    (row,) = json.loads(capsys.readouterr().out)["studies"]
    spent = [
        trial.seconds
        for trial in configurations(home).by_file["local-cora-non-overlapping-3.json"][0].record.trials
    ]
    assert row["seconds"] == pytest.approx(sum(spent) / 24 * 48), "by the study's own trials"

    grid = ad_hoc(Filters(("cora",), (), (3,), ("local",)))
    planned = expand(grid, overrides=parse_overrides(REQUEST["set_"]))
    (made,) = tuned(planned, configurations(home))
    assert made.spec is not None
    assert made.spec.client.learning_rate == study["winner"]["overrides"]["client.learning_rate"]
    assert made.spec.client.hidden == 8
    assert made.seed == 0


def ended(study: Tuning, state: Any, client_epochs: float) -> tuple[Trial]:
    """The default as a study's only trial so far."""
    reached = 0.5 if state == "complete" else None
    default = Trial(
        number=0,
        parameters=study.default,
        state=state,
        validation=reached,
        client_epochs=client_epochs,
        seconds=1,
    )
    return (default,)


NINE, TWENTY = tuning(trials=9), tuning(trials=20)
ONE = tuning(trials=1)
FOUR = tuning(trials=9, space={"client.learning_rate": (0.001, 0.01), "client.dropout": (0.0, 0.5)})
PLAIN = ROUNDS * EPOCHS * 2


@pytest.mark.parametrize(
    ("studies", "slots", "seconds"),
    [
        ([Standing(NINE, (), 90.0)], 1, 90),
        ([Standing(NINE, (), 90.0)], 4, 30),  # the first alone, then eight in two turns
        ([Standing(NINE, (), 90.0)], 5, 30),  # eight on five slots take as long
        ([Standing(NINE, (), 90.0)], 20, 20),
        ([Standing(NINE, ended(NINE, "complete", PLAIN), 80.0)], 4, 20),
        ([Standing(NINE, ended(NINE, "failed", PLAIN), 80.0)], 4, 30),  # not known yet what one takes
        ([Standing(TWENTY, ended(TWENTY, "complete", 1.5 * PLAIN), 120.0)], 20, 10),  # room for twelve
        ([Standing(FOUR, (), 90.0)], 4, 45),  # four configurations, with the budget of nine
        ([Standing(NINE, (), 90.0)] * 2, 5, 50),  # two slots each
        ([Standing(NINE, (), 90.0)] * 3, 2, 180),  # the third begins where one of the first two has ended
        ([Standing(NINE, (), 20.0), Standing(NINE, (), 90.0), Standing(NINE, (), 40.0)], 2, 90),
        ([Standing(ONE, ended(ONE, "complete", PLAIN), 0.0), Standing(NINE, (), 90.0)], 4, 50),
        ([Standing(NINE, (), 90.0, "not in any data root"), Standing(NINE, (), 90.0)], 4, 30),
    ],
)
def test_a_dry_run_says_what_the_rest_takes_without_pruning(
    studies: list[Standing], slots: int, seconds: int
) -> None:
    time = f"{seconds} s" if seconds < 60 else f"{seconds / 60:.0f} min"
    assert cost(studies, slots).endswith(f", {time} on {slots} at a time if no trial is pruned")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"method": ["locl"]}, "did you mean 'local'"),
        ({"dataset": ["corra"]}, "did you mean 'cora'"),
        ({"method": ["majority"]}, "nothing to tune: majority"),
        ({"method": None}, "--grid"),
        ({"grid": "tuning_fedsheafn"}, "did you mean 'tuning_fedsheafhn'"),
        ({"trials": 0}, "--trials expects at least 1"),
        ({"trials": -3}, "--trials expects at least 1"),
        ({"tune_seeds": [3, 1000]}, "--tune-seeds expects"),
        ({"clients": [100_000]}, "100000"),
        ({"set_": ["attack.ratio=0.4"]}, "an attack"),
        ({"set_": ["protocol.round=4"]}, "did you mean 'rounds'"),
        ({"devices": "tpu"}, "--devices"),
        ({"jobs": 0}, "--jobs"),
        ({"plots": Path("drawn")}, "has a trial yet"),
    ],
)
def test_a_wrong_request_writes_nothing(home: Path, change: dict[str, Any], message: str) -> None:
    with pytest.raises(RequestError) as caught:
        tune(**{**REQUEST, **change})
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not (home / "tuning").exists()
    assert not (home / "tuned").exists()
    assert not Path("drawn").exists()


def test_a_total_below_what_is_done_writes_nothing(home: Path) -> None:
    go_on(home / "tuning", tuning(trials=3))
    before = (home / "tuning" / "journal.log").read_bytes()
    with pytest.raises(RequestError, match="expected 3 or more, got 2"):
        tune(**{**REQUEST, "set_": TOY, "method": ["local", "fedper"]})
    assert (home / "tuning" / "journal.log").read_bytes() == before
    assert not (home / "tuned").exists()


def numbers(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
def test_figures_show_the_trials_and_are_the_same_each_time(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study = tuning("fedsheafhn", trials=14)
    record = finished(home, study)
    request = {**REQUEST, "method": ["fedsheafhn"], "set_": TOY, "trials": 14}
    for folder in ("one", "two"):
        assert tune(**request, plots=tmp_path / folder) == 0
    assert len(capsys.readouterr().out.split()) == 2 * 4 * 3
    files = sorted(path.name for path in (tmp_path / "one").iterdir())
    stem = "fedsheafhn-cora-non-overlapping-3"
    assert files == sorted(
        f"{stem}-{name}.{kind}"
        for name in ("history", "importance", "learning_rate", "best_of_k")
        for kind in ("pdf", "png", "csv")
    )
    for name in files:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()

    history = numbers(tmp_path / "one" / f"{stem}-history.csv")
    best = 0.0
    for row, trial in zip(history, record.trials, strict=True):
        assert row["state"] == trial.state
        assert float(row["validation"]) == pytest.approx(100 * (trial.validation or 0), abs=1e-4)
        best = max(best, 100 * (trial.validation or 0)) if trial.state == "complete" else best
        assert float(row["best"]) == pytest.approx(best, abs=1e-4)
    by_rates: dict[tuple[str, str], list[float]] = {}
    for trial in record.trials:
        pair = [
            trial.parameters[f"{key}_learning_rate".replace("client_", "client.")]
            for key in ("client", "method.hypernetwork")
        ]
        by_rates.setdefault((str(pair[0]), str(pair[1])), []).append(100 * (trial.validation or 0))
    rows = numbers(tmp_path / "one" / f"{stem}-learning_rate.csv")
    assert len(rows) == len(by_rates)
    for row in rows:
        values = by_rates[row["client.learning_rate"], row["method.hypernetwork_learning_rate"]]
        assert int(row["trials"]) == len(values)
        assert float(row["best"]) == pytest.approx(max(values), abs=1e-4)
    shares = [float(row["importance"]) for row in numbers(tmp_path / "one" / f"{stem}-importance.csv")]
    assert len(shares) == len(study.space)
    assert sum(shares) == pytest.approx(1, abs=1e-3)
    curve = numbers(tmp_path / "one" / f"{stem}-best_of_k.csv")
    values = [100 * (trial.validation or 0) for trial in record.trials]
    assert float(curve[0]["expected_best"]) == pytest.approx(np.mean(values), abs=1e-4)
    assert float(curve[-1]["expected_best"]) == pytest.approx(max(values), abs=1e-4)

    (home / "tuning" / "journal.log").unlink()  # as where the record came with the suite
    assert tune(**request, plots=tmp_path / "three") == 0
    for name in files:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "three" / name).read_bytes()


def test_few_trials_have_no_importance_and_some_methods_one_rate(home: Path) -> None:
    study = tuning("local", trials=5)
    trials = tuple(finished(home, study).trials)
    assert importances(study, trials) == {}
    drawn = {figure.name.rpartition("-")[2]: figure for figure in figures(study, trials)}
    assert drawn.keys() == {"history", "learning_rate", "best_of_k"}
    assert drawn["learning_rate"].panels[0].header == ("client.learning_rate", "trials", "best")


def test_figures_name_the_default_also_where_it_is_not_the_first(tmp_path: Path) -> None:
    study = tuning("local", trials=4)
    default, *others = go_on(tmp_path, study)
    moved = [each.model_copy(update={"number": number}) for number, each in enumerate([*others, default])]
    axes = Figure().subplots()
    HistoryPanel(study, tuple(moved)).draw(axes)
    assert axes.get_xlabel() == "Trial (number 4 is the default)"
    for trials, expected in ((moved, [100 * (default.validation or 0)] * 2), (moved[:-1], None)):
        axes = Figure().subplots()
        BestOfPanel(study, tuple(trials)).draw(axes)
        _, *lines = axes.get_lines()
        assert [list(line.get_ydata()) for line in lines] == ([expected] if expected else [])
    axes = Figure().subplots()
    HistoryPanel(study, tuple(moved[:-1])).draw(axes)
    assert axes.get_xlabel() == "Trial"


def test_importance_finds_the_parameter_that_decides() -> None:
    study = tuning("local", trials=36)
    trials = []
    for number, rate in enumerate([0.001, 0.003, 0.01, 0.03] * 9):
        decay, dropout = [0.0, 0.0005, 0.005][number % 3], [0.0, 0.3, 0.5][number // 12]
        trials.append(
            {
                "number": number,
                "parameters": {
                    "client.learning_rate": rate,
                    "client.weight_decay": decay,
                    "client.dropout": dropout,
                },
                "state": "complete",
                "validation": 0.9 if rate == 0.01 else 0.4 + number / 1000,
                "client_epochs": 1.0,
                "seconds": 1.0,
            }
        )
    shares = importances(study, [Trial.model_validate(each) for each in trials])
    assert next(iter(shares)) == "client.learning_rate"
    assert shares["client.learning_rate"] > 0.9
    assert set(ENDED) == {"complete", "cut", "pruned"}
