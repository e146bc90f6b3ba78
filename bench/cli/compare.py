"""``bench compare``: one's own method against everything."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bench import paths
from bench.cli import options
from bench.cli.output import console, say
from bench.cli.sweep import make
from bench.errors import RequestError

if TYPE_CHECKING:
    from bench.grids import Filters, Planned
    from bench.metric_names import Metric
    from bench.studies.study import Study


def compare(
    file: Path,
    *,
    dataset: options.OneDataset,
    scenario: options.Scenarios = (),
    clients: options.ClientCounts = (),
    seed: options.Seeds = (),
    study: str | None = None,
    settings: options.Settings = (),
    out: Path = Path("report"),
    metric: options.ByMetric = "accuracy",
    db: options.Database = None,
    data_root: options.DataRoot = None,
    machines: options.Machines = options.LOCAL,
) -> int:
    """Check your own method, run what is missing of it, and say where it stands.

    The other methods' results come with the suite or from your database, on the same partitions, seeds
    and clients. Runs of your method's older code are made again. On data that no study has, the methods
    of a study on such data are run first, with seeds 0-2. The whole report is written, too.

    Args:
        file: A Python file with one class that extends bench.engine.method.Method.
        seed: These seeds, such as 0-4,7, in place of those of the study.
        study: Study whose settings on the data set count, such as fedpub; default: the first that has it.
        settings: A setting of your method, such as method.mu=0.1; may be given several times.
        out: Folder for the report.
    """
    from bench import comparison
    from bench.contract.checks import check
    from bench.grids import Filters
    from bench.resolve import parse_overrides
    from bench.runner import display
    from bench.runner.plan import Estimator, to_run
    from bench.runner.run import Sweep, opened_pool
    from bench.site import folder
    from bench.store.store import stored_runs

    folder.check(out)
    method, *more = comparison.methods_in(file)
    if more:
        raise RequestError(f"{file.name}: expected one method, got {', '.join([method, *more])}")
    choice = Filters((dataset,), scenario, clients, (), seed)
    beside, runs = comparison.asked(method, choice, parse_overrides(settings), study)
    if problems := [finding for finding in check(method) if finding.problem]:
        for finding in problems:
            say(f"mend: {finding.rule}: {finding.problem}")
        return 1
    screen, database, roots = console(), db or paths.default_database(), paths.data_roots(data_root)
    say(f"{method} keeps the contract", screen)
    rows = stored_runs(database)
    plan = comparison.plan(method, runs, rows, roots)
    pool = opened_pool(machines, len(to_run(plan)), paths.home())
    if any(step.planned.method != method for step in to_run(plan)):
        screen.print(display.table(plan, Estimator(rows.values(), pool.devices[0])))
    sweep = Sweep(plan, database, roots, pool, display.Display(screen), home=paths.home())
    if make(sweep, rows, screen):
        return 1
    _report(beside, method, runs, choice, metric, database, out)
    return 0


def _report(
    study: Study, method: str, runs: list[Planned], choice: Filters, metric: Metric, database: str, out: Path
) -> None:
    """Write the report, and say where the method stands."""
    from bench import comparison
    from bench.report.request import Request
    from bench.report.terminal import rich_table
    from bench.site import folder
    from bench.site.documents import build
    from bench.studies.shipped import opened_results
    from bench.studies.study import STUDIES

    screen, filters = console(), (choice.datasets, choice.scenarios, choice.clients)
    methods = (*(line.method for line in study.lines), method)
    request = Request((study.name,), *filters, methods, metric=metric)
    studies = {**STUDIES.all(), study.name: type(study)}
    with opened_results(database, own=False) as source:
        ranking, rows = comparison.compare(source, study, method, runs, metric)
        build(source, request, studies, out, usual_runs=comparison.usual_runs(study, runs))
    for table in comparison.tables(rows):
        screen.print(rich_table(table))
    for line in comparison.sentences(method, ranking, rows):
        screen.print(line, markup=False)
    screen.print(f"Report: {out / folder.INDEX}", markup=False)
