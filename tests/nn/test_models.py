"""Client models by name, those of plug-in files among them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from toy_federations import make_spec

from bench import registry
from bench.cli.main import main
from bench.engine.execute import run
from bench.federation.types import Federation

PLUGIN = """
from bench.nn.gcn import GCN

class Renamed(GCN):
    name = "renamed"
"""


@pytest.fixture(autouse=True)
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A file that adds the client model ``renamed``, a GCN."""
    file = tmp_path / "own_model.py"
    file.write_text(PLUGIN)
    monkeypatch.setenv("BENCH_HOME", str(tmp_path / "home"))
    monkeypatch.setenv(registry.PLUGINS, str(file))
    registry.forget()
    yield
    os.environ[registry.PLUGINS] = ""
    registry.forget()


def test_a_client_model_of_a_file_trains_as_one_of_the_suite(federation: Federation) -> None:
    own, suite = (
        run(make_spec("fedavg", federation, rounds=2, client={"model": name}), federation)
        for name in ("renamed", "gcn")
    )
    assert own.state == suite.state == "done"
    assert own.correct
    for key, counts in suite.correct.items():
        assert np.array_equal(own.correct[key], counts)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("-d cifar10 -s dirichlet0.5 --set client.model=renamed", ("renamed", "graph", "cifar10", "images")),
        ("-d coraca -s label-dirichlet0.5 --set client.model=renamed", ("renamed", "coraca", "hypergraph")),
        ("-d cora -s non-overlapping --set client.model=renamd", ("renamd", "'renamed'")),
    ],
)
def test_one_that_does_not_fit_the_data_is_refused_in_one_line(
    asked: str, expected: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["sweep", "-k", "4", "-m", "local", *asked.split()])
    error = capsys.readouterr().err
    assert ended.value.code == 2
    assert error.count("\n") == 1
    assert all(word in error for word in expected)
    assert not (tmp_path / "home").exists()
