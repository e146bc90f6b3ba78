"""Small grids and stand-ins for federations."""

from pathlib import Path
from typing import Any

from stored_runs import FakeFederation, took

from bench import engine
from bench.errors import NoDataError
from bench.grids import Grid
from bench.grids.grid import Setting
from bench.resolve import resolve
from bench.runner import fingerprint
from bench.runner.workers import LocalPool
from bench.store import open_store
from bench.store.tables import Stored


def no_citeseer(*key: Any, roots: tuple[Path, ...]) -> Any:
    """Has every data set but one."""
    if key[0] == "citeseer":
        raise NoDataError("missing citeseer.x")
    return FakeFederation()


def grid(
    datasets: tuple[str, ...] = ("cora",),
    methods: tuple[str, ...] = ("local", "fedavg"),
    seeds: tuple[int, ...] = (0, 1),
    clients: tuple[int, ...] = (3,),
) -> Grid:
    """A small grid on embedded data."""
    setting = Setting(datasets=datasets, scenario="non-overlapping", clients=clients)
    return Grid(title="test", methods=methods, seeds=seeds, settings=(setting,))


def stored_numbers(database: str) -> dict[str, list[tuple[Any, ...]]]:
    """Every stored accuracy by spec hash."""
    with open_store(database, create=False) as store:
        runs = store.runs()
        results = store.client_results(runs["id"]).drop(columns="run_id")
        ids = store.client_results(runs["id"])["run_id"]
        return {
            row.spec_hash: [tuple(values) for values in results[ids == row.id].itertuples(index=False)]
            for row in runs.itertuples()
        }


def cpu(jobs: int, elsewhere: bool = False) -> LocalPool:
    """Processor slots with one thread each; ``elsewhere``: as if on the machines of a cluster."""
    pool = LocalPool(("cpu",) * jobs, 1)
    pool.elsewhere = elsewhere
    return pool


def have(dataset: str) -> str:
    """Of every data set: that it is at hand."""
    return ""


def stored(state: str, method: int = 1, numerics: int | None = None, source: str | None = None) -> Stored:
    """What a database has of a run of Local, made by the installed sources unless others are named."""
    spec = resolve("cora", "non-overlapping", 3, "local", 9)
    source = fingerprint.code("local").source if source is None else source
    code = {"method_numerics": method, "engine_numerics": numerics or engine.NUMERICS, "source_hash": source}
    return took(spec, 1.0, state=state, reason="because", **code)
