"""Making a bundle's runs again where their method fails here."""

import io
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from fake_execute import faulty_itself, outcome
from fake_runs import any_federation, cpu, grid
from rich.console import Console

from bench.grids import expand
from bench.store import Context, open_store
from bench.store.bundle import Bundle
from bench.store.bundle_write import write_bundle
from bench.sweep import verify
from bench.sweep.progress import PlainLines


def test_a_method_that_fails_here_leaves_the_rest_of_the_sample_unchecked(tmp_path: Path) -> None:
    """The sweep holds it back after three cells; what was made is compared."""
    planned = [
        *expand(grid(("cora", "citeseer", "pubmed", "photo", "computers"), ("local",), seeds=(0,))),
        *expand(grid(("facebook",), ("fedavg",), seeds=(10,))),
    ]
    with open_store(f"sqlite:///{tmp_path / 'theirs.db'}", create=True) as store:
        for each in planned:
            assert each.spec is not None
            made = outcome(each.spec.canonical())
            partition = made.partition_hash if each.dataset == "facebook" else each.dataset
            context = Context(datetime(2026, 1, 1), {}, "0", 1, 1)
            store.save(each.spec, replace(made, partition_hash=partition), context)
        write_bundle(store, store.runs(), tmp_path / "theirs")
    bundle = Bundle(tmp_path / "theirs")
    sample = verify.draw(bundle, 6, 0)
    reporter = PlainLines(Console(file=io.StringIO()))
    checks = verify.make_again(bundle, sample, (), cpu(1), reporter, faulty_itself, any_federation)
    assert [check.spec_hash for check in checks] == list(sample["spec_hash"]), "every run, in order"
    found = [(check.run.partition(" ")[0], check.finding, check.detail) for check in checks]
    assert [each for each in found if each[1]] == [("fedavg", "equal", "every count is the same")]
    assert sorted(each for each in found if not each[1]) == [
        *[("local", None, "it ended here as failed: ValueError: first line")] * 3,
        *[("local", None, "not made: others of its method failed alike")] * 2,
    ]
    assert verify.outcome(checks) == "incomplete", "neither agreed nor contradicted"
