"""Small grids, stand-ins for federations, and sweeps in real worker processes that do what a script says."""

import io
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fake_execute import scripted
from rich.console import Console
from stored_runs import FakeFederation, any_federation, took

from bench import engine
from bench.errors import NoDataError
from bench.grids import Grid, Planned
from bench.grids.grid import Setting
from bench.resolve import resolve
from bench.runner import Level, fingerprint
from bench.runner.display import Display
from bench.runner.execution import Build
from bench.runner.plan import Step, make_plan
from bench.runner.run import Outcome, Sweep
from bench.runner.workers import Execute, LocalPool, OwnProcess, Pool
from bench.store import open_store
from bench.store.store import stored_runs
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


def cpu(jobs: int) -> LocalPool:
    """Processor slots with one thread each."""
    return LocalPool(("cpu",) * jobs, 1)


def here() -> OwnProcess:
    """No process of its own, which takes longest to start: for what only the sweep decides."""
    return OwnProcess(("cpu",), 1)


def have(dataset: str) -> str:
    """Of every data set: that it is at hand."""
    return ""


def stored(state: str, method: int = 1, numerics: int | None = None, source: str | None = None) -> Stored:
    """What a database has of a run of Local, made by the installed sources unless others are named."""
    spec = resolve("cora", "non-overlapping", 3, "local", 9)
    source = fingerprint.code("local").source if source is None else source
    code = {"method_numerics": method, "engine_numerics": numerics or engine.NUMERICS, "source_hash": source}
    return took(spec, 1.0, state=state, reason="because", **code)


@dataclass
class Scripted:
    """A folder with a script, a database and what the sweeps of it leave."""

    folder: Path
    database: str = ""
    out: io.StringIO = field(default_factory=io.StringIO)

    @property
    def url(self) -> str:
        return self.database or f"sqlite:///{self.folder / 'bench.db'}"

    def plan(self, planned: list[Planned], rerun: Level | None = None) -> list[Step]:
        return make_plan(planned, stored_runs(self.url), have, rerun)

    def sweep(
        self,
        planned: list[Planned],
        script: dict[str, list[str]] | None = None,
        pool: Pool | None = None,
        rerun: Level | None = None,
        plan: list[Step] | None = None,
        execute: Execute = scripted,
        build: Build = any_federation,
        **options: Any,
    ) -> Outcome:
        """Sweep what is planned, or a plan that was made earlier; ``options`` are those of ``sweep``."""
        for name in ("attempts", "ended"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        (self.folder / "script.json").write_text(json.dumps(script or {}))
        self.out = io.StringIO()
        return Sweep(
            plan or self.plan(planned, rerun),
            self.url,
            (self.folder,),
            pool or cpu(2),
            Display(Console(file=self.out, width=200)),
            execute,
            build,
            self.folder,
            **options,
        ).run()

    @property
    def lines(self) -> list[str]:
        """What the last sweep has printed so far."""
        return self.out.getvalue().splitlines()

    def attempts(self, key: str) -> list[dict[str, Any]]:
        path = self.folder / "attempts" / key
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def ended(self, key: str) -> float:
        return float((self.folder / "ended" / key).read_text())

    def stored(self) -> dict[str, dict[str, Any]]:
        """Every stored run by METHOD CLIENTS SEED."""
        with open_store(self.url, create=False) as store:
            rows = store.runs().to_dict("records")
        return {f"{row['method']} {row['clients']} {row['seed']}": row for row in rows}
