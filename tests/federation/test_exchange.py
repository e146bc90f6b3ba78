"""Clients that are written to a file, and those that a stranger has in an archive or a table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from toy_data import random_graph, random_hypergraph, random_images

from bench.cli.main import main
from bench.data import Data, Hypergraph
from bench.dataset import Dataset
from bench.errors import RequestError
from bench.federation.assignment_file import write
from bench.federation.build import build
from bench.federation.exchange import install
from bench.federation.types import TEST, TRAIN, UNUSED, VALIDATION, Federation

PAPER = (40.0, 30.0, 30.0)
TOY = {"dataset": "toy", "scenario": "non-overlapping"}
Use = Callable[..., type[Dataset]]
Capture = pytest.CaptureFixture[str]

ROWS = [
    ("0", "4", "train"),
    ("0", "2", "val"),
    ("0", "3", "test"),
    ("1", "5", "train"),
    ("1", "0", "unused"),
    ("1", "7", "test"),
    ("0", "6", ""),
]
"""Two clients of a graph of ten nodes; the rows of the first are not together."""

BARE = {
    "nodes": np.array([4, 2, 3, 6, 5, 0, 7]),
    "nodes_offsets": np.array([0, 4, 7]),
    "train_mask": np.array([1, 0, 0, 0, 1, 0, 0], bool),
    "val_mask": np.array([0, 1, 0, 0, 0, 0, 0], bool),
    "test_mask": np.array([0, 0, 1, 0, 0, 0, 1], bool),
}
"""The clients of ``ROWS`` as arrays."""


def table(path: Path, rows: list[tuple[str, ...]], header: str = "client,item,role") -> Path:
    path.write_text("\n".join([header, *(",".join(row) for row in rows)]) + "\n", encoding="utf-8")
    return path


def contents(path: Path) -> dict[str, np.ndarray[Any, Any]]:
    with np.load(path, allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def as_rows(federation: Federation) -> list[tuple[str, ...]]:
    names = {TRAIN: "train", VALIDATION: "val", TEST: "test", UNUSED: ""}
    return [
        (str(number), str(item), names[role])
        for number, client in enumerate(federation.clients)
        for item, role in zip(client.ids.tolist(), client.roles.tolist(), strict=True)
    ]


@pytest.fixture
def exported(use_toy: Use, tmp_path: Path) -> tuple[Federation, Path]:
    use_toy(random_graph(60))
    federation = build("toy", "non-overlapping", 4, 1, PAPER)
    write(tmp_path / "toy.npz", federation)
    return federation, tmp_path / "toy.npz"


def test_the_file_holds_ids_and_masks_as_documented(exported: tuple[Federation, Path]) -> None:
    federation, path = exported
    file = contents(path)
    said = {
        name: file[name].tolist() for name in ("dataset", "scenario", "format", "partition_seed", "split")
    }
    assert tuple(said.values()) == ("toy", "non-overlapping", 1, 1, [40, 30, 30])
    assert file["hash"].item() == federation.hash
    for number, client in enumerate(federation.clients):
        nodes = slice(*file["nodes_offsets"][number : number + 2])
        assert file["nodes"][nodes].tolist() == client.ids.tolist()
        for mask, role in (("train_mask", TRAIN), ("val_mask", VALIDATION), ("test_mask", TEST)):
            assert file[mask][nodes].tolist() == (client.roles == role).tolist()


@pytest.mark.parametrize(
    ("data", "scenario", "clients", "split"),
    [
        (random_graph(60), "non-overlapping", 4, PAPER),
        (random_graph(60), "overlapping", 10, PAPER),
        (random_graph(60), "non-overlapping", 1, (20.0, 20.0, 20.0)),
        (random_hypergraph(80), "label-dirichlet", 3, (10, 20, 40)),
        (random_images(100), "dirichlet0.5", 5, (70, 10, 20)),
    ],
    ids=lambda value: str(value) if isinstance(value, str) else "",
)
def test_clients_come_back_from_an_export_from_bare_arrays_and_from_a_table(
    use_toy: Use, tmp_path: Path, data: Data, scenario: str, clients: int, split: tuple[float, float, float]
) -> None:
    use_toy(data)
    federation = build("toy", scenario, clients, 3, split)
    write(tmp_path / "whole.npz", federation)
    arrays = {name: values for name, values in contents(tmp_path / "whole.npz").items() if name in BARE}
    np.savez(tmp_path / "bare.npz", **{**arrays, "nodes": arrays["nodes"].astype(np.int16)})
    table(tmp_path / "bare.csv", as_rows(federation))
    named = {**TOY, "scenario": scenario, "clients": clients, "partition_seed": 3, "split": split}
    for name, said in (("whole.npz", {}), ("bare.npz", named), ("bare.csv", named)):
        again = install(tmp_path / name, named=said).federation
        assert again.hash == federation.hash
        assert again.provenance["made"] == "imported"
        for one, two in zip(federation.clients, again.clients, strict=True):
            assert np.array_equal(one.ids, two.ids)
            assert np.array_equal(one.roles, two.roles)
            assert np.array_equal(one.features, two.features)


def test_a_table_gives_clients_their_items_in_the_order_of_its_rows(use_toy: Use, tmp_path: Path) -> None:
    kind = use_toy(random_graph(10))
    imported = install(table(tmp_path / "own.csv", ROWS), named=TOY)
    clients = imported.federation.clients
    assert [client.ids.tolist() for client in clients] == [[4, 2, 3, 6], [5, 0, 7]]
    assert clients[0].roles.tolist() == [TRAIN, VALIDATION, TEST, UNUSED]
    assert clients[1].roles.tolist() == [TRAIN, UNUSED, TEST]
    protocol = kind.protocol
    assert imported.request == ("toy", "non-overlapping", 2, protocol.partition_seed, protocol.split)
    turned = [("x", role, f" {item} ", client) for client, item, role in ROWS]
    file = table(tmp_path / "turned.CSV", turned, "\ufeffnote,role,item,client")  # as spreadsheets write it
    assert install(file, named=TOY).federation.hash == imported.federation.hash
    np.savez(tmp_path / "own.npz", **BARE)
    assert install(tmp_path / "own.npz", named=TOY).federation.hash == imported.federation.hash


def test_runs_of_the_request_use_the_installed_clients(
    use_toy: Use, tmp_path: Path, suite_home: Path
) -> None:
    use_toy(random_graph(10))
    drawn = build("toy", "non-overlapping", 2, 5, PAPER)
    named = {**TOY, "partition_seed": 5, "split": PAPER}
    imported = install(table(tmp_path / "own.csv", ROWS), named=named)
    assert imported.kept.is_relative_to(suite_home)
    assert build("toy", "non-overlapping", 2, 5, PAPER).hash == imported.federation.hash != drawn.hash
    assert build("toy", "non-overlapping", 2, 6, PAPER).hash != imported.federation.hash
    imported.kept.write_bytes(b"damaged")
    with pytest.raises(RequestError, match="import it again or delete it"):
        build("toy", "non-overlapping", 2, 5, PAPER)
    imported.kept.unlink()
    assert build("toy", "non-overlapping", 2, 5, PAPER).hash == drawn.hash


def test_other_data_under_the_same_name_are_noticed(exported: tuple[Federation, Path], use_toy: Use) -> None:
    _, path = exported
    data = random_graph(60)
    use_toy(replace(data, features=data.features + np.float32(1)))
    with pytest.raises(RequestError, match="its hash is"):
        install(path)
    use_toy(random_graph(59))
    with pytest.raises(RequestError, match="unknown: items of toy must lie in 0 to 58"):
        install(path)


# --- what is refused -----------------------------------------------------------------------------


def row(place: int, *values: str) -> list[tuple[str, ...]]:
    """The rows with another one at a place."""
    return [*ROWS[:place], values, *ROWS[place + 1 :]]


WRONG: dict[str, tuple[list[tuple[str, ...]] | bytes | dict[str, Any], str]] = {
    "unknown item": (row(1, "0", "10", "val"), "item 10 of client 0 is unknown"),
    "enormous item": (row(1, "0", "9" * 40, "val"), "own.csv"),
    "item twice": ([*ROWS, ("1", "5", "train")], "item 5 of client 1 is there twice"),
    "two clients share an item": ([*ROWS, ("1", "4", "train")], "item 4 of client 1 is at another client"),
    "no training item": (row(3, "1", "5", "val"), "client 1"),
    "no validation item at all": (row(1, "0", "2", "unused"), "no client has a val item"),
    "unknown role": (row(2, "0", "3", "Test"), "'Test'"),
    "item with a fraction": (row(2, "0", "3.5", "test"), "own.csv"),
    "negative client": (row(2, "-1", "3", "test"), "own.csv"),
    "client left out": (row(6, "3", "6", ""), "client 2"),
    "distant client": (row(6, "9" * 18, "6", ""), "own.csv"),
    "no rows": ([], "no row"),
    "no role": (b"client,item\n0,1\n", "role"),
    "no text": (b"client,item,role\n0,\xff,train\n", "own.csv"),
    "float items": ({"nodes": BARE["nodes"] / 1.0}, "float64"),
    "a matrix of items": ({"nodes": BARE["nodes"][None]}, "must rise from 0 to 1"),
    "masks overlap": ({"val_mask": BARE["test_mask"]}, "overlaps another mask"),
    "mask of the whole data set": ({"train_mask": np.zeros(10, bool)}, "boolean index"),
    "mask of numbers": ({"train_mask": BARE["train_mask"].astype(int)}, "Cannot cast"),
    "no mask": ({"test_mask": None}, "it lacks test_mask"),
    "no items": ({"nodes": np.zeros(0, int)}, "must rise from 0 to 0"),
    "offsets fall": ({"nodes_offsets": np.array([0, 5, 4, 7], np.uint64)}, "must rise"),
    "empty client": ({"nodes_offsets": np.array([0, 0, 7])}, "client 0 has no items"),
    "newer format": ({"format": np.int64(2)}, "format 1 expected, got 2"),
    "other scenario": ({"scenario": np.array("overlapping")}, "overlapping there"),
    "other data set": ({"dataset": np.array("cora")}, "cora there"),
    "negative seed": ({"partition_seed": np.int64(-1)}, "partition seed"),
    "split": ({"split": np.array([50.0, 50.0, 50.0])}, "add up to 100"),
    "provenance": ({"provenance": np.array("{")}, "own.npz"),
    "other hash": ({"hash": np.array("0" * 64)}, "its hash is 0000"),
    "pickle": ({"nodes": np.array([{}], object)}, "allow_pickle"),
}


OPTIONS = ("-d", "toy", "-s", "non-overlapping")

WRONG_OPTIONS = [
    (("-s", "non-overlapping"), "--dataset"),
    (("-d", "toi", "-s", "non-overlapping"), "'toi'"),
    (("-d", "toy", "-s", "dirichlet0.1"), "images"),
    (("-d", "toy", "-s", "overlapping"), "multiple"),
]


@pytest.mark.parametrize(
    ("content", "options", "word"),
    [
        *[pytest.param(content, OPTIONS, word, id=case) for case, (content, word) in WRONG.items()],
        *[(ROWS, options, word) for options, word in WRONG_OPTIONS],
        (None, OPTIONS, "No such file"),
    ],
)
def test_wrong_files_and_requests_are_refused_in_one_line_and_install_nothing(
    content: list[tuple[str, ...]] | bytes | dict[str, Any] | None,
    options: tuple[str, ...],
    word: str,
    use_toy: Use,
    tmp_path: Path,
    suite_home: Path,
    capsys: Capture,
) -> None:
    use_toy(random_graph(10))
    file = tmp_path / ("own.npz" if isinstance(content, dict) else "own.csv")
    if isinstance(content, dict):
        np.savez(file, **{name: array for name, array in (BARE | content).items() if array is not None})
    elif isinstance(content, bytes):
        file.write_bytes(content)
    elif content is not None:
        table(file, content)
    with pytest.raises(SystemExit) as ended:
        main(["data", "import", str(file), *options])
    printed = capsys.readouterr()
    assert (ended.value.code, printed.out, printed.err.count("\n")) == (2, "", 1)
    assert word in printed.err
    assert "Traceback" not in printed.err
    assert not suite_home.exists()


def test_clients_that_no_class_can_be_learned_from_are_refused(use_toy: Use, tmp_path: Path) -> None:
    data = random_hypergraph(30)
    assert isinstance(data, Hypergraph)
    use_toy(data)
    learned = np.flatnonzero(data.labels != 2)
    rows = [(str(i % 2), str(item), ("train", "val", "test")[i // 2 % 3]) for i, item in enumerate(learned)]
    with pytest.raises(RequestError, match="class 2"):
        install(table(tmp_path / "own.csv", rows), named={**TOY, "scenario": "label-dirichlet"})


def test_an_overlapping_node_has_one_role(use_toy: Use, tmp_path: Path) -> None:
    use_toy(random_graph(60))
    path = tmp_path / "file.npz"
    write(path, build("toy", "overlapping", 5, 1, PAPER))
    file = contents(path)
    nodes, counts = np.unique(file["nodes"][file["test_mask"]], return_counts=True)
    leak = np.flatnonzero(file["nodes"] == nodes[counts > 1][0])[0]
    file["test_mask"][leak], file["train_mask"][leak] = False, True
    np.savez(path, **file)  # type: ignore[arg-type]
    with pytest.raises(RequestError, match="has another role at another client"):
        install(path)


# --- what is said --------------------------------------------------------------------------------


def test_the_command_says_what_it_made_of_a_file(use_toy: Use, tmp_path: Path, capsys: Capture) -> None:
    use_toy(random_graph(10))
    file = table(tmp_path / "own.csv", ROWS)
    with pytest.raises(SystemExit) as ended:
        main(["data", "import", str(file), *OPTIONS])
    assert ended.value.code == 0
    out = capsys.readouterr().out
    digest = install(file, named=TOY).federation.hash
    assert f"2 clients of toy, non-overlapping, with 3 to 4 items, hash {digest}" in out
    assert "protocol.split=[40,30,30]" in out
