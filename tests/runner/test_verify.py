"""What is drawn from a bundle, made again and found."""

import io
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from fake_execute import faulty, instant
from fake_execute import outcome as fake_outcome
from fake_runs import grid, here
from rich.console import Console
from stored_runs import MemoryStore, any_federation, bundle_of, done, result_of, save, spec_of

from bench.engine.result import RunResult
from bench.engine.states import State
from bench.errors import RequestError
from bench.grids import expand
from bench.runner import fingerprint, verify
from bench.runner.display import Display
from bench.runner.verify import compare, draw, drawable
from bench.runner.workers import Execute, processor
from bench.spec import RunSpec
from bench.store.bundle import Bundle


def test_a_run_of_every_method_is_drawn_as_far_as_the_sample_reaches(tmp_path: Path) -> None:
    """Nine runs of one method cover up none of the others."""
    counts = {"local": 9, "fedavg": 1, "fedper": 2}
    stored = [(spec_of(method=name, seed=seed), done()) for name in counts for seed in range(counts[name])]
    bundle = Bundle(bundle_of(tmp_path / "three", stored))
    runs = drawable(bundle, {})
    for seed in range(5):
        assert set(draw(runs, bundle, 3, seed)["method"]) == set(counts)
        assert Counter(draw(runs, bundle, 12, seed)["method"]) == counts
    first_methods = Counter(draw(runs, bundle, 1, seed)["method"][0] for seed in range(60))
    assert min(first_methods[name] for name in counts) > 12, "methods are as likely as each other"


def test_runs_without_numbers_are_drawn_where_running_again_repeats_them(tmp_path: Path) -> None:
    runs = [
        (spec_of(), done()),
        (spec_of(method="fedper"), RunResult("diverged", "loss is nan in round 2", partition_hash="p2")),
        (spec_of(method="fedgcn"), RunResult("not_applicable", "no graph", partition_hash="p2")),
        (spec_of(method="fedavg"), RunResult("oom", "8 GB")),
    ]
    endings = Bundle(bundle_of(tmp_path / "endings", runs))
    assert set(drawable(endings, {})["state"]) == {"done", "diverged", "not_applicable"}
    assert drawable(endings, {"method": ["fedper"]})["state"].tolist() == ["diverged"]
    with pytest.raises(RequestError, match="no run that is asked for"):
        drawable(endings, {"method": ["fedavg"]})


def by_this_code(spec: RunSpec) -> RunResult:
    return replace(fake_outcome(spec), code=fingerprint.of(spec))


def made_again(bundle: Bundle, sample: pd.DataFrame, execute: Execute) -> pd.DataFrame:
    display = Display(Console(file=io.StringIO()))
    return verify.make_again(bundle, sample, (), here(), display, execute, any_federation)


def test_a_method_that_fails_here_leaves_the_rest_of_the_sample_unchecked(tmp_path: Path) -> None:
    """The sweep holds it back after three cells; what was made is compared."""
    planned = [
        *expand(grid(("cora", "citeseer", "pubmed", "photo", "computers"), ("local",), seeds=(0,))),
        *expand(grid(("facebook",), ("fedavg",), seeds=(10,))),
    ]
    runs = []
    for run in planned:
        result = by_this_code(run.spec)
        partition = result.partition_hash if run.spec.dataset == "facebook" else run.spec.dataset
        runs.append((run.spec, replace(result, partition_hash=partition)))
    bundle = Bundle(bundle_of(tmp_path / "theirs", runs))
    sample = drawable(bundle, {})
    checks = made_again(bundle, sample, faulty)
    assert checks["spec_hash"].tolist() == sample["spec_hash"].tolist(), "every run, in order"
    assert sorted(zip(checks["finding"], checks["detail"], strict=True)) == [
        ("equal", "every count is the same"),
        *[("not checked", "it ended here as failed: ValueError: first line")] * 3,
        *[("not checked", "its method is held back")] * 2,
    ]
    assert verify.outcome(checks) == "incomplete", "neither agreed nor contradicted"


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
    runs = []
    for run, name in zip(expand(grid(("cora",), ("fedavg",), seeds=(0, 1))), ("other", made_on), strict=True):
        result = by_this_code(run.spec)
        correct = {key: 5 - counts for key, counts in result.correct.items()}
        environment = {"processor": name, "threads": 1}
        runs.append((run.spec, replace(result, correct=correct, environment=environment)))
    bundle = Bundle(bundle_of(tmp_path / "theirs", runs))
    checks = made_again(bundle, bundle.runs(seed=1), instant)
    assert checks["finding"].tolist() == ["differs"]
    assert verify.outcome(checks) == outcome
    assert checks["other_hardware"].tolist() == [outcome == "incomplete"]
