"""Clients that a stranger has: item numbers and roles by client, in an archive or a table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from toy_data import random_graph, random_hypergraph, random_images

from bench.cli.main import main
from bench.data import Data, Graph, Hypergraph
from bench.dataset import Dataset
from bench.errors import RequestError
from bench.federation.build import build
from bench.federation.exchange import export_federation, install
from bench.federation.prepared import prepare
from bench.federation.statistics import clustering, holdings
from bench.federation.types import TEST, TRAIN, UNUSED, VALIDATION, Client, Federation

PAPER = (40.0, 30.0, 30.0)
TOY = {"dataset": "toy", "scenario": "non-overlapping"}
Use = Callable[..., type[Dataset]]
Capture = pytest.CaptureFixture[str]
PUBLISHED = Path(__file__).parents[3] / "shared" / "data" / "cora_published_partitions.npz"

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


def table(path: Path, rows: list[tuple[str, ...]], header: str = "client,item,role") -> Path:
    path.write_text("\n".join([header, *(",".join(row) for row in rows)]) + "\n", encoding="utf-8")
    return path


def bare(path: Path, federation: Federation, kind: type[np.signedinteger[Any]] = np.int64) -> Path:
    """Item numbers and masks alone."""
    clients = federation.clients
    roles = np.concatenate([client.roles for client in clients])
    np.savez(
        path,
        nodes=np.concatenate([client.ids for client in clients]).astype(kind),
        nodes_offsets=np.cumsum([0, *(len(client.ids) for client in clients)]).astype(kind),
        train_mask=roles == TRAIN,
        val_mask=roles == VALIDATION,
        test_mask=roles == TEST,
    )
    return path


def as_rows(federation: Federation) -> list[tuple[str, ...]]:
    names = {TRAIN: "train", VALIDATION: "val", TEST: "test", UNUSED: ""}
    return [
        (str(number), str(item), names[role])
        for number, client in enumerate(federation.clients)
        for item, role in zip(client.ids.tolist(), client.roles.tolist(), strict=True)
    ]


def everything_in(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*"))


def test_a_table_gives_clients_their_items_in_the_order_of_its_rows(use_toy: Use, tmp_path: Path) -> None:
    use_toy(random_graph(10))
    federation = install(table(tmp_path / "own.csv", ROWS), named=TOY).federation
    assert [client.ids.tolist() for client in federation.clients] == [[4, 2, 3, 6], [5, 0, 7]]
    assert [client.roles.tolist() for client in federation.clients] == [
        [TRAIN, VALIDATION, TEST, UNUSED],
        [TRAIN, UNUSED, TEST],
    ]
    assert federation.provenance["made"] == "imported"


def test_columns_may_stand_in_any_order_beside_others(use_toy: Use, tmp_path: Path) -> None:
    use_toy(random_graph(10))
    plain = install(table(tmp_path / "plain.csv", ROWS), named=TOY).federation
    turned = [("x", role, f" {item} ", client) for client, item, role in ROWS]
    file = table(tmp_path / "turned.CSV", turned, "\ufeffnote,role,item,client")  # as spreadsheets write it
    assert install(file, named=TOY).federation.hash == plain.hash


@pytest.mark.parametrize(
    ("data", "scenario", "clients", "split"),
    [
        (random_graph(60), "non-overlapping", 4, PAPER),
        (random_graph(60), "overlapping", 10, PAPER),
        (random_graph(60), "non-overlapping", 2, (20.0, 20.0, 20.0)),
        (random_hypergraph(80), "label-dirichlet", 3, (10, 20, 40)),
        (random_images(100), "dirichlet0.5", 5, (70, 10, 20)),
    ],
    ids=lambda value: str(value) if isinstance(value, str) else "",
)
def test_bare_clients_make_the_federation_that_they_were_taken_from(
    use_toy: Use, tmp_path: Path, data: Data, scenario: str, clients: int, split: tuple[float, float, float]
) -> None:
    use_toy(data)
    federation = build("toy", scenario, clients, 3, split)
    named = {**TOY, "scenario": scenario, "clients": clients, "partition_seed": 3, "split": split}
    export_federation(federation, tmp_path / "whole.npz")
    with np.load(tmp_path / "whole.npz") as file:
        arrays = {name: file[name] for name in file.files}
    kept = {"nodes", "nodes_offsets", "train_mask", "val_mask", "test_mask"}
    np.savez(tmp_path / "bare.npz", **{name: array for name, array in arrays.items() if name in kept})
    files = (
        tmp_path / "bare.npz",
        bare(tmp_path / "short.npz", federation, np.int16),
        table(tmp_path / "bare.csv", as_rows(federation)),
    )
    for file in files:
        again = install(file, named=named).federation
        assert again.hash == federation.hash
        for one, two in zip(federation.clients, again.clients, strict=True):
            assert one.ids.tolist() == two.ids.tolist()
            assert one.roles.tolist() == two.roles.tolist()


def test_files_of_earlier_exports_are_read(use_toy: Use, tmp_path: Path) -> None:
    use_toy(random_graph(60))
    federation = build("toy", "overlapping", 5, 3, PAPER)
    export_federation(federation, tmp_path / "now.npz")
    clients = federation.clients
    edges = [client.edges for client in clients if client.edges is not None]
    with np.load(bare(tmp_path / "bare.npz", federation)) as file:
        arrays = {name: file[name] for name in file.files}
    arrays |= {  # the arrays that an export has had from the first version on
        "format": np.int64(1),
        "dataset": np.array("toy"),
        "scenario": np.array("overlapping"),
        "partition_seed": np.int64(3),
        "split": np.array(PAPER),
        "hash": np.array(federation.hash),
        "provenance": np.array('{"made": "drawn"}'),
        "labels": np.concatenate([client.labels for client in clients]),
        "edges": np.concatenate(edges, axis=1),
        "edges_offsets": np.cumsum([0, *(part.shape[1] for part in edges)]),
    }
    np.savez_compressed(tmp_path / "earlier.npz", **arrays)
    assert install(tmp_path / "earlier.npz").federation.hash == federation.hash
    with np.load(tmp_path / "now.npz") as file:
        assert set(file.files) == set(arrays)


def test_runs_use_the_clients_of_a_table(use_toy: Use, tmp_path: Path, suite_home: Path) -> None:
    use_toy(random_graph(10))
    drawn = build("toy", "non-overlapping", 2, 5, PAPER)
    named = {**TOY, "partition_seed": 5, "split": PAPER}
    imported = install(table(tmp_path / "own.csv", ROWS), named=named)
    assert imported.kept.is_relative_to(suite_home)
    assert build("toy", "non-overlapping", 2, 5, PAPER).hash == imported.federation.hash != drawn.hash
    assert build("toy", "non-overlapping", 2, 6, PAPER).hash != imported.federation.hash
    imported.kept.unlink()
    assert build("toy", "non-overlapping", 2, 5, PAPER).hash == drawn.hash


def test_the_default_request_is_the_data_sets(use_toy: Use, tmp_path: Path) -> None:
    kind = use_toy(random_graph(10))
    request = install(table(tmp_path / "own.csv", ROWS), named=TOY).request
    assert (request.dataset, request.scenario, request.clients) == ("toy", "non-overlapping", 2)
    assert (request.partition_seed, request.split) == (kind.protocol.partition_seed, kind.protocol.split)


def test_what_clients_hold_is_counted_by_hand() -> None:
    def client(ids: list[int], roles: list[int]) -> Client:
        nothing = np.zeros(len(ids), np.int64)
        return Client(np.array(ids), nothing, np.array(roles, np.int8), np.zeros((len(ids), 1), np.float32))

    clients = (
        client([0, 1, 2, 3], [TRAIN, TRAIN, VALIDATION, UNUSED]),
        client([1, 5], [TRAIN, TEST]),
        client([1, 2, 6], [TRAIN, VALIDATION, TRAIN]),
    )
    counted = holdings(Federation("toy", "overlapping", "graph", 1, clients, ""), 9)
    assert (counted.clients, counted.sizes) == (3, (2, 4))
    assert counted.items == {"train": 3, "val": 1, "test": 1, "unused": 1}
    assert counted.held == 6
    assert counted.unheld == 3  # 4, 7 and 8
    assert counted.shared == 2  # 1 and 2
    assert counted.without == {"train": 0, "val": 1, "test": 2}
    assert counted.shares == pytest.approx({"train": 50, "val": 100 / 6, "test": 100 / 6, "unused": 100 / 6})


# --- what is refused -----------------------------------------------------------------------------


def row(place: int, *values: str) -> list[tuple[str, ...]]:
    """The rows with another one at a place."""
    return [*ROWS[:place], values, *ROWS[place + 1 :]]


WRONG_TABLES: dict[str, tuple[list[tuple[str, ...]], str]] = {
    "unknown item": (row(1, "0", "10", "val"), "10"),
    "negative item": (row(1, "0", "-1", "val"), "-1"),
    "huge item": (row(1, "0", "9" * 18, "val"), "9" * 18),
    "enormous item": (row(1, "0", "9" * 40, "val"), "line 3"),
    "item twice": ([*ROWS, ("1", "5", "train")], "client 1 has an item twice"),
    "item in two roles": ([*ROWS, ("1", "5", "test")], "train at client 1 and test at client 1"),
    "two clients share an item": ([*ROWS, ("1", "4", "train")], "shares an item"),
    "no training item": (row(3, "1", "5", "val"), "client 1"),
    "no validation item at all": (row(1, "0", "2", "unused"), "no client has a val item"),
    "unknown role": (row(2, "0", "3", "valid"), "'valid'"),
    "role in capitals": (row(2, "0", "3", "Test"), "'Test'"),
    "item with a fraction": (row(2, "0", "3.0", "test"), "'3.0'"),
    "item in words": (row(2, "0", "three", "test"), "'three'"),
    "item underlined": (row(2, "0", "1_0", "test"), "'1_0'"),
    "no item": (row(2, "0", "", "test"), "line 4"),
    "short row": (row(2, "0"), "line 4"),
    "client in words": (row(2, "a", "3", "test"), "'a'"),
    "negative client": (row(2, "-1", "3", "test"), "client -1"),
    "client left out": (row(6, "3", "6", ""), "client 2"),
    "distant client": (row(6, "9" * 18, "6", ""), "client 2"),
    "clients counted from 1": ([(str(int(c) + 1), *rest) for c, *rest in ROWS], "client 0"),
    "no rows": ([], "got none"),
}


def refusal(capsys: Capture, file: Path, *options: str) -> str:
    """The line with which the command refuses the file."""
    with pytest.raises(SystemExit) as ended:
        main(["data", "import", str(file), *options])
    printed = capsys.readouterr()
    assert ended.value.code == 2
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert "Traceback" not in printed.err
    return printed.err


OPTIONS = ("-d", "toy", "-s", "non-overlapping")


@pytest.mark.parametrize("case", WRONG_TABLES)
def test_wrong_tables_are_refused_in_one_line(
    case: str, use_toy: Use, tmp_path: Path, suite_home: Path, capsys: Capture
) -> None:
    use_toy(random_graph(10))
    rows, word = WRONG_TABLES[case]
    file = table(tmp_path / "own.csv", rows)
    before = everything_in(tmp_path)
    line = refusal(capsys, file, *OPTIONS)
    assert word in line
    assert str(file) in line or "client 1" in line
    assert everything_in(tmp_path) == before


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n",
        b"client,item\n0,1\n",
        b"client;item;role\n0;1;train\n",
        b"0,1,train\n",
        b"client,item,role\n0,\xff,train\n",
        b"client,item,role\n0,\x00,train\n",
        b'client,item,role\n0,"1,train\n',
        b"PK\x03\x04",
    ],
)
def test_files_that_are_no_such_table_are_refused(
    content: bytes, use_toy: Use, tmp_path: Path, suite_home: Path, capsys: Capture
) -> None:
    use_toy(random_graph(10))
    file = tmp_path / "own.csv"
    file.write_bytes(content)
    assert str(file) in refusal(capsys, file, *OPTIONS)
    assert not suite_home.exists()


BARE = {
    "nodes": np.array([4, 2, 3, 6, 5, 0, 7]),
    "nodes_offsets": np.array([0, 4, 7]),
    "train_mask": np.array([1, 0, 0, 0, 1, 0, 0], bool),
    "val_mask": np.array([0, 1, 0, 0, 0, 0, 0], bool),
    "test_mask": np.array([0, 0, 1, 0, 0, 0, 1], bool),
}
"""The clients of ``ROWS`` as arrays."""

WRONG_ARRAYS: dict[str, tuple[dict[str, Any], str]] = {
    "unknown item": ({"nodes": np.array([4, 2, 3, 6, 5, 0, 10])}, "10"),
    "item twice": ({"nodes": np.array([4, 2, 3, 2, 5, 0, 7])}, "twice: 2"),
    "float items": ({"nodes": BARE["nodes"] / 1.0}, "float64"),
    "masks overlap": ({"val_mask": BARE["test_mask"]}, "overlaps another mask at item 3"),
    "no training item": ({"train_mask": BARE["train_mask"] & (BARE["nodes"] < 5)}, "client 1"),
    "no test item at all": ({"test_mask": np.zeros(7, bool)}, "no client has a test item"),
    "mask of the whole data set": ({"train_mask": np.zeros(10, bool)}, "'train_mask' has 10 entries"),
    "mask of numbers": ({"train_mask": BARE["train_mask"].astype(int)}, "'train_mask' has type"),
    "no mask": ({"test_mask": None}, "'test_mask' is missing"),
    "no offsets": ({"nodes_offsets": None}, "'nodes_offsets' is missing"),
    "no items": ({"nodes": np.zeros(0, int)}, "must rise from 0 to 0"),
    "other scenario": ({"scenario": np.array("overlapping")}, "overlapping there"),
    "other data set": ({"dataset": np.array("cora")}, "cora there"),
    "other labels": ({"labels": np.full(7, 3)}, "'labels' are not those"),
    "other hash": ({"hash": np.array("0" * 64)}, "its hash is"),
}


def test_the_arrays_are_the_rows(use_toy: Use, tmp_path: Path) -> None:
    use_toy(random_graph(10))
    np.savez(tmp_path / "own.npz", **BARE)
    from_rows = install(table(tmp_path / "own.csv", ROWS), named=TOY).federation
    assert install(tmp_path / "own.npz", named=TOY).federation.hash == from_rows.hash


@pytest.mark.parametrize("case", WRONG_ARRAYS)
def test_wrong_arrays_are_refused_in_one_line(
    case: str, use_toy: Use, tmp_path: Path, suite_home: Path, capsys: Capture
) -> None:
    use_toy(random_graph(10))
    changes, word = WRONG_ARRAYS[case]
    arrays = {name: array for name, array in (BARE | changes).items() if array is not None}
    np.savez(tmp_path / "own.npz", **arrays)
    assert word in refusal(capsys, tmp_path / "own.npz", *OPTIONS)
    assert not suite_home.exists()


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (("-s", "non-overlapping"), "--dataset"),
        (("-d", "toy"), "--scenario"),
        (("-d", "toi", "-s", "non-overlapping"), "'toi'"),
        (("-d", "toy", "-s", "nonoverlapping"), "'nonoverlapping'"),
        (("-d", "toy", "-s", "dirichlet0.1"), "images"),
        (("-d", "toy", "-s", "overlapping"), "multiple"),
        ((*OPTIONS, "-k", "3"), "2 there, 3 here"),
        ((*OPTIONS, "--partition-seed", "-1"), "partition-seed"),
        ((*OPTIONS, "--split", "50", "50", "50"), "add up to 100"),
    ],
)
def test_requests_that_do_not_fit_the_file_are_refused(
    options: tuple[str, ...],
    word: str,
    use_toy: Use,
    tmp_path: Path,
    suite_home: Path,
    capsys: Capture,
) -> None:
    use_toy(random_graph(10))
    assert word in refusal(capsys, table(tmp_path / "own.csv", ROWS), *options)
    assert not suite_home.exists()


def test_clients_that_no_class_can_be_learned_from_are_refused(use_toy: Use, tmp_path: Path) -> None:
    data = random_hypergraph(30)
    assert isinstance(data, Hypergraph)
    use_toy(data)
    learned = np.flatnonzero(data.labels != 2)
    rows = [(str(i % 2), str(item), ("train", "val", "test")[i // 2 % 3]) for i, item in enumerate(learned)]
    with pytest.raises(RequestError, match="class 2"):
        install(table(tmp_path / "own.csv", rows), named={**TOY, "scenario": "label-dirichlet"})


# --- what is said --------------------------------------------------------------------------------


def said(capsys: Capture, file: Path, *options: str) -> str:
    with pytest.raises(SystemExit) as ended:
        main(["data", "import", str(file), *options])
    assert ended.value.code == 0
    return capsys.readouterr().out


def test_the_command_says_what_it_made_of_a_file(use_toy: Use, tmp_path: Path, capsys: Capture) -> None:
    use_toy(random_graph(10))
    file = table(tmp_path / "own.csv", ROWS)
    out = said(capsys, file, *OPTIONS, "--split", "30", "15", "30")
    expected = install(file, named=TOY).federation
    assert expected.hash in out
    assert "3 to 4 a client, 7 in all (2 train, 1 val, 2 test, 2 unused)" in out
    assert "no client: 3; by several: 0" in out
    assert "1 val" in out.partition("lack items")[2]
    assert "protocol.split=[30,15,30]" in out
    assert "note:" not in out


def test_roles_that_are_not_those_of_the_split_are_said(
    use_toy: Use, tmp_path: Path, capsys: Capture
) -> None:
    use_toy(random_graph(10))
    out = said(capsys, table(tmp_path / "own.csv", ROWS), *OPTIONS, "--split", "60", "20", "20")
    assert "note:" in out
    assert "29 % train" in out  # 2 of 7


# --- the published clients of Cora ---------------------------------------------------------------


@pytest.mark.parametrize(("clients", "edges", "coefficient"), [(10, 8908, 0.2591), (20, 8432, 0.2630)])
def test_published_clients_of_cora_can_be_imported(
    clients: int, edges: int, coefficient: float, tmp_path: Path
) -> None:
    if not PUBLISHED.exists():
        pytest.skip("the published partitions of Cora do not lie beside this repository")
    with np.load(PUBLISHED) as file:
        part, role = file[f"part_{clients}"].astype(np.int64), file[f"role_{clients}"]
    order = np.argsort(part, kind="stable")
    masks = {f"{name}_mask": role[order] == number for number, name in enumerate(("train", "val", "test"))}
    offsets = np.concatenate([[0], np.cumsum(np.bincount(part))])
    np.savez(tmp_path / "cora.npz", nodes=order, nodes_offsets=offsets, **masks)
    rows = [(str(part[node]), str(node), ("train", "val", "test")[role[node]]) for node in range(len(part))]
    split = (20.0, 40.0, 40.0)
    named = {**TOY, "dataset": "cora", "clients": clients, "partition_seed": 1234, "split": split}
    imported = install(tmp_path / "cora.npz", named=named)
    federation = imported.federation
    assert install(table(tmp_path / "cora.csv", rows), named=named).federation.hash == federation.hash
    assert build("cora", "non-overlapping", clients, 1234, split).hash == federation.hash
    assert (imported.holdings.unheld, imported.holdings.shared, imported.off_split) == (0, 0, False)
    graph = prepare("cora").data
    assert isinstance(graph, Graph)
    assert sum(client.edges.shape[1] for client in federation.clients if client.edges is not None) == edges
    means = [clustering(c.edges, len(c.ids)) for c in federation.clients if c.edges is not None]
    assert np.mean(means) == pytest.approx(coefficient, abs=5e-5)
