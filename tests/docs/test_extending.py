"""The examples of docs/extending.md: every command runs, and what it draws is what its text says."""

from __future__ import annotations

import re
import shlex
import sys
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from bench import registry
from bench.cli.main import main
from bench.federation.build import build
from bench.federation.types import SPLITS

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "docs" / "examples"
TEXT = (ROOT / "docs" / "extending.md").read_text()
BLOCKS = re.findall(r"```sh\n(.*?)```", TEXT, re.DOTALL)
SPLIT = (40.0, 30.0, 30.0)


pytestmark = pytest.mark.usefixtures("at_the_top")


def found_in(monkeypatch: pytest.MonkeyPatch, *files: Path) -> None:
    monkeypatch.setenv(registry.PLUGINS, ":".join(map(str, files)))
    registry.forget()


@pytest.mark.slow
@pytest.mark.parametrize("block", BLOCKS)
def test_commands_run(block: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for command in block.splitlines():
        words = shlex.split(command)
        while "=" in words[0]:
            name, _, value = words.pop(0).partition("=")
            monkeypatch.setenv(name, value)
        registry.forget()
        assert words.pop(0) == "bench"
        with pytest.raises(SystemExit) as end:
            main(words)
        assert end.value.code == 0


def test_the_data_set_is_what_its_files_say(monkeypatch: pytest.MonkeyPatch) -> None:
    found_in(monkeypatch, EXAMPLES / "friends.py")
    federation = build("friends", "non-overlapping", 1, 0, SPLIT, (EXAMPLES / "data",))
    (client,) = federation.clients
    rows = (EXAMPLES / "data/friends/people.csv").read_text().splitlines()[1:]
    pairs = (EXAMPLES / "data/friends/friendships.csv").read_text().splitlines()[1:]
    first = [float(value) for value in rows[0].split(",")[2:]]
    assert len(client.ids) == len(rows)
    assert client.edges is not None
    assert client.edges.shape[1] == 2 * len(pairs)
    assert np.asarray(client.features)[0].tolist() == first
    assert client.labels.tolist() == [int(row.split(",")[1]) for row in rows]


def test_pictures_are_those_of_their_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    found_in(monkeypatch, EXAMPLES / "shapes.py")
    federation = build("shapes", "pathological", 3, 0, SPLIT, (EXAMPLES / "data",))
    pixels = {item: image for c in federation.clients for item, image in zip(c.ids, c.features, strict=True)}
    labels = {item: label for c in federation.clients for item, label in zip(c.ids, c.labels, strict=True)}
    assert len(pixels) == sum(len(client.ids) for client in federation.clients) == 180
    with zipfile.ZipFile(EXAMPLES / "data/shapes/shapes.zip") as archive:
        for item, folder in ((0, "circle"), (60, "cross"), (179, "triangle")):
            assert labels[item] == ("circle", "cross", "triangle").index(folder)
            image = Image.open(archive.open(f"{folder}/{item % 60:02}.png"))
            red, green, blue = pixels[item][:, 3, 5]  # row 3, column 5
            assert image.getpixel((5, 3)) == (red, green, blue)


@pytest.mark.slow
def test_a_grid_of_ones_own_has_a_row_for_each_of_its_settings(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    found_in(monkeypatch, EXAMPLES / "clustered.py")
    grid = str(EXAMPLES / "own_grid.toml")
    out = str(tmp_path / "out")
    for command in (["sweep", "--grid", grid], ["report", "--own", "-d", "cora", "-k", "10", "--out", out]):
        with pytest.raises(SystemExit) as end:
            main(command)
        assert end.value.code == 0
    cells = pd.read_csv(tmp_path / "out" / "cells.csv")
    measured = cells[(cells["n"] == 2) & (cells["document"] == "table1")].set_index("method")["setting"]
    for method in ("local", "fedavg", "clustered"):
        assert "protocol.rounds=8" in measured[[method]].iloc[0]


def test_the_scenario_deals_every_node_once(monkeypatch: pytest.MonkeyPatch) -> None:
    found_in(monkeypatch, EXAMPLES / "iid.py")
    federation = build("cora", "iid", 7, 5, SPLIT)
    ids = np.concatenate([client.ids for client in federation.clients])
    sizes = [len(client.ids) for client in federation.clients]
    assert np.array_equal(np.sort(ids), np.arange(len(ids)))
    assert max(sizes) - min(sizes) <= 1
    counts = np.sum([[client.count(role) for role in range(len(SPLITS))] for client in federation.clients], 0)
    assert np.allclose(100 * counts / len(ids), SPLIT, atol=0.1)
    assert build("cora", "iid", 7, 5, SPLIT).hash == federation.hash
    assert build("cora", "iid", 7, 6, SPLIT).hash != federation.hash


def test_an_edited_scenario_draws_anew(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    text = (EXAMPLES / "iid.py").read_text()
    hashes = []
    for version in (text, text.replace('"partition", self.name', '"partition", "another"')):
        file.write_text(version)
        sys.modules.pop("bench_plugin_own", None)  # as a new process would
        found_in(monkeypatch, file)
        hashes.append(build("cora", "iid", 4, 5, SPLIT).hash)
    assert hashes[0] != hashes[1]
