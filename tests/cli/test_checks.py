"""``bench check-method``: what is wrong with a file is said. ``bench speed``: rows, and what it refuses."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from toy_data import CIRCLE

from bench import registry
from bench.contract.rules import RULES

from .conftest import Bench

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "clustered.py"

HEAD = '''
import torch
from bench.engine.method import Message, Method, Update
from bench.methods.fedavg import FedAvg
from bench.federation.types import TRAIN


class Own(FedAvg):
    """FedAvg with something wrong."""

    name = "{name}"
    title = "Own"
    stage = "trained"
    families = ("graph",)  # one of those that its parent runs on takes half the time of both

'''

pytestmark = pytest.mark.usefixtures("plugins")


@pytest.mark.slow
def test_the_example_keeps_every_rule(bench: Bench) -> None:
    code, out, _ = bench(f"check-method {EXAMPLE}")
    lines = " ".join(out.split())
    assert (code, lines.count(" ok "), "mend" in out) == (0, 2 * len(RULES), False), out  # graphs and images
    assert len(EXAMPLE.read_text().splitlines()) <= 60


def test_what_is_wrong_is_said_once(tmp_path: Path, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    file = tmp_path / "own_once.py"
    body = "\n    def setup_server(self):\n        raise ValueError('the only\\nproblem')\n"
    file.write_text(HEAD.format(name="own_once") + body)
    code, out, _ = bench(f"check-method {file}")
    words = " ".join(out.split())
    assert code == 1
    assert re.search(r"ValueError in own_once.py, line \d+", words)
    assert words.count("the only problem") == 1
    assert out.count("the same") > 5
    assert max(map(len, out.splitlines())) < 60 + len(str(file.name))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import sys\nsys.exit(3)\n", "own.py cannot be imported: SystemExit in line 2: 3"),
        ("from bench.methods.fedavg import FedAvg\n", "holds no method"),
        (
            HEAD.format(name="spoken") + '    families = ("speech",)\n',
            "spoken runs on speech data: the contract is checked on graph, hypergraph or images",
        ),
    ],
)
def test_a_file_that_cannot_be_checked_is_refused(
    text: str, message: str, tmp_path: Path, bench: Bench
) -> None:
    file = tmp_path / "own.py"
    file.write_text(text)
    ended = bench(f"check-method {file}")
    assert ended.refused
    assert message in ended.err


# bench speed --------------------------------------------------------------------------------------


@pytest.fixture
def circle(plugins: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "circle.py").write_text(CIRCLE)
    monkeypatch.setenv(registry.PLUGINS, str(tmp_path / "circle.py"))
    registry.forget()


@pytest.mark.slow
def test_rounds_are_timed(bench: Bench) -> None:
    out = bench("speed -d cora -k 10 -m fedavg --rounds 1").out
    assert "Cora, non-overlapping" in out
    assert "fedavg" in out


@pytest.mark.usefixtures("circle")
@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        ("-m nope", "unknown method 'nope'"),
        ("--devices tpu", "'tpu'"),
        ("-d circle -m fedavg -k 2 --rounds 5", "which has 6; got 5"),
    ],
)
def test_a_wrong_request_for_speed_is_one_line(
    request_: str, reason: str, monkeypatch: pytest.MonkeyPatch, bench: Bench
) -> None:
    monkeypatch.setattr("bench.timing.speed.apart", lambda work, case: work(case))
    ended = bench("speed", request_)
    assert ended.refused
    assert reason in ended.err
