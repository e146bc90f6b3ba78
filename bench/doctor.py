"""What this installation has, and what keeps it from working: the examination behind ``bench doctor``."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from bench import environment, paths
from bench.dataset import DATASETS
from bench.engine.methods import METHODS
from bench.errors import RequestError
from bench.federation.scenario import SCENARIOS
from bench.registry import Kind
from bench.sources import Sources
from bench.store import migrate
from bench.store.connect import Database

LOW_DISK = 2 * 2**30
"""Free bytes below which a long sweep is likely to fill the disk."""


@dataclass(frozen=True)
class Sign:
    """One line: ``state`` ``ok``, ``note`` (works, but worth knowing) or ``fix`` (does not work)."""

    topic: str
    state: Literal["ok", "note", "fix"]
    text: str


def software() -> Iterator[Sign]:
    """Python and the libraries that numbers depend on."""
    description = environment.describe("cpu", 1)
    packages = " ".join(f"{name} {version}" for name, version in description["packages"].items())
    yield Sign("software", "ok", f"Python {description['python']}, {packages}")


def devices() -> Iterator[Sign]:
    """Cores, memory and accelerators."""
    import torch

    description = environment.describe("cpu", 1)
    cores, memory = description["logical_cores"], description["memory"] / 2**30
    yield Sign("devices", "ok", f"{description['processor']}, {cores} cores, {memory:.0f} GiB")
    if torch.cuda.is_available():
        for index in range(torch.cuda.device_count()):
            yield Sign("devices", "ok", f"cuda:{index} is {environment.accelerator(f'cuda:{index}')}")
    elif shutil.which("nvidia-smi"):
        problem = f"a GPU driver is installed, but torch {torch.__version__} sees no GPU"
        yield Sign("devices", "note", f"{problem}: install a CUDA build of torch")


def storage() -> Iterator[Sign]:
    """``BENCH_HOME``: whether it can be written, and how much room there is."""
    home = paths.home()
    folder = next(folder for folder in (home, *home.parents) if folder.exists())
    if not os.access(folder, os.W_OK):
        yield Sign("storage", "fix", f"{home} cannot be written: set BENCH_HOME to a folder that can")
        return
    free_bytes = shutil.disk_usage(folder).free
    text = f"{home} ({'there' if home.exists() else 'made on first use'}), {free_bytes / 2**30:.0f} GiB free"
    yield Sign("storage", "ok" if free_bytes > LOW_DISK else "note", text)


def database() -> Iterator[Sign]:
    """The default database's schema, and whether its file is whole."""
    url = paths.default_database()
    if Database(url).empty():
        yield Sign("database", "ok", "none yet: the first sweep makes it")
        return
    try:
        yield Sign("database", "ok", f"{url}, schema {migrate.check(url)}")
    except RequestError as error:
        yield Sign("database", "fix", str(error))


def data() -> Iterator[Sign]:
    """Which data sets are at hand."""
    sources = Sources(paths.data_roots(), download=False)
    gaps: list[str] = []
    complete_names: list[str] = []
    for name, dataset in DATASETS.all().items():
        missing_files = [file for file in dataset.files if sources.at_hand(file) is None]
        (gaps if missing_files else complete_names).append(name)
    yield Sign("data", "ok", f"at hand: {', '.join(complete_names)}")
    if gaps:
        yield Sign("data", "note", f"not at hand: {', '.join(gaps)}; bench data fetch -d NAME gets one")


def plugins() -> Iterator[Sign]:
    """How much of every kind is found, and what of it is not the suite's own, with where that comes from."""
    from bench.nn.base import CLIENT_MODELS  # torch
    from bench.studies.study import STUDIES

    kinds: tuple[Kind[Any], ...] = (METHODS, DATASETS, SCENARIOS, CLIENT_MODELS, STUDIES)
    yield Sign("plug-ins", "ok", ", ".join(f"{kind.word}: {len(kind.all())}" for kind in kinds))
    for kind in kinds:
        for name, origin in kind.origins().items():
            yield Sign("plug-ins", "ok", f"{kind.word} {name} from {origin}")


TOPICS: tuple[tuple[str, Callable[[], Iterator[Sign]]], ...] = (
    ("software", software),
    ("devices", devices),
    ("storage", storage),
    ("database", database),
    ("plug-ins", plugins),
    ("data", data),
)


def examine() -> Iterator[Sign]:
    """Every sign; a topic whose examination fails is itself something to fix."""
    for topic, signs in TOPICS:
        try:
            yield from signs()
        except RequestError as error:
            yield Sign(topic, "fix", str(error))
        except Exception as error:
            yield Sign(topic, "fix", f"{type(error).__name__}: {' '.join(str(error).split())}")
