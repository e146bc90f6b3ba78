"""``bench check-method`` and ``doctor``: what is wrong is said. ``bench speed``: rows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bench.contract.rules import RULES

from .conftest import Bench

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "clustered.py"

WRONG = '''
from bench.methods.fedavg import FedAvg


class Own(FedAvg):
    """FedAvg with something wrong."""

    name, title = "own_once", "Own"
    families = ("graph",)  # one of those that its parent runs on takes half the time of both

    def setup_server(self):
        raise ValueError("the only\\nproblem")
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
    file.write_text(WRONG)
    code, out, _ = bench(f"check-method {file}")
    words = " ".join(out.split())
    assert code == 1
    assert re.search(r"ValueError in own_once.py, line \d+", words)
    assert words.count("the only problem") == 1
    assert out.count("the same") > 5
    assert max(map(len, out.splitlines())) < 60 + len(str(file.name))


@pytest.mark.slow
def test_rounds_are_timed(bench: Bench) -> None:
    ended = bench("speed -d cora -k 10 -m fedavg -m fedcog --rounds 1")
    assert "Cora, non-overlapping" in ended.out
    assert "fedavg" in ended.out
    assert "fedcog" in ended.err  # needs hyperedges; what was measured is kept
    assert bench("speed -d cora -k 10 -m fedcog --rounds 1").refused


def test_a_fresh_installation_has_nothing_to_fix(home: Path, bench: Bench) -> None:
    ended = bench("doctor")
    out = " ".join(ended.out.split())
    assert ended.code == 0
    assert out.endswith("nothing to fix")
    assert "torch 2." in out
    assert re.search("ok data not at hand: [^:]* dblp4k", out)
    assert re.search("ok data embedded: [^:]* cora,", out)
    assert not home.exists()  # an examination leaves nothing behind


@pytest.mark.parametrize(
    ("file", "words"), [("home/bench.db", "fix database"), ("home", "set BENCH_HOME to a folder")]
)
def test_a_database_or_a_home_that_is_none_is_to_be_fixed(
    file: str, words: str, tmp_path: Path, bench: Bench
) -> None:
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_text("no database at all")
    ended = bench("doctor")
    assert ended.code == 1
    assert words in " ".join(ended.out.split())
