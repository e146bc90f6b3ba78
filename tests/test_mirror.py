"""The test of ``bench/X/y.py`` is ``tests/X/test_y.py``; a leading ``_`` of a module is left out."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[1]

ELSEWHERE = {
    "test_frames.py": "the frames that bench itself offers: bench/frames/__init__.py",
    "test_image_path.py": "from a request to every client's results, on images",
    "test_imports.py": "every module: which may import which",
    "test_mirror.py": "every file of tests",
    "test_size.py": "every package: how large it may be",
    "test_platforms.py": "sweep and report where a system lacks signals and fork",
    "docs/test_links.py": "every page of the repository",
    "docs/test_results_workflow.py": ".github/workflows/results.yml",
    "engine/test_unread_rows.py": "rows that a client does not read, in bench/engine/local_training.py",
    "methods/test_objectives.py": "several methods: local objectives against plain descent",
    "methods/test_contract.py": "every method: the contract and its exceptions",
    "methods/test_hypergraph.py": "hypergraphs of clients in methods/_completion.py",
    "methods/test_limits.py": "several methods: the simpler ones that they become, and their initial models",
    "nn/test_graph_models.py": "gcn2 and sage: against layers of torch-geometric",
    "nn/test_image_models.py": "cnn and resnet: against torch's own layers",
    "site/test_boards.py": "the boards of bench/site/leaderboard.py",
    "site/test_browser.py": "the whole site in a real browser",
    "store/test_servers.py": "the store, claims and sweeps on a server",
    "runner/test_faults.py": "a sweep's processes, killed at every place",
    "tune/test_shipped.py": "the searches that come with the suite",
    "studies/test_experiment_files.py": "a study's files, from their lines to a report",
}
"""A file that checks something across modules -> what."""


def mirrored(test: Path) -> list[Path]:
    """Where the file may be that a test file is of."""
    folder, name = test.parts[0] if len(test.parts) > 1 else "", test.name.removeprefix("test_")
    if folder == "docs":
        return list((ROOT / "docs").glob(f"{test.stem.removeprefix('test_').replace('_', '[_-]')}.*"))
    if folder == "reports":
        return [ROOT / folder / test.stem.removeprefix("test_").removesuffix("_study") / "study.py"]
    home = ROOT if folder in ("methods", "datasets") else ROOT / "bench"
    return [home / test.with_name(name), home / test.with_name("_" + name)]


def test_every_test_file_mirrors_a_module_or_says_why_not() -> None:
    tests = {path.relative_to(ROOT / "tests") for path in (ROOT / "tests").rglob("test_*.py")}
    alone = {test.as_posix() for test in tests if not any(path.exists() for path in mirrored(test))}
    assert alone == set(ELSEWHERE)
