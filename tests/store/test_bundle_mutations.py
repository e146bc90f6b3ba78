"""A thousand damaged and forged bundles: each is refused in one line or imports sound content."""

import hashlib
import json
import math
import random
import sqlite3
import struct
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from stored_runs import change_manifest, change_table, database, done, dump, opened, sign, spec_of

from bench.engine.result import RunResult
from bench.errors import RequestError
from bench.store.bundle import Bundle, write_bundle
from bench.store.bundle_import import ImportInfo, import_bundle

TABLES = tuple(f"{name}.parquet" for name in ("runs", "client_results", "curves", "artefacts", "confusions"))
FILES = ("bundle.json", *TABLES)
CASES = {
    "flip": 80,
    "cut": 40,
    "flip_signed": 220,
    "cut_signed": 40,
    "manifest": 200,
    "cell": 200,
    "schema": 70,
    "rows": 100,
    "spec": 80,
}
"""Kind of mutation -> number of bundles in the long test."""

FEW = 6
"""Bundles of each kind in the short one."""

Mutation = Callable[[Path, random.Random], object]

# Mutations ----------------------------------------------------------------------------------------

VALUES: list[Any] = [
    None, True, False, 0, 1, -1, 2, 7, 2**31 - 1, 2**31, -(2**31), 2**63 - 1, 2**63, 10**400,
    0.0, -0.0, 0.5, 1.01, 101.0, -0.1, 1e308, math.nan, math.inf, -math.inf,
    "", "x", "done", "failed", "local", "test", "val", "trained", "last", "accuracy", "p2", "0" * 64,
    "<script>alert(1)</script>", "../../etc/passwd", "a\x00b", "a\nb", "\x1b[31m", "\u202edone", "é" * 9,
    "x" * 70_000, "{}", "'; DROP TABLE runs; --", b"\x80\x04K\x01.", [], [1], {}, {"a": {"b": [None]}},
]  # fmt: skip
"""What is put in the place of something else."""


def flip(folder: Path, rng: random.Random, names: Sequence[str] = FILES) -> str:
    name = rng.choice(names)
    data = bytearray((folder / name).read_bytes())
    for _ in range(rng.choice((1, 1, 2, 8))):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    (folder / name).write_bytes(data)
    return name


def cut(folder: Path, rng: random.Random, names: Sequence[str] = FILES) -> str:
    name = rng.choice(names)
    data = (folder / name).read_bytes()
    (folder / name).write_bytes(data[: rng.randrange(len(data))])
    return name


def signed(change: Callable[[Path, random.Random, Sequence[str]], str]) -> Mutation:
    """The same with the right sum in ``bundle.json``, so that the Parquet reader sees the damage."""

    def mutate(folder: Path, rng: random.Random) -> None:
        stated = json.loads((folder / "bundle.json").read_bytes())["files"]
        name = change(folder, rng, TABLES)
        sign(folder, name, stated[name]["rows"])

    return mutate


def places(tree: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) in parsed JSON."""
    pairs: list[tuple[Any, Any]] = []
    inside = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in inside:
        pairs.append((tree, key))
        pairs += places(value)
    return pairs


def change_json(tree: Any, rng: random.Random) -> None:
    holder, key = rng.choice(places(tree))
    match rng.randrange(4):
        case 0:
            del holder[key]
        case 1 if isinstance(holder, dict):
            holder[str(rng.choice(VALUES))] = holder.pop(key)
        case 2 if isinstance(holder, list):
            holder.append(holder[key])
        case _:
            value = rng.choice(VALUES)
            holder[key] = value.decode("latin-1") if isinstance(value, bytes) else value


def manifest(folder: Path, rng: random.Random) -> None:
    for _ in range(rng.choice((1, 1, 2))):
        change_manifest(folder, lambda tree: change_json(tree, rng))


def cell(folder: Path, rng: random.Random) -> None:
    """Another value, of the column's type where it can be."""

    def change(table: pa.Table) -> pa.Table:
        place = rng.randrange(table.num_columns)
        field = table.schema.field(place)
        values = table.column(place).to_pylist()
        row = rng.randrange(len(values))
        fitting = [value for value in (*VALUES, rng.choice(values)) if converts(value, field.type)]
        values[row] = rng.choice(fitting)
        loose = pa.field(field.name, field.type, nullable=values[row] is None or field.nullable)
        return table.set_column(place, loose, pa.array(values, field.type))

    change_table(folder, rng.choice(TABLES), change)


def converts(value: Any, kind: pa.DataType) -> bool:
    try:
        pa.array([value], kind)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return False
    return True


def schema(folder: Path, rng: random.Random) -> None:
    def change(table: pa.Table) -> pa.Table:
        place = rng.randrange(table.num_columns)
        field, column = table.schema.field(place), table.column(place)
        match rng.randrange(5):
            case 0:
                return table.drop_columns([field.name])
            case 1:
                return table.append_column(str(rng.choice(VALUES[20:])), column)
            case 2:
                return table.rename_columns([*table.column_names[:-1], rng.choice(table.column_names)])
            case 3:
                others = [
                    pa.array([rng.choice((0, 0.5, "x"))] * len(table)),
                    pa.array([[1]] * len(table)),
                    pa.array(column.to_pylist(), field.type).dictionary_encode()
                    if not pa.types.is_list(field.type)
                    else pa.array([None] * len(table), pa.string()),
                    pa.array([{"a": 1}] * len(table)),
                ]
                return table.set_column(place, field.name, rng.choice(others))
            case _:
                hostile = json.dumps({"index_columns": [field.name], "columns": [{"name": 1}]}).encode()
                return table.replace_schema_metadata({b"pandas": hostile, b"PANDAS": b"\x80"})

    change_table(folder, rng.choice(TABLES), change)


def rows(folder: Path, rng: random.Random) -> None:
    def change(table: pa.Table) -> pa.Table:
        order = list(range(len(table)))
        match rng.randrange(5):
            case 0:
                order.append(rng.choice(order))
            case 1:
                order.remove(rng.choice(order))
            case 2:
                order = []
            case 3:
                rng.shuffle(order)
            case _ if "run" in table.column_names:  # the numbers of one run under the name of another
                one, other = rng.sample(range(4), 2)
                swap = {one: other, other: one}
                numbers = [swap.get(run, run) for run in table.column("run").to_pylist()]
                place = table.schema.get_field_index("run")
                return table.set_column(place, table.schema.field(place), pa.array(numbers, pa.int32()))
            case _:
                order = order[::-1]
        return table.take(pa.array(order, pa.int64()))

    change_table(folder, rng.choice(TABLES), change)


def spec(folder: Path, rng: random.Random) -> None:
    """Another spec with its right hash, and the columns that repeat it."""

    def change(table: pa.Table) -> pa.Table:
        columns = {name: table.column(name).to_pylist() for name in table.column_names}
        row = rng.randrange(len(table))
        tree = json.loads(columns["spec"][row])
        change_json(tree, rng)
        text = json.dumps(tree, sort_keys=True, separators=(",", ":"))
        columns["spec"][row] = text
        columns["spec_hash"][row] = hashlib.sha256(text.encode()).hexdigest()
        for name in ("dataset", "scenario", "clients", "method", "seed"):
            kind = table.schema.field(name).type
            if name in tree and tree[name] is not None and converts(tree[name], kind):
                columns[name][row] = tree[name]
        return pa.table(
            [pa.array(columns[field.name], field.type) for field in table.schema], schema=table.schema
        )

    change_table(folder, "runs.parquet", change)


MUTATIONS: dict[str, Mutation] = {
    "flip": flip,
    "cut": cut,
    "flip_signed": signed(flip),
    "cut_signed": signed(cut),
    "manifest": manifest,
    "cell": cell,
    "schema": schema,
    "rows": rows,
    "spec": spec,
}

# An independent look at a database ----------------------------------------------------------------


def check_content(path: Path) -> int:
    """Check every imported row with the standard library alone; returns the number of runs."""
    raw = sqlite3.connect(path)
    raw.row_factory = sqlite3.Row
    assert raw.execute("PRAGMA foreign_key_check").fetchall() == []
    assert raw.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
    runs = raw.execute("SELECT * FROM runs WHERE bundle_id IS NOT NULL").fetchall()
    partitions = {row["hash"]: row for row in raw.execute("SELECT * FROM partitions")}
    for row in raw.execute("SELECT * FROM environments"):
        assert hashlib.sha256(row["description"].encode()).hexdigest() == row["hash"]
    for run in runs:
        check_run(run, partitions)
        results = raw.execute("SELECT * FROM client_results WHERE run_id = ?", [run["id"]]).fetchall()
        curves = raw.execute("SELECT * FROM curves WHERE run_id = ?", [run["id"]]).fetchall()
        if run["state"] == "done":
            check_numbers(run, results, curves)
        else:
            assert not results
            assert not curves
    raw.close()
    return len(runs)


def check_run(run: sqlite3.Row, partitions: dict[str, sqlite3.Row]) -> None:
    assert hashlib.sha256(run["spec"].encode()).hexdigest() == run["spec_hash"]
    tree = json.loads(run["spec"], parse_constant=lambda name: pytest.fail(name))
    assert json.dumps(tree, sort_keys=True, separators=(",", ":")) == run["spec"]
    names = ("dataset", "scenario", "clients", "method", "seed")
    assert [run[name] for name in names] == [tree[name] for name in names]
    assert run["rounds"] == tree["protocol"]["rounds"] >= 1
    assert run["state"] in ("done", "diverged", "oom", "not_applicable")
    for name in run.keys():  # noqa: SIM118 - a row iterates over its values
        if isinstance(run[name], str) and name != "reason":
            assert run[name].isprintable()
        if isinstance(run[name], float):
            assert math.isfinite(run[name])
            assert run[name] >= 0
    datetime.fromisoformat(run["started"])
    if run["state"] == "done" or run["partition_hash"]:
        partition = partitions[run["partition_hash"]]
        assert [partition[name] for name in names[:3]] == [run[name] for name in names[:3]]


def check_numbers(run: sqlite3.Row, results: list[sqlite3.Row], curves: list[sqlite3.Row]) -> None:
    decoded = {}
    for curve in curves:
        numbers = struct.unpack(f"<{curve['rows'] * curve['clients']}i", zlib.decompress(curve["data"]))
        width = curve["clients"]
        decoded[curve["stage"]] = [numbers[at : at + width] for at in range(0, len(numbers), width)]
        assert curve["split"] == "test"
        assert width == run["clients"]
    samples: dict[tuple[str, int], set[int]] = {}
    readings: Counter[tuple[str, int]] = Counter()
    for row in results:
        if row["metric"] != "accuracy":
            assert 0 <= row["value"] <= 1
            continue
        correct = round(row["value"] * row["samples"])
        assert 0 <= correct <= row["samples"]
        assert correct / row["samples"] == row["value"]
        assert row["stage"] in ("received", "trained")
        assert row["rule"] in ("best_val", "last", "best_test", "client_best_val")
        key = (row["split"], row["client"])
        samples.setdefault(key, set()).add(row["samples"])
        readings[key] += 1
        if row["split"] == "test":
            column = [counts[row["client"]] for counts in decoded[row["stage"]]]
            assert correct in column
            assert row["rule"] != "last" or column[-1] == correct
    assert any(split == "test" for split, _ in samples)
    assert all(len(values) == 1 for values in samples.values())
    assert set(readings.values()) == {8}


# The test -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, bytes], Path]:
    """The files of a sound bundle of four runs, and a database with a run of one's own and one of its."""
    folder = tmp_path_factory.mktemp("ground")
    theirs = [
        (spec_of(), done()),
        (spec_of(seed=1), done(shift=1)),
        (spec_of(seed=2), RunResult("oom", reason="8 GB", partition_hash="p2")),
        (spec_of(clients=3, method="fedavg"), done(clients=3)),
    ]
    with opened(folder / "theirs.db", theirs) as store:
        write_bundle(store, store.runs(), folder / "bundle")
    database(folder / "own.db", [(spec_of(seed=9), done()), (spec_of(seed=1), RunResult("failed"))])
    return {path.name: path.read_bytes() for path in (folder / "bundle").iterdir()}, folder / "own.db"


def attempt(folder: Path, target: Path) -> tuple[ImportInfo | None, str]:
    """What an import did, or why it was refused; any other error passes through."""
    try:
        return import_bundle(f"sqlite:///{target}", Bundle(folder)), ""
    except RequestError as error:
        return None, str(error)


@pytest.mark.parametrize("kind", CASES)
@pytest.mark.parametrize("few", [True, pytest.param(False, marks=pytest.mark.slow)], ids=["few", "all"])
def test_a_mutated_bundle_is_refused_or_sound(
    kind: str, few: bool, ground: tuple[dict[str, bytes], Path], tmp_path: Path
) -> None:
    files, own = ground
    folder, target = tmp_path / "bundle", tmp_path / "target.db"
    folder.mkdir()
    target.write_bytes(own.read_bytes())
    before = dump(target)
    refused = 0
    count = FEW if few else CASES[kind]
    for number in range(count):
        for name, data in files.items():
            (folder / name).write_bytes(data)
        MUTATIONS[kind](folder, random.Random(f"{kind} {number}"))
        result, problem = attempt(folder, target)
        if result is None:
            refused += 1
            assert problem.startswith("bundle "), (kind, number)
            assert problem.isprintable(), (kind, number)
            assert len(problem) < 600, (kind, number)
            assert dump(target) == before, (kind, number)
        else:
            assert check_content(target) == result.added + result.replaced, (kind, number)
            for leftover in tmp_path.glob("target.db*"):
                leftover.unlink()
            target.write_bytes(own.read_bytes())
    assert refused > 0 if few else refused > count / 2


def test_the_sound_bundle_passes(ground: tuple[dict[str, bytes], Path], tmp_path: Path) -> None:
    """Else every mutation would be refused for a reason of its own."""
    files, own = ground
    target = tmp_path / "target.db"
    target.write_bytes(own.read_bytes())
    (tmp_path / "bundle").mkdir()
    for name, data in files.items():
        (tmp_path / "bundle" / name).write_bytes(data)
    result = import_bundle(f"sqlite:///{target}", Bundle(tmp_path / "bundle"))
    assert (result.added, result.replaced, result.equal, result.conflicts) == (3, 1, 0, ())
    assert check_content(target) == 4
    assert sum(CASES.values()) >= 1000
    assert set(CASES) == set(MUTATIONS)
