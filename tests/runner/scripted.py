"""Sweeps in real worker processes whose runs do what a script says."""

import io
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fake_execute import scripted
from fake_runs import cpu
from rich.console import Console
from stored_runs import any_federation

from bench.grids import Planned
from bench.runner import Level
from bench.runner.display import Display
from bench.runner.execution import Build
from bench.runner.plan import Step, make_plan
from bench.runner.run import Outcome, Sweep
from bench.runner.workers import Execute, Pool
from bench.store import open_store
from bench.store.store import stored_runs


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
        return make_plan(planned, stored_runs(self.url), lambda dataset: "", rerun)

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
