"""``bench export``: results as a bundle of files that others can read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from bench import paths
from bench.cli.seeds import Seeds


def export(
    *,
    out: Path,
    dataset: Annotated[list[str] | None, Parameter(name=["--dataset", "-d"], negative="")] = None,
    method: Annotated[list[str] | None, Parameter(name=["--method", "-m"], negative="")] = None,
    clients: Annotated[list[int] | None, Parameter(name=["--clients", "-k"], negative="")] = None,
    scenario: Annotated[list[str] | None, Parameter(name=["--scenario", "-s"], negative="")] = None,
    seed: Seeds = None,
    grid: str | None = None,
    largest_array_kib: int = 4,
    db: str | None = None,
    as_json: Annotated[bool, Parameter(name="--json", negative="")] = False,
) -> None:
    """Write runs that have an outcome as a bundle: a folder of JSON and Parquet files.

    The states done, diverged, not_applicable and oom are outcomes. Options that can be given
    several times: -d, -m, -k, -s, --seed.

    Parameters
    ----------
    out
        The bundle's folder: a new one, or a bundle, which is replaced.
    dataset
        Only this data set.
    method
        Only this method.
    clients
        Only this number of clients.
    scenario
        Only this scenario.
    seed
        Only this seed, or a range such as 0-4.
    grid
        Only the runs of this grid, a name or a TOML file.
    largest_array_kib
        Leave out arrays of runs that are larger: collaboration weights of every round take some 200.
    db
        Database URL; default: sqlite:///BENCH_HOME/bench.db.
    as_json
        Print a JSON object.
    """
    from bench.store import open_store
    from bench.store.bundle_choice import Choice, choose
    from bench.store.bundle_write import write_bundle

    choice = Choice(
        tuple(dataset or ()),
        tuple(scenario or ()),
        tuple(clients or ()),
        tuple(method or ()),
        tuple(seed or ()),
        grid,
    )
    with open_store(db or paths.default_database(), create=False) as store:
        written = write_bundle(store, choose(store.runs(), choice), out, largest_array_kib * 1024)
    if as_json:
        print(
            json.dumps(
                {"bundle": str(written.folder), "runs": written.runs, "bytes": written.bytes}
                | {"files": written.files}
            )
        )
        return
    print(f"{written.folder}: {written.runs:,} run{'s' if written.runs > 1 else ''}, {written.bytes:,} bytes")
