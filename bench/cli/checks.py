"""``bench check-method``, ``check-gpu``, ``doctor`` and ``speed``: find problems, and measure times."""

from __future__ import annotations

import inspect
import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from bench import paths
from bench.cli import options
from bench.cli.output import Screen, console, say, table
from bench.errors import NotApplicableError, RequestError

if TYPE_CHECKING:
    from bench.registry import Kind


def check_method(file: Path) -> int:
    """Check the methods of a Python file against the contract, and print what to change.

    The methods run for a few rounds on a small artificial federation; no data is needed.

    Args:
        file: A file with one or more classes that extend bench.engine.method.Method.
    """
    from bench.comparison import methods_in
    from bench.contract.checks import check

    problems: list[str] = []
    for name in methods_in(file):
        family = ""
        for finding in check(name):
            if finding.family != family:
                family = finding.family
                say(f"{name} ({file.name}) on {family} data")
            is_repeated = finding.problem in problems
            mark = "mend" if finding.problem else "ok"
            line = f"{mark} {finding.rule}{': the same' if is_repeated else ''}"
            console().print(Padding(Text(line), (0, 0, 0, 2)))
            if finding.problem and not is_repeated:
                console().print(Padding(Text(finding.problem), (0, 0, 0, 7)))
            problems += [finding.problem] if finding.problem else []
    say(f"{len(problems)} to mend" if problems else "every rule is kept")
    return 1 if problems else 0


def check_gpu() -> int:
    """Run on the GPU what only a GPU can show, and print a table; says so where there is none.

    Stacked against sequential training for every client model, a run that is short of memory, one that is
    taken up again. Exit code 1 if anything is not as it should be.
    """
    import torch

    from bench.timing.gpu import examine

    if not torch.cuda.is_available():
        print("no GPU here: torch sees no CUDA device, and nothing was checked")
        return 0
    rows = []
    for finding, seconds in examine("cuda"):
        state = "ok" if finding.well else "not ok"
        rows.append((finding.part, finding.subject, finding.text, state, f"{seconds:.1f}"))
    say(f"{torch.cuda.get_device_name()}, torch {torch.__version__}")
    console().print(table(("part", "of", "what was seen", "", "seconds"), rows, right={"seconds"}))
    return 1 if any(state == "not ok" for *_, state, _ in rows) else 0


def doctor() -> int:
    """Report the environment, devices, storage, database, plug-ins and data, and print what to fix."""
    grid = Table.grid(padding=(0, 2))
    count = 0
    for topic in (_software, _storage, _database, _plugins, _data):
        name = topic.__name__.strip("_")
        try:
            for text in topic():
                grid.add_row("ok", name, text)
        except Exception as error:
            kind = "" if isinstance(error, RequestError) else f"{type(error).__name__}: "
            grid.add_row("fix", name, kind + " ".join(str(error).split()))
            count += 1
    Screen(markup=False, highlight=False).print(grid)
    print(f"{count} to fix" if count else "nothing to fix")
    return 1 if count else 0


def _software() -> Iterator[str]:
    """Versions of Python and of the libraries that affect numbers; processor, memory and accelerators."""
    import torch

    from bench.runner import workers

    found = workers.describe("cpu", 1)
    packages = " ".join(f"{name} {version}" for name, version in found["packages"].items())
    yield f"Python {found['python']}, {packages}"
    yield f"{found['processor']}, {found['logical_cores']} cores, {found['memory'] / 2**30:.0f} GiB"
    for index in range(torch.cuda.device_count()):
        yield f"cuda:{index} is {workers.accelerator(f'cuda:{index}')}"
    if shutil.which("nvidia-smi") and not torch.cuda.is_available():
        yield f"a GPU driver is installed, but torch {torch.__version__} sees no GPU: install a CUDA build"


def _storage() -> Iterator[str]:
    """Check that ``BENCH_HOME`` can be written, and give its free space."""
    home = paths.home()
    folder = next(folder for folder in (home, *home.parents) if folder.exists())
    if not (folder.is_dir() and os.access(folder, os.W_OK)):
        raise RequestError(f"{home} cannot be written: set BENCH_HOME to a folder that can")
    yield f"{home}, {shutil.disk_usage(folder).free / 2**30:.0f} GiB free"


def _database() -> Iterator[str]:
    """The default database and its schema."""
    from bench.store.connect import HEAD, Database, opened

    found = Database(paths.default_database())
    if found.empty():
        yield "none yet: the first sweep makes it"
    else:
        opened(found, create=False).dispose()
        yield f"{found.name}, schema {HEAD}"


def _plugins() -> Iterator[str]:
    """Number of members of every kind, then the members that come from plug-ins, with their files."""
    from bench.dataset import DATASETS
    from bench.engine.methods import METHODS
    from bench.federation.scenario import SCENARIOS
    from bench.nn.base import CLIENT_MODELS
    from bench.studies.study import STUDIES

    kinds: tuple[Kind[Any], ...] = (METHODS, DATASETS, SCENARIOS, CLIENT_MODELS, STUDIES)
    yield ", ".join(f"{kind.word}: {len(kind.all())}" for kind in kinds)
    for kind in kinds:
        for name, member in kind.all().items():
            if not member.__module__.startswith("bench."):
                yield f"{kind.word} {name} from {inspect.getfile(member)}"


def _data() -> Iterator[str]:
    """The places of raw files, each with its data sets."""
    from bench.dataset import DATASETS
    from bench.sources import Sources

    sources = Sources(paths.data_roots(), download=False)
    places: dict[str, list[str]] = {}
    for name, dataset in DATASETS.all().items():
        places.setdefault(dataset.whereabouts(sources), []).append(name)
    yield from (f"{place}: {', '.join(names)}" for place, names in places.items())


def speed(
    *,
    dataset: options.OneDataset = "cora",
    clients: options.ClientCounts = (),
    method: options.Methods = (),
    rounds: int = 9,
    devices: str = "cpu",
) -> None:
    """Measure the seconds of a round. On graphs, compare them with a sequential reference.

    Args:
        clients: Numbers of clients; default: 10,50,100 on graphs, 20 on images.
        method: Methods; default: FedAvg.
        rounds: Measured rounds, after two warm-up rounds; the median is reported.
        devices: cpu (all cores), or a GPU such as cuda or cuda:1.
    """
    from bench.dataset import DATASETS
    from bench.runner.workers import choose
    from bench.timing.speed import apart, cases, measure

    data = DATASETS.named(dataset)
    scenario, threads = data.scenarios[0], os.cpu_count() or 1
    (device,) = choose(devices, 1, threads, 1).devices
    work = partial(measure, rounds=rounds, roots=paths.data_roots(), device=device, threads=threads)
    rows, problems = [], []
    for case in cases(dataset, scenario, clients, method):
        try:
            rows.append(asdict(apart(work, case)))
        except NotApplicableError as error:  # minutes may have gone into the other cases
            problems.append(f"not measured: {error}")
    if not rows:
        raise RequestError(problems[0])
    for problem in dict.fromkeys(problems):
        print(f"bench: {problem}", file=sys.stderr)
    headings = [name.replace("_", " ") for name in rows[0]]
    lines = [
        [f"{value:.4g}" if isinstance(value, float) else value for value in row.values()] for row in rows
    ]
    numbers, title = {*headings} - {"dataset", "method", "model"}, f"{data.title}, {scenario}"
    console(140).print(table(headings, lines, right=numbers, title=title))
