"""What this installation has, and what keeps it from working: the examination behind ``bench doctor``."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
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


State = Literal["ok", "note", "fix"]
"""``note`` works, but is worth knowing; ``fix`` does not work."""

Signs = Iterator[tuple[State, str]]


def software() -> Signs:
    """Python and the libraries that numbers depend on."""
    description = environment.describe("cpu", 1)
    packages = " ".join(f"{name} {version}" for name, version in description["packages"].items())
    yield "ok", f"Python {description['python']}, {packages}"


def devices() -> Signs:
    """Cores, memory and accelerators."""
    import torch

    description = environment.describe("cpu", 1)
    cores, memory = description["logical_cores"], description["memory"] / 2**30
    yield "ok", f"{description['processor']}, {cores} cores, {memory:.0f} GiB"
    if torch.cuda.is_available():
        for index in range(torch.cuda.device_count()):
            yield "ok", f"cuda:{index} is {environment.accelerator(f'cuda:{index}')}"
    elif shutil.which("nvidia-smi"):
        problem = f"a GPU driver is installed, but torch {torch.__version__} sees no GPU"
        yield "note", f"{problem}: install a CUDA build of torch"


def storage() -> Signs:
    """``BENCH_HOME``: whether it can be written, and how much room there is."""
    home = paths.home()
    folder = next(folder for folder in (home, *home.parents) if folder.exists())
    if not (folder.is_dir() and os.access(folder, os.W_OK)):
        yield "fix", f"{home} cannot be written: set BENCH_HOME to a folder that can"
        return
    free_bytes = shutil.disk_usage(folder).free
    text = f"{home} ({'there' if home.exists() else 'made on first use'}), {free_bytes / 2**30:.0f} GiB free"
    yield ("ok" if free_bytes > LOW_DISK else "note", text)


def database() -> Signs:
    """The default database's schema, and whether its file is whole."""
    found = Database(paths.default_database())
    if found.empty():
        yield "ok", "none yet: the first sweep makes it"
    else:
        migrate.check(found)
        yield "ok", f"{found.name}, schema {migrate.HEAD}"


def data() -> Signs:
    """Which data sets are at hand."""
    sources = Sources(paths.data_roots(), download=False)
    names: dict[bool, list[str]] = {True: [], False: []}
    for name, dataset in DATASETS.all().items():
        names[all(sources.at_hand(file) for file in dataset.files)].append(name)
    yield "ok", f"at hand: {', '.join(names[True])}"
    if names[False]:
        yield "note", f"not at hand: {', '.join(names[False])}; bench data fetch -d NAME gets one"


def plugins() -> Signs:
    """How much of every kind is found, and what of it is not the suite's own, with where that comes from."""
    from bench.nn.base import CLIENT_MODELS  # torch
    from bench.studies.study import STUDIES

    kinds: tuple[Kind[Any], ...] = (METHODS, DATASETS, SCENARIOS, CLIENT_MODELS, STUDIES)
    yield "ok", ", ".join(f"{kind.word}: {len(kind.all())}" for kind in kinds)
    for kind in kinds:
        for name, origin in kind.origins().items():
            yield "ok", f"{kind.word} {name} from {origin}"


TOPICS: dict[str, Callable[[], Signs]] = {
    "software": software,
    "devices": devices,
    "storage": storage,
    "database": database,
    "plug-ins": plugins,
    "data": data,
}


def examine() -> Iterator[tuple[str, State, str]]:
    """Topic, state and text of every sign; a topic whose examination fails is itself something to fix."""
    for topic, signs in TOPICS.items():
        try:
            for state, text in signs():
                yield topic, state, text
        except Exception as error:
            kind = "" if isinstance(error, RequestError) else f"{type(error).__name__}: "
            yield topic, "fix", kind + " ".join(str(error).split())
