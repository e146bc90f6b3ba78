"""How the program starts and ends, and the wrong requests of every command."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import IO

import pytest
from stored_runs import database, done, spec_of
from toy_data import CIRCLE

from bench import registry

from .conftest import Bench

FULL = Path("/dev/full")


def called(words: str, output: IO[str] | int) -> tuple[int, str]:
    """Exit code and standard error of a process that writes into ``output``."""
    code = f"from bench.cli.main import main; main({words.split()})"
    command = [sys.executable, "-c", code]
    process = subprocess.run(command, stdout=output, stderr=subprocess.PIPE, text=True, check=False)
    return process.returncode, process.stderr


@pytest.mark.skipif(not FULL.exists(), reason="this system has no device that is always full")
def test_a_full_disk_is_one_line_and_exit_code_1() -> None:
    with FULL.open("w") as output:
        code, error = called("grids", output)
    assert (code, error.startswith("bench: "), error.count("\n")) == (1, True, 1)


@pytest.mark.parametrize("words", ["runs status", "sweep --help"])
def test_a_reader_that_goes_away_is_no_failure(words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    read_end, write_end = os.pipe()
    os.close(read_end)
    assert called(words, write_end) == (0, "")
    os.close(write_end)


INTERRUPTED = """
import sys

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[1]:
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupting())
from bench.cli.main import main
main(["runs", "list"])
"""


@pytest.mark.parametrize("module", ["cyclopts", "sqlalchemy"])
def test_an_interrupt_while_modules_are_imported_is_one_line(module: str, home: Path) -> None:
    process = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, module], capture_output=True, text=True, check=False
    )
    assert (process.returncode, process.stderr.count("\n")) == (130, 1)


EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "clustered.py"

UNSPOKEN = """
from bench.methods.fedavg import FedAvg

class Spoken(FedAvg):
    name, title, families = "spoken", "Spoken", ("speech",)
"""

CORA = "sweep -d cora -k 3 --set protocol.rounds=2 -m local"
COMPARE = f"compare {EXAMPLE} --out {{new}}"
TUNE = "tune -d cora -k 3 --set protocol.rounds=2"

WRONG = [
    ("sweep --gird quickstart", "--grid"),
    ("sweep --grid quickstrat", "'quickstart'"),
    ("sweep --grid quickstart -d citeseer", "dataset in this grid"),
    ("sweep --grid paper_tables -d cora -s overlapping -k 10", "filters"),
    ("sweep -d cora", "--grid"),
    ("sweep -d cora -m fedvg", "'fedavg'"),
    ("sweep --grid quickstart --dry-run -k 10,x", "'x'"),
    ("sweep --grid quickstart --dry-run -k 0", "-k"),
    ("sweep --grid quickstart --dry-run -d cora,", "''"),
    *((f"sweep --grid quickstart --seed={word}", word) for word in ("-1", "3-1", "1.5")),
    (f"{CORA} --set rounds=3", "--set"),
    (f"{CORA} -k 100000", "100000"),
    (f"{CORA} -k 99 --set protocol.split=[1,49,50]", "to train on"),
    (f"{CORA} -s published -k 30", "5 clients"),
    (f"{CORA} --db mysql://x/y", "sqlite:///PATH"),
    (f"{CORA} --devices tpu", "--devices"),
    ("quickstart --out {other}", "thesis.tex"),
    ("runs list", "no database at"),
    ("runs list --state filed", "failed"),
    ("runs show 5 --db {db}", "no run 5"),
    ("runs show cora --db {db}", "DATASET/SCENARIO/CLIENTS/METHOD"),
    ("runs show cora/non-overlapping/11/local --db {db}", "no run of a cell"),
    ("db upgrade", "no database at"),
    ("export --db {db} --out {new} -m locl", "no run to export"),
    ("export --db {db} --out {new} -m local -s overlapping", "no run to export"),
    (f"{TUNE} -m majority", "majority"),
    (f"{TUNE} -m local --trials 0", "--trials"),
    (f"{TUNE} -m local --seed 3 --seed 1000", "--seed"),
    (f"{TUNE} -m local --set attack.ratio=0.4", "attacks"),
    (f"{COMPARE} -d cora --set protocol.rounds=8", "method.*"),
    (f"{COMPARE} -d cora --set method.temprature=8", "method.temprature"),
    (f"{COMPARE} -d coar", "'cora'"),
    (f"{COMPARE} -d cora -k 11", "10, 20"),
    (COMPARE, "--dataset"),
    ("report --out {file}", "no folder"),
    ("leaderboard build --out {other}", "thesis.tex"),
    ("leaderboard build --out {new} --db sqlite:////nowhere/bench.db --own", "nowhere"),
    ("leaderboard build --ouT x", "--ouT"),
    ("data export clients.npz -d cora -s non-overlapping", "--clients"),
    ("data fetch -d coar", "'cora'"),
    ("data fetch -d cora --data-root /nowhere", "/nowhere"),
    ("data stats -d cifar10", "no paper"),
    ("methods fedprxo", "'fedprox'"),
    ("check-method {exits}", "exits.py cannot be imported: SystemExit in line 2: 3"),
    ("check-method {file}", "holds no method"),
    ("check-method {spoken}", "speech"),
    ("speed -m nope", "'nope'"),
    ("speed --devices tpu", "'tpu'"),
    ("speed -d circle -m fedavg -k 2 --rounds 5", "has 6"),
]
"""Words, and some of those that refuse them. Names in braces are files of ``places``."""


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What a user has: an own folder, an own file, plug-ins, and a database with one run."""
    folder = tmp_path_factory.mktemp("places")
    (folder / "other").mkdir()
    files = {
        "other/thesis.tex": "mine",
        "file.py": "",
        "exits.py": "import sys\nsys.exit(3)\n",
        "spoken.py": UNSPOKEN,
        "circle.py": CIRCLE,
    }
    for name, text in files.items():
        (folder / name).write_text(text)
    found = {path.stem: str(path) for path in folder.iterdir()}
    return {**found, "new": str(folder / "new"), "db": database(folder / "bench.db", [(spec_of(), done())])}


@pytest.mark.usefixtures("plugins")
@pytest.mark.parametrize(("words", "message"), WRONG)
def test_a_wrong_request_is_one_line_and_writes_nothing(
    words: str,
    message: str,
    places: dict[str, str],
    home: Path,
    bench: Bench,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if "circle" in words:
        monkeypatch.setenv(registry.PLUGINS, places["circle"])
        registry.forget()
    monkeypatch.setattr("bench.timing.speed.apart", lambda work, case: work(case))
    monkeypatch.setattr("bench.studies.shipped.trusted_bundles", lambda folder: [])
    folder = Path(places["new"]).parent
    before = sorted(folder.rglob("*"))
    ended = bench(words.format(**places))
    assert ended.refused, ended
    assert message in ended.err
    assert sorted(folder.rglob("*")) == before
    assert {path.name for path in home.glob("*")} <= {"partitions"}
