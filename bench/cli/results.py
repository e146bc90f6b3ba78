"""``bench export``, ``import``, ``verify``, ``results`` and ``db``: exchange and maintain results."""

from __future__ import annotations

import secrets
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from cyclopts import App
from cyclopts.types import NonNegativeInt, PositiveInt

from bench import paths
from bench.cli import options
from bench.cli.output import console

if TYPE_CHECKING:
    import pandas as pd

    from bench.store.bundle import Bundle


def export(out: Path, *, filters: options.RunFilters = options.ALL_RUNS, db: options.Database = None) -> None:
    """Write the runs with an outcome as a bundle: a folder of JSON and Parquet files.

    The states done, diverged, not_applicable and oom are outcomes.

    Args:
        out: The bundle's folder. An older bundle there is replaced.
    """
    from bench.runner import display
    from bench.store import bundle, open_store

    with open_store(db or paths.default_database(), create=False) as store:
        count = bundle.write_bundle(store, store.runs(**filters.columns), out)
    size = sum(path.stat().st_size for path in out.iterdir())
    print(f"{out.resolve()}: {display.runs(count)}, {size:,} bytes")


def import_bundle(bundle: Path, /, *, db: options.Database = None) -> None:
    """Check a bundle and write its runs into the database: all of them or none.

    A stored run that is done, diverged or not applicable is kept, and the bundle's run is skipped. A stored
    run that failed, had no data or ran out of memory is replaced. In a sweep, imported runs count as done.
    They keep the name of the bundle, and are unverified until 'bench verify' has repeated a sample of them.

    Args:
        bundle: The bundle's folder (docs/results-format.md).
    """
    from bench.store import bundle_import
    from bench.store.bundle import Bundle

    source = Bundle(bundle)
    counts = bundle_import.import_bundle(db or paths.default_database(), source)
    text = "{added:,} runs added, {replaced:,} in place of failed ones, {skipped:,} skipped"
    print(f"{source.name}: {text.format(**counts)}: stored already")


results = App(name="results", help="Maintain a folder with one bundle for each study and data set.")


@results.command
def add(bundle: Path, /, *, folder: Path) -> None:
    """Add the runs of a bundle to the bundles of their studies and data sets.

    A run replaces a run of the same spec, unless it ran out of memory and the older one did not.

    Args:
        folder: The folder with all bundles, such as results/measured.
    """
    from bench.runner import display
    from bench.store.bundle import Bundle
    from bench.studies.results_folder import add_runs
    from bench.studies.study import STUDIES

    for name, count in add_runs(Bundle(bundle), folder, STUDIES.all()).items():
        print(f"{folder / name}: {display.runs(count)} added")


def verify(
    bundle: Path,
    /,
    *,
    sample: PositiveInt = 3,
    draw_seed: NonNegativeInt | None = None,
    filters: options.CellFilters = options.ALL_CELLS,
    db: options.Database = None,
) -> int:
    """Repeat a random sample of a bundle's runs and compare the results.

    A bundle that comes with the suite is given by its name, which 'bench runs show CELL' prints:
    'bench verify fedsheafhn/cora -m fedavg' repeats three shipped runs of FedAvg on Cora.

    docs/results-format.md says when a run agrees. If the bundle was imported, the database then calls it
    verified or contradicted. Exit code 0: all runs agree; 1: a run differs or cannot be compared.

    Args:
        bundle: The bundle's folder, or the name of a bundle that comes with the suite.
        sample: Number of runs: first one of every selected method, then any others.
        draw_seed: Seed of the sample; default: a new one, which the bundle's author cannot know.
    """
    from bench.runner import display, workers
    from bench.runner.verify import draw, drawable, make_again, outcome
    from bench.store.bundle import SHIPPED, Bundle
    from bench.store.connect import Database

    roots = paths.data_roots()
    seed = secrets.randbelow(2**31) if draw_seed is None else draw_seed
    is_shipped = not bundle.exists() and (SHIPPED / bundle).is_dir()
    source = Bundle(SHIPPED / bundle, name=bundle.as_posix()) if is_shipped else Bundle(bundle)
    url = db or paths.default_database()
    database = Database(url)
    if db is not None:
        database.check()
    all_runs = drawable(source, filters.columns)
    runs = draw(all_runs, source, sample, seed)
    slots = workers.choose(None, None, None, len(runs))
    checks = make_again(source, runs, roots, slots, display.Display(console(errors=True)))
    result = outcome(checks)
    state = None if result == "incomplete" or database.empty() else _mark(url, source, checks)
    for check in checks.to_dict("records"):
        suffix = "; made on other hardware" if check["other_hardware"] else ""
        print(f"{check['run']}: {check['finding']}: {check['detail']}{suffix}")
    if missed_methods := sorted({*all_runs["method"]} - {*runs["method"]}):
        print(f"not drawn: any run of {', '.join(missed_methods)}: a larger --sample reaches every method")
    share_text = f"{len(runs)} of {display.runs(len(all_runs))} drawn with --draw-seed {seed}"
    mark_text = f"marked {state} in {database.name}" if state else "nothing marked"
    counts = display.states(Counter(checks["finding"]))
    print(f"{source.name}: {result}, {share_text}: {counts}; {mark_text}")
    return 0 if result == "agreed" else 1


def _mark(url: str, source: Bundle, checks: pd.DataFrame) -> str | None:
    """Store in a database the findings on an imported bundle's runs. Return the bundle's new state."""
    from bench.store import open_store
    from bench.store.bundle_import import mark

    findings = {}
    for check in checks.to_dict("records"):
        is_excused = check["finding"] == "differs" and check["other_hardware"]
        if check["finding"] != "not checked" and not is_excused:
            findings[check["spec_hash"]] = check["finding"]
    with open_store(url, create=True) as store:
        return mark(store, source.hash, findings)


database = App(name="db", help="Bring the result database's schema up to date.")


@database.command
def upgrade(*, db: options.Database = None) -> None:
    """Bring an existing database to this version's schema."""
    from bench.store import connect

    place = connect.Database(db or paths.default_database())
    before = connect.upgrade(place)
    change = f"{before}, nothing to do" if before == connect.HEAD else f"{before} to {connect.HEAD}"
    print(f"{place.name}: schema {change}")
