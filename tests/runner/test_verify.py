"""``bench verify``: what is drawn from a bundle, made again and found."""

import io
import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from fake_execute import faulty, instant
from fake_execute import outcome as fake_outcome
from fake_runs import any_federation, cpu, grid
from rich.console import Console
from stored_runs import (
    MemoryStore,
    bundle_of,
    done,
    result_of,
    save,
    spec_of,
)

from bench.cli.main import main
from bench.engine.result import RunResult
from bench.engine.states import State
from bench.errors import RequestError
from bench.federation.build import build
from bench.grids import expand
from bench.resolve import resolve
from bench.runner import fingerprint, verify
from bench.runner.display import Display
from bench.runner.verify import compare, draw, drawable
from bench.runner.workers import processor
from bench.spec import RunSpec
from bench.store import open_store
from bench.store.bundle import Bundle, write_bundle


def test_a_run_of_every_method_is_drawn_as_far_as_the_sample_reaches(tmp_path: Path) -> None:
    """Nine runs of one method cover up none of the others."""
    counts = {"local": 9, "fedavg": 1, "fedper": 2}
    stored = [(spec_of(method=name, seed=seed), done()) for name in counts for seed in range(counts[name])]
    bundle = Bundle(bundle_of(tmp_path / "three", stored))
    runs = drawable(bundle, {})
    for seed in range(20):
        assert set(draw(runs, bundle, 3, seed)["method"]) == set(counts)
        assert Counter(draw(runs, bundle, 12, seed)["method"]) == counts
    first_methods = Counter(draw(runs, bundle, 1, seed)["method"][0] for seed in range(150))
    assert min(first_methods[name] for name in counts) > 30, "methods are as likely as each other"


@pytest.fixture(scope="module")
def endings(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """A finished run, and one of every other ending, each of a method of its own."""
    runs = [
        (spec_of(), done()),
        (spec_of(method="fedper"), RunResult("diverged", "loss is nan in round 2", partition_hash="p2")),
        (spec_of(method="fedgcn"), RunResult("not_applicable", "no graph", partition_hash="p2")),
        (spec_of(method="fedavg"), RunResult("oom", "8 GB")),
    ]
    return Bundle(bundle_of(tmp_path_factory.mktemp("endings") / "endings", runs))


def test_runs_without_numbers_are_drawn_where_running_again_repeats_them(endings: Bundle) -> None:
    assert set(drawable(endings, {})["state"]) == {"done", "diverged", "not_applicable"}
    assert drawable(endings, {"method": ["fedper"]})["state"].tolist() == ["diverged"]
    with pytest.raises(RequestError, match="no run that is asked for"):
        drawable(endings, {"method": ["fedavg"]})


def bench(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    printed = capsys.readouterr()
    return int(ended.value.code or 0), printed.out, printed.err


@pytest.mark.slow
def test_a_true_bundle_is_verified(home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url, out = f"sqlite:///{tmp_path / 'a.db'}", str(tmp_path / "real")
    asked = ("-d", "cora", "-k", "3", "-m", "local", "--set", "protocol.rounds=2", "--devices", "cpu")
    for words in (("sweep", *asked, "--db", url), ("export", "--db", url, "--out", out), ("import", out)):
        assert bench(capsys, *words)[0] == 0
    code, text, _ = bench(capsys, "verify", out, "--sample", "3")
    run, last = text.splitlines()
    assert code == 0
    assert run.startswith("local cora non-overlapping 3 seed 0 (")
    assert "): equal: every count is the same" in run
    assert re.match(
        r"real: agreed, 1 of 1 run drawn with --draw-seed \d+: 1 equal; marked verified in /", last
    )
    with open_store(f"sqlite:///{home / 'bench.db'}", create=False) as store:
        assert store.runs()["bundle_state"].tolist() == ["verified"]
        assert json.loads(store.table("bundles")["sample"][0]) == {store.runs()["spec_hash"][0]: "equal"}


def test_a_forged_bundle_is_contradicted(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No look at the bundle alone can tell: the clients are real, the numbers are not."""
    spec = resolve("cora", "non-overlapping", 3, "local", 0, {"protocol.rounds": 2})
    forged = done(3, partition_hash=build(*spec.federation_key).hash)
    with open_store(f"sqlite:///{tmp_path / 'theirs.db'}", create=True) as store:
        save(store, spec, forged, **numerics_here(spec))
        write_bundle(store, store.runs(), tmp_path / "forged")
    assert bench(capsys, "import", str(tmp_path / "forged"))[0] == 0
    code, text, _ = bench(capsys, "verify", str(tmp_path / "forged"))
    run, last = text.splitlines()
    assert code == 1
    assert "): differs: " in run
    assert last.startswith("forged: contradicted, 1 of 1 run drawn with --draw-seed ")
    assert ": 1 differs; marked contradicted in /" in last


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (RunSpec(dataset="pubmed", scenario="non-overlapping", clients=2, method="local", seed=0), "pubmed"),
        (spec_of(method="locl"), "unknown method 'locl': did you mean 'local'?"),
        (spec_of(seed=1), "is by code of other numerics than is here"),
    ],
)
def test_what_cannot_be_made_here_is_refused(
    spec: RunSpec, words: str, tmp_path: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is marked, and one line says why."""
    code = fingerprint.code("local")
    with open_store(f"sqlite:///{tmp_path / 'a.db'}", create=True) as store:
        save(store, spec, done(), code.method_numerics + spec.seed, code.engine_numerics)
        write_bundle(store, store.runs(), tmp_path / "a")
    url = f"sqlite:///{tmp_path / 'b.db'}"
    assert bench(capsys, "import", str(tmp_path / "a"), "--db", url)[0] == 0
    exit_code, text, error = bench(capsys, "verify", str(tmp_path / "a"), "--db", url)
    assert (exit_code, text) == (2, "")
    assert words in error
    with open_store(url, create=False) as store:
        assert set(store.runs()["bundle_state"]) == {"unverified"}


def test_a_method_that_fails_here_leaves_the_rest_of_the_sample_unchecked(tmp_path: Path) -> None:
    """The sweep holds it back after three cells; what was made is compared."""
    planned = [
        *expand(grid(("cora", "citeseer", "pubmed", "photo", "computers"), ("local",), seeds=(0,))),
        *expand(grid(("facebook",), ("fedavg",), seeds=(10,))),
    ]
    with open_store(f"sqlite:///{tmp_path / 'theirs.db'}", create=True) as store:
        for run in planned:
            result = fake_outcome(run.spec)
            partition = result.partition_hash if run.spec.dataset == "facebook" else run.spec.dataset
            save(store, run.spec, replace(result, partition_hash=partition), **numerics_here(run.spec))
        write_bundle(store, store.runs(), tmp_path / "theirs")
    bundle = Bundle(tmp_path / "theirs")
    sample = drawable(bundle, {})
    reporter = Display(Console(file=io.StringIO()))
    checks = verify.make_again(bundle, sample, (), cpu(1), reporter, faulty, any_federation)
    assert checks["spec_hash"].tolist() == sample["spec_hash"].tolist(), "every run, in order"
    assert sorted(zip(checks["finding"], checks["detail"], strict=True)) == [
        ("equal", "every count is the same"),
        *[("not checked", "it ended here as failed: ValueError: first line")] * 3,
        *[("not checked", "its method is held back")] * 2,
    ]
    assert verify.outcome(checks) == "incomplete", "neither agreed nor contradicted"


def numerics_here(spec: RunSpec) -> dict[str, int]:
    code = fingerprint.of(spec)
    return {"method_numerics": code.method_numerics, "engine_numerics": code.engine_numerics}


# How a run that was made again agrees ---------------------------------------------------------------


def numbers(last: tuple[int, int], best: tuple[int, int], samples: tuple[int, int] = (200, 800)) -> RunResult:
    """Two clients with so many correct predictions by the rules ``last`` and ``best_val``."""
    return result_of([best, last], validation=[samples, (0, 0)], samples=samples, partition_hash="p2")


def compared(stated: RunResult, new: RunResult) -> tuple[str, str]:
    sides = []
    for result in (stated, new):
        store = MemoryStore()
        save(store, spec_of(), result)
        sides += [store, store.runs().to_dict("records")[0]]
    return compare(*sides)


DONE = done()
SMALL = numbers((10, 10), (10, 10), (20, 20))
AREAS = {("trained", "last"): np.array([0.6, 0.9])}
WITH_AREAS = replace(DONE, roc_auc=AREAS)
HALF_AREAS = replace(DONE, roc_auc={reading: values / 2 for reading, values in AREAS.items()})
OTHER_CLASSES = {reading: counts[:, ::-1, ::-1] for reading, counts in DONE.confusion.items()}
DIVERGED = RunResult("diverged", "nan", partition_hash="p2")


@pytest.mark.parametrize(
    ("stated", "new", "finding"),
    [
        # by the rules last and best_val, of 1,000 test items
        *(
            (numbers((100, 300), (100, 300)), numbers(last, best), finding)
            for last, best, finding in (
                ((100, 300), (100, 300), "equal"),
                ((100, 300), (100, 305), "close"),  # 0.5 points
                ((100, 300), (100, 306), "differs"),
                ((110, 290), (90, 310), "close"),  # clients change places, the pooled accuracy does not
                ((100, 310), (100, 300), "close"),  # 1 point
                ((100, 311), (100, 300), "differs"),
            )
        ),
        # two predictions may differ on a small split
        (SMALL, numbers((10, 10), (12, 10), (20, 20)), "close"),
        (SMALL, numbers((10, 10), (12, 11), (20, 20)), "differs"),
        (SMALL, numbers((10, 10), (10, 10), (20, 21)), "differs"),
        # equal is every number that both have
        (DONE, replace(DONE, confusion=OTHER_CLASSES), "close"),
        (DONE, replace(DONE, bytes_up=122), "close"),
        (WITH_AREAS, replace(DONE, confusion={}), "equal"),
        (WITH_AREAS, HALF_AREAS, "close"),
        # a run has to end alike, on the same clients
        (DONE, replace(DONE, partition_hash="q"), "differs"),
        (DONE, DIVERGED, "differs"),
        (DIVERGED, DIVERGED, "equal"),
        (DIVERGED, replace(DIVERGED, partition_hash="q"), "differs"),
    ],
)
def test_how_a_run_compares_with_what_is_stated_of_it(
    stated: RunResult, new: RunResult, finding: str
) -> None:
    assert compared(stated, new)[0] == finding
    assert compared(new, stated)[0] == finding


@pytest.mark.parametrize("state", ["oom", "no_data"])
def test_what_this_machine_cannot_make_says_nothing(state: State) -> None:
    assert compared(DONE, RunResult(state, "why"))[0] == "not checked"


@pytest.mark.parametrize(
    ("made_on", "outcome"),
    [(processor(), "contradicted"), ("a processor of 1970", "incomplete"), ("", "contradicted")],
)
def test_what_differs_on_other_hardware_says_nothing(tmp_path: Path, made_on: str, outcome: str) -> None:
    """Of two environments in the bundle the run's own counts; what is not known is no other."""
    first, second = expand(grid(("cora",), ("fedavg",), seeds=(0, 1)))
    with open_store(f"sqlite:///{tmp_path / 'theirs.db'}", create=True) as store:
        for run, name in ((first, "another"), (second, made_on)):
            result = fake_outcome(run.spec)
            result.correct = {key: 5 - counts for key, counts in result.correct.items()}
            environment = {"processor": name, "threads": 1}
            save(store, run.spec, result, environment=environment, **numerics_here(run.spec))
        write_bundle(store, store.runs(), tmp_path / "theirs")
    bundle = Bundle(tmp_path / "theirs")
    display = Display(Console(file=io.StringIO()))
    checks = verify.make_again(bundle, bundle.runs(seed=1), (), cpu(1), display, instant, any_federation)
    assert checks["finding"].tolist() == ["differs"]
    assert verify.outcome(checks) == outcome
    assert checks["other_hardware"].tolist() == [outcome == "incomplete"]
