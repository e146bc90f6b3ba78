from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from toy_data import random_graph, random_hypergraph, random_images

from bench.data import Data
from bench.dataset import Dataset
from bench.errors import RequestError
from bench.federation.build import assemble, build
from bench.federation.exchange import export_federation, install
from bench.federation.prepared import prepare
from bench.federation.scenario import Assignment
from bench.federation.types import TEST, TRAIN, VALIDATION, Federation

PAPER = (40.0, 30.0, 30.0)
Use = Callable[..., type[Dataset]]


def contents(path: Path) -> dict[str, np.ndarray[Any, Any]]:
    with np.load(path, allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def rewrite(path: Path, **changes: Any) -> None:
    """Write the file again with other arrays; None leaves one out."""
    arrays = contents(path) | changes
    np.savez(path, **{name: array for name, array in arrays.items() if array is not None})


@pytest.fixture
def exported(use_toy: Use, tmp_path: Path) -> tuple[Federation, Path]:
    use_toy(random_graph(60))
    federation = build("toy", "non-overlapping", 4, 1, PAPER)
    export_federation(federation, tmp_path / "toy.npz")
    return federation, tmp_path / "toy.npz"


def test_the_file_holds_ids_edges_and_masks_as_documented(exported: tuple[Federation, Path]) -> None:
    federation, path = exported
    file = contents(path)
    assert (file["dataset"].item(), file["scenario"].item()) == ("toy", "non-overlapping")
    assert (file["format"].item(), file["partition_seed"].item()) == (1, 1)
    assert file["split"].tolist() == [40, 30, 30]
    assert file["hash"].item() == federation.hash
    for number, client in enumerate(federation.clients):
        nodes = slice(*file["nodes_offsets"][number : number + 2])
        edges = slice(*file["edges_offsets"][number : number + 2])
        assert file["nodes"][nodes].tolist() == client.ids.tolist()
        assert file["labels"][nodes].tolist() == client.labels.tolist()
        assert np.array_equal(file["edges"][:, edges], client.edges)
        for mask, role in (("train_mask", TRAIN), ("val_mask", VALIDATION), ("test_mask", TEST)):
            assert file[mask][nodes].tolist() == (client.roles == role).tolist()


@pytest.mark.parametrize(
    ("data", "scenario", "clients", "split"),
    [
        (random_graph(60), "non-overlapping", 4, PAPER),
        (random_graph(60), "overlapping", 10, PAPER),
        (random_graph(60), "non-overlapping", 2, (20.0, 20.0, 20.0)),
        (random_graph(60), "non-overlapping", 1, PAPER),
        (random_hypergraph(80), "label-dirichlet", 3, (10, 20, 40)),
        (random_images(100), "dirichlet0.5", 5, (70, 10, 20)),
    ],
    ids=lambda value: str(value) if isinstance(value, str) else "",
)
def test_an_exported_federation_comes_back(
    use_toy: Use, tmp_path: Path, data: Data, scenario: str, clients: int, split: tuple[float, float, float]
) -> None:
    use_toy(data)
    federation = build("toy", scenario, clients, 3, split)
    export_federation(federation, tmp_path / "file.npz")
    again = install(tmp_path / "file.npz").federation
    assert again.hash == federation.hash
    assert again.provenance["made"] == "imported"
    for one, two in zip(federation.clients, again.clients, strict=True):
        assert np.array_equal(one.ids, two.ids)
        assert np.array_equal(one.roles, two.roles)
        assert np.array_equal(one.features, two.features)


def test_runs_of_the_request_use_the_installed_clients(use_toy: Use, tmp_path: Path) -> None:
    use_toy(random_graph(60))
    own, other = (build("toy", "non-overlapping", 4, seed, PAPER) for seed in (1, 2))
    assert own.hash != other.hash
    export_federation(other, tmp_path / "file.npz")
    rewrite(tmp_path / "file.npz", partition_seed=np.int64(1))
    imported = install(tmp_path / "file.npz")
    kept = imported.kept
    assert imported.federation.hash == other.hash
    assert build("toy", "non-overlapping", 4, 1, PAPER).hash == other.hash
    assert build("toy", "non-overlapping", 5, 1, PAPER).hash not in (own.hash, other.hash)
    assert build("toy", "non-overlapping", 4, 1, (30.0, 30.0, 40.0)).hash not in (own.hash, other.hash)
    kept.write_bytes(b"damaged")
    with pytest.raises(RequestError, match="import it again or delete it"):
        build("toy", "non-overlapping", 4, 1, PAPER)
    kept.unlink()
    assert build("toy", "non-overlapping", 4, 1, PAPER).hash == own.hash


def test_other_data_under_the_same_name_are_noticed(exported: tuple[Federation, Path], use_toy: Use) -> None:
    _, path = exported
    data = random_graph(60)
    use_toy(replace(data, features=data.features + np.float32(1)))
    with pytest.raises(RequestError, match="its hash is"):
        install(path)
    use_toy(replace(data, labels=(data.labels + 1) % data.classes))
    with pytest.raises(RequestError, match="'labels' are not those of the data set"):
        install(path)
    use_toy(random_graph(59))
    with pytest.raises(RequestError, match="unknown: items of toy must lie in 0 to 58"):
        install(path)


WRONG: dict[str, tuple[Callable[[dict[str, Any]], dict[str, Any]], str]] = {
    "no nodes": (lambda f: {"nodes": None}, "'nodes' is missing"),
    "no mask": (lambda f: {"val_mask": None}, "'val_mask' is missing"),
    "no edges": (lambda f: {"edges": None}, "'edges' and 'edges_offsets' go together"),
    "no edge offsets": (lambda f: {"edges_offsets": None}, "'edges' and 'edges_offsets' go together"),
    "samples": (lambda f: {"scenario": np.array("overlapping")}, "expected a multiple"),
    "newer format": (lambda f: {"format": np.int64(2)}, "format 1 expected, got 2"),
    "float ids": (lambda f: {"nodes": f["nodes"].astype(float)}, "'nodes' has type float64"),
    "text in a mask": (lambda f: {"train_mask": f["train_mask"].astype(str)}, "'train_mask' has type"),
    "matrix of ids": (lambda f: {"nodes": f["nodes"][None]}, "'nodes' has type int64 and 2 dimensions"),
    "data set": (lambda f: {"dataset": np.array("toi")}, "unknown dataset 'toi': did you mean 'toy'"),
    "scenario": (lambda f: {"scenario": np.array("metis")}, "unknown scenario 'metis'"),
    "scenario's family": (lambda f: {"scenario": np.array("dirichlet1")}, "is for images data"),
    "other scenario": (lambda f: {"scenario": np.array("label-dirichlet")}, "its hash is"),
    "seed": (lambda f: {"partition_seed": np.int64(-1)}, "partition seed is -1"),
    "split": (lambda f: {"split": np.array([50.0, 50.0, 50.0])}, "add up to 100"),
    "two shares": (lambda f: {"split": np.array([50.0, 50.0])}, "'split' has 2 entries"),
    "provenance": (lambda f: {"provenance": np.array("{")}, "not a JSON object"),
    "provenance list": (lambda f: {"provenance": np.array("[1]")}, "not a JSON object"),
    "hash": (lambda f: {"hash": np.array("0" * 64)}, "its hash is 0000"),
    "id too large": (lambda f: {"nodes": f["nodes"] + 1}, "must lie in 0 to 59"),
    "id negative": (lambda f: {"nodes": f["nodes"] - 1}, "must lie in 0 to 59"),
    "id twice": (lambda f: {"nodes": np.concatenate([f["nodes"][:1], f["nodes"][:-1]])}, "an item twice"),
    "shared": (lambda f: {"nodes": np.concatenate([f["nodes"][:-1], f["nodes"][:1]])}, "shares an item"),
    "short labels": (lambda f: {"labels": f["labels"][1:]}, "'labels' has 59 entries, expected 60"),
    "short mask": (lambda f: {"test_mask": f["test_mask"][1:]}, "'test_mask' has 59 entries"),
    "two roles": (lambda f: {"val_mask": f["train_mask"]}, "overlaps another mask"),
    "roles moved": (lambda f: {"train_mask": f["val_mask"], "val_mask": f["train_mask"]}, "its hash is"),
    "offsets start": (lambda f: {"nodes_offsets": f["nodes_offsets"] + 1}, "must rise from 0 to 60"),
    "offsets fall": (lambda f: {"nodes_offsets": f["nodes_offsets"][[0, 2, 1, 3, 4]]}, "must rise"),
    "offsets end": (lambda f: {"nodes_offsets": f["nodes_offsets"][:-1]}, "must rise"),
    "no clients": (lambda f: {"nodes_offsets": np.zeros(1, np.int64)}, "must rise"),
    "empty client": (
        lambda f: {"nodes_offsets": np.insert(f["nodes_offsets"], 1, 0)},
        "client 0 has no items",
    ),
    "merged clients": (
        lambda f: {"nodes_offsets": np.delete(f["nodes_offsets"], 1)},
        "'edges' are not those",
    ),
    "edge dropped": (lambda f: {"edges": f["edges"][:, 1:]}, "'edges_offsets' must rise"),
    "edge changed": (lambda f: {"edges": f["edges"][::-1]}, "'edges' are not those"),
    "edge rows": (lambda f: {"edges": f["edges"][:1]}, "'edges' has 1 rows"),
    "pickle": (lambda f: {"nodes": np.array([{}], object)}, "without pickled objects"),
}


@pytest.mark.parametrize("case", WRONG)
def test_whatever_is_wrong_in_a_file_is_named(exported: tuple[Federation, Path], case: str) -> None:
    _, path = exported
    change, message = WRONG[case]
    rewrite(path, **change(contents(path)))
    with pytest.raises(RequestError, match=message) as caught:
        install(path)
    assert "\n" not in str(caught.value)


def test_an_overlapping_node_has_one_role(use_toy: Use, tmp_path: Path) -> None:
    use_toy(random_graph(60))
    path = tmp_path / "file.npz"
    export_federation(build("toy", "overlapping", 5, 1, PAPER), path)
    file = contents(path)
    nodes, counts = np.unique(file["nodes"][file["test_mask"]], return_counts=True)
    leak = np.flatnonzero(file["nodes"] == nodes[counts > 1][0])[0]
    file["test_mask"][leak], file["train_mask"][leak] = False, True
    rewrite(path, **file)
    with pytest.raises(RequestError, match="in another role"):
        install(path)


def test_a_client_without_training_nodes_is_refused(
    exported: tuple[Federation, Path], tmp_path: Path
) -> None:
    federation, _ = exported
    roles = [client.roles.copy() for client in federation.clients]
    roles[2][roles[2] == TRAIN] = VALIDATION
    assignment = Assignment(tuple(client.ids for client in federation.clients), tuple(roles))
    idle = assemble(prepare("toy"), "non-overlapping", assignment, federation.provenance)
    export_federation(idle, tmp_path / "idle.npz")
    with pytest.raises(RequestError, match=r"client 2 .*to train on"):
        install(tmp_path / "idle.npz")


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"\x93NUMPY", b"\x80\x04.", b"text"])
def test_files_that_are_no_archives_are_refused(use_toy: Use, tmp_path: Path, content: bytes) -> None:
    use_toy(random_graph(40))
    (tmp_path / "file.npz").write_bytes(content)
    with pytest.raises(RequestError, match="not a readable NPZ archive"):
        install(tmp_path / "file.npz")


def test_a_single_array_is_no_federation(use_toy: Use, tmp_path: Path) -> None:
    use_toy(random_graph(40))
    with (tmp_path / "file.npz").open("wb") as file:
        np.save(file, np.arange(3))
    with pytest.raises(RequestError, match="not a readable NPZ archive"):
        install(tmp_path / "file.npz")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=r"none\.npz: expected a file with"):
        install(tmp_path / "none.npz")


def test_a_refused_file_installs_nothing(exported: tuple[Federation, Path], suite_home: Path) -> None:
    _, path = exported
    rewrite(path, hash=np.array("0" * 64))
    before = sorted(suite_home.rglob("*"))
    with pytest.raises(RequestError):
        install(path)
    assert sorted(suite_home.rglob("*")) == before


def test_an_export_into_nowhere_is_refused(exported: tuple[Federation, Path], tmp_path: Path) -> None:
    federation, _ = exported
    with pytest.raises(RequestError, match="cannot write"):
        export_federation(federation, tmp_path / "nowhere" / "file.npz")
    assert not (tmp_path / "nowhere").exists()


@settings(deadline=None, max_examples=150, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_damaged_bytes_are_refused_or_change_nothing(
    exported: tuple[Federation, Path], data: st.DataObject
) -> None:
    federation, path = exported
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    if data.draw(st.booleans()):
        content = content[: data.draw(st.integers(0, len(content)))]
    damaged = path.with_name("damaged.npz")
    damaged.write_bytes(content)
    try:
        assert install(damaged).federation.hash == federation.hash
    except RequestError as error:
        assert "\n" not in str(error)  # noqa: PT017 - both outcomes are right


@settings(deadline=None, max_examples=150, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_changed_numbers_are_refused(exported: tuple[Federation, Path], data: st.DataObject) -> None:
    _, path = exported
    arrays = contents(path)
    name = data.draw(
        st.sampled_from(["nodes", "nodes_offsets", "labels", "edges", "edges_offsets", "train_mask"])
    )
    array = arrays[name].copy()
    at = data.draw(st.integers(0, array.size - 1))
    if array.dtype == bool:
        array[at] = not array[at]
    else:
        array.reshape(-1)[at] += data.draw(st.sampled_from([-(2**40), -1, 1, 2, 2**62]))
    changed = path.with_name("changed.npz")
    np.savez(changed, **(arrays | {name: array}))
    with pytest.raises(RequestError):
        install(changed)
