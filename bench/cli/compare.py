"""``bench compare``: one's own method against everything."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from bench import paths
from bench.cli import options
from bench.cli.output import console, say
from bench.errors import RequestError

TASKS_IN_FULL = 3
"""Up to so many tasks have a table of all methods each; of more of them the report has these."""


def compare(
    file: Path,
    *,
    filters: options.FederationFilters = options.ALL_FEDERATIONS,
    seed: options.Seeds = (),
    study: str | None = None,
    settings: options.Settings = (),
    out: Path = Path("report"),
    metric: options.ByMetric = "accuracy",
    db: options.Database = None,
    data_root: options.DataRoot = None,
    machine: options.Machine = options.THIS_MACHINE,
    dry_run: options.Flag = False,
) -> int:
    """Check your own method, run what is missing of it, and say where it stands.

    The other methods' results come with the suite or from your database; they are compared on the
    same partitions, seeds and clients, on one data set (-d) or over several. Runs that your method's
    code made before it changed are made again. On data that no study has, the methods of a study on
    such data are run first, with seeds 0-2. The whole report is written, too.

    Args:
        file: A Python file with one class that extends bench.engine.method.Method.
        seed: These seeds, such as 0-4,7, in place of those of the study.
        study: Study whose first grid with a data set gives the settings there, such as fedsheafhn or fedhgn;
            default: the first that has all the data sets.
        settings: A setting of your method, such as method.mu=0.1; may be given several times.
        out: Folder for the report.
        dry_run: Check the method, print what would be run of it and what that costs, and write nothing.
    """
    if not filters.dataset:
        raise RequestError("expected a data set to compare on, or several: -d cora,citeseer")

    from bench import comparison
    from bench.contract.checks import check
    from bench.report.request import Request
    from bench.report.terminal import rich_table
    from bench.resolve import parse_overrides
    from bench.runner import display
    from bench.runner.display import Display
    from bench.runner.plan import Estimator, data_at_hand, make_plan, to_run
    from bench.runner.run import Sweep
    from bench.runner.workers import choose
    from bench.site import folder
    from bench.site.documents import build
    from bench.store.store import stored_runs
    from bench.studies.shipped import opened_results
    from bench.studies.study import STUDIES

    folder.check(out)
    method = comparison.own_method(file)
    choice = replace(filters.of_grid(), seeds=seed)
    its_study, runs, others = comparison.asked(study, method, choice, parse_overrides(settings))
    screen = console()
    problems = [finding for finding in check(method) if finding.problem]
    for finding in problems:
        say(f"mend: {finding.rule}: {finding.problem}", screen)
    if problems:
        return 1
    say(f"{method} keeps the contract", screen)

    database = db or paths.default_database()
    roots = paths.data_roots(data_root)
    rows = stored_runs(database)
    plan = comparison.with_changed(make_plan(runs, rows, data_at_hand(roots)))
    whole_plan = [*plan, *make_plan(others, rows, data_at_hand(roots))]
    slots = choose(machine.devices, machine.jobs, machine.threads, len(to_run(whole_plan)))
    estimator = Estimator(rows.values(), slots.devices[0])
    if count := sum(step.changed for step in plan):
        reason = f"its code, or the engine's, has changed since {display.runs(count)}"
        say(f"{reason}: to be made again", screen)
    say(display.summary(whole_plan, estimator, len(slots.devices)), screen)
    if others:
        screen.print(display.table(whole_plan, estimator))
    if dry_run:
        return 0
    outcome = Sweep(whole_plan, database, roots, slots, Display(screen), home=paths.home()).run()
    if outcome.counts.keys() - ({"done", "diverged", "not_applicable"} if others else {"done"}):
        say(f"of the {len(whole_plan)} runs: {display.states(outcome.counts)}; see bench runs list", screen)
        return 1

    with opened_results(database, own=False) as source:
        standing = comparison.compare(source, its_study, method, runs, metric, others)
        methods = (*(row.method for row in its_study.lines), method)
        request = Request(
            (its_study.name,), filters.dataset, filters.scenario, filters.clients, methods, metric=metric
        )
        studies = {**STUDIES.all(), its_study.name: type(its_study)}
        build(source, request, studies, out, usual_runs=comparison.usual_runs(its_study, [*runs, *others]))
    if len(standing.own) <= TASKS_IN_FULL:
        for task in standing.own["task"]:
            screen.print(rich_table(comparison.others_table(standing, task)))
    ranking = f"{its_study.name}/ranking"
    for line in (
        *comparison.sentences(standing),
        f"Report: {out / folder.INDEX}; {ranking}/pairs.csv has all pairs, corrected over all of them, "
        f"{ranking}/table.md says how they were tested.",
    ):
        screen.print(line, markup=False)
    return 0
