"""``bench verify``: makes some of a bundle's runs again and says whether they agree."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from bench import paths
from bench.cli import options
from bench.cli.output import console

if TYPE_CHECKING:
    from bench.sweep.verify import Check


def verify(
    bundle: Path,
    /,
    *,
    sample: int = 3,
    seed: Annotated[int, Parameter(validator=Number(gte=0))] = 0,
    filters: options.CellFilters = options.ALL_CELLS,
    db: options.Database = None,
    data_root: options.DataRoot = None,
    as_json: options.AsJson = False,
) -> int:
    """Make a random sample of a bundle's finished runs again and compare.

    A run agrees if its clients are the same (partition hash) and either every count is the same
    or the test accuracy over all clients is within 0.5 points at the round of best validation, and
    within 1 point by the other rules, or two predictions, on small test splits
    (docs/results-format.md). Where the bundle was imported, the database keeps what came of every
    run and calls the bundle verified or contradicted. Exit code 0: all agree; 1: one differs, or
    one could not be made here, and then nothing is marked verified.

    Parameters
    ----------
    bundle
        The bundle's folder.
    sample
        How many runs; every finished run that the filters leave is as likely as any other.
    seed
        Seed of the draw.
    """
    roots = paths.data_roots(data_root)

    from bench.store import connect, open_store
    from bench.store.bundle import Bundle
    from bench.store.bundle_import import mark
    from bench.store.peek import knows_bundle
    from bench.sweep import workers
    from bench.sweep.plan import data_at_hand
    from bench.sweep.show import reporter
    from bench.sweep.verify import draw, make_again, obstacles, outcome

    theirs = Bundle(bundle)
    url = db or paths.default_database()
    imported = knows_bundle(url, theirs.hash, must_exist=db is not None)
    chosen = draw(theirs, sample, seed, filters.columns)
    checks = obstacles(chosen, data_at_hand(roots))
    if not checks:
        slots = workers.choose(None, None, None, len(chosen))
        checks = make_again(theirs, chosen, roots, slots, reporter(console(errors=True)))
    result = outcome(checks)
    state = None
    if imported and result != "incomplete":
        findings = {check.spec_hash: check.finding for check in checks if check.finding is not None}
        with open_store(url, create=True) as store:
            state = mark(store, theirs.hash, findings)
    if as_json:
        print(json.dumps({"bundle": theirs.name, "outcome": result, "marked": state, "runs": _rows(checks)}))
    else:
        for check in checks:
            print(f"{check.run}: {check.finding or 'not checked'}: {check.detail}")
        of = f"{len(chosen)} of {len(theirs.runs(state='done')):,} finished runs drawn"
        name = connect.database(url).name
        marked = f"marked {state} in {name}" if state else "nothing marked"
        marked += "" if imported else f": it was not imported into {name}"
        print(f"{theirs.name}: {result}, {of}; {marked}")
    return 0 if result == "agreed" else 1


def _rows(checks: list[Check]) -> list[dict[str, str | None]]:
    return [
        {"run": check.run, "spec_hash": check.spec_hash, "finding": check.finding, "detail": check.detail}
        for check in checks
    ]
