"""What may be asked of a sweep, and what is refused before anything is imported for it."""

import re
from pathlib import Path
from typing import Literal

import pytest

from bench.cli.main import main
from bench.errors import RequestError
from bench.sweep.policy import Placement, check


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--address", "auto"], "--address goes with --backend ray"),
        (["--slurm", "partition=gpu"], "--slurm goes with --backend slurm"),
        (
            ["--backend", "slurm", "--address", "auto"],
            "--address goes with --backend ray, got --backend slurm",
        ),
        (["--backend", "ray", "--devices", "cuda:1"], "--devices expects cpu or cuda with --backend ray"),
        (["--backend", "slurm", "--jobs", "0"], 'value "0" for --jobs'),
        (["--backend", "slurm", "--slurm", "partition"], "'partition'"),
        (["--backend", "slurm", "--slurm", "=3"], "'=3'"),
        (["--backend", "slurm", "--slurm", "mem_gb="], "'mem_gb='"),
        (["--backend", "rya"], "rya"),
    ],
)
def test_what_does_not_go_together_is_refused_with_and_without_the_extras(
    options: list[str],
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("BENCH_HOME", str(tmp_path / "home"))
    with pytest.raises(SystemExit) as ended:
        main(["sweep", "-d", "cora", "-m", "local", *options])
    assert ended.value.code == 2
    assert words in capsys.readouterr().err
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize("engine", ["ray", "slurm"])
def test_a_missing_extra_is_named(engine: Literal["ray", "slurm"]) -> None:
    with pytest.raises(RequestError, match=re.escape(f"pip install 'pfl-bench[{engine}]'")) as caught:
        check(Placement(backend=engine), lambda name: None)
    assert "\n" not in str(caught.value)
