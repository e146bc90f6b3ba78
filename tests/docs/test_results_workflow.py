"""The workflow for submitted results: its steps, run as plain commands on a small bundle."""

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
import yaml  # type: ignore[import-untyped]

ROOT = Path(__file__).parents[2]


def steps() -> list[str]:
    """The commands of the job, in order, but for the installation."""
    workflow = yaml.safe_load((ROOT / ".github/workflows/results.yml").read_text(encoding="utf-8"))
    assert "pull_request" in workflow[True]  # YAML reads the key 'on' as true
    assert workflow["permissions"] == {"contents": "read"}  # it runs what strangers send
    (job,) = workflow["jobs"].values()
    return [step["run"] for step in job["steps"] if "run" in step and "pip install" not in step["run"]]


@pytest.mark.slow
@pytest.mark.timeout(900)  # a whole site is built
def test_a_bundle_is_imported_made_again_and_shown(tmp_path: Path) -> None:
    home, repository = tmp_path / "home", tmp_path / "repository"
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "OMP_NUM_THREADS": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
    }

    def run(*command: str, **more: str) -> str:
        return subprocess.run(
            command, cwd=repository, env={**environment, **more}, check=True, capture_output=True, text=True
        ).stdout

    def commit() -> str:
        run("git", "add", "--all")
        run("git", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "-m", "results")
        return run("git", "rev-parse", "HEAD").strip()

    old = repository / "results/measured/old/bundle.json"
    old.parent.mkdir(parents=True)
    run("git", "init", "--quiet")
    old.write_text("{}\n")
    base = commit()
    short = ["-d", "cora", "-k", "10", "-m", "majority", "--seed", "0-2"]
    run("bench", "sweep", *short, BENCH_HOME=str(home / "submitter"))
    run("bench", "export", "--out", "results/measured/mine", BENCH_HOME=str(home / "submitter"))
    commit()

    for step in steps():
        run("bash", "-eo", "pipefail", "-c", step, BENCH_HOME=str(home / "reviewer"), BASE=base)

    assert old.exists()  # a bundle that was there before is none of the submitted
    runs = json.loads(run("bench", "runs", "list", "--json", BENCH_HOME=str(home / "reviewer")))
    assert len(runs) == 3
    assert (repository / "site/index.html").exists()
    with closing(sqlite3.connect(home / "reviewer" / "bench.db")) as database:
        assert database.execute("select name, state from bundles").fetchall() == [("mine", "verified")]
