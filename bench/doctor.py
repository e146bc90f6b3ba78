"""What this installation has, and what keeps it from working: the examination behind ``bench doctor``."""

from __future__ import annotations

import inspect
import os
import shutil
from collections.abc import Iterator
from typing import Any

from bench import environment, paths
from bench.dataset import DATASETS
from bench.engine.methods import METHODS
from bench.errors import RequestError
from bench.federation.scenario import SCENARIOS
from bench.registry import Kind
from bench.sources import Sources
from bench.store.connect import HEAD, Database, opened


def software() -> Iterator[str]:
    """Python and the libraries that numbers depend on; processor, memory and accelerators."""
    import torch

    found = environment.describe("cpu", 1)
    packages = " ".join(f"{name} {version}" for name, version in found["packages"].items())
    yield f"Python {found['python']}, {packages}"
    yield f"{found['processor']}, {found['logical_cores']} cores, {found['memory'] / 2**30:.0f} GiB"
    for index in range(torch.cuda.device_count()):
        yield f"cuda:{index} is {environment.accelerator(f'cuda:{index}')}"
    if shutil.which("nvidia-smi") and not torch.cuda.is_available():
        yield f"a GPU driver is installed, but torch {torch.__version__} sees no GPU: install a CUDA build"


def storage() -> Iterator[str]:
    """``BENCH_HOME``: whether it can be written, and how much room there is."""
    home = paths.home()
    folder = next(folder for folder in (home, *home.parents) if folder.exists())
    if not (folder.is_dir() and os.access(folder, os.W_OK)):
        raise RequestError(f"{home} cannot be written: set BENCH_HOME to a folder that can")
    yield f"{home}, {shutil.disk_usage(folder).free / 2**30:.0f} GiB free"


def database() -> Iterator[str]:
    """The default database and its schema."""
    found = Database(paths.default_database())
    if found.empty():
        yield "none yet: the first sweep makes it"
    else:
        opened(found, create=False).dispose()
        yield f"{found.name}, schema {HEAD}"


def plugins() -> Iterator[str]:
    """How much of every kind is found, and what of it is not the suite's own, with its file."""
    from bench.nn.base import CLIENT_MODELS  # torch
    from bench.studies.study import STUDIES

    kinds: tuple[Kind[Any], ...] = (METHODS, DATASETS, SCENARIOS, CLIENT_MODELS, STUDIES)
    yield ", ".join(f"{kind.word}: {len(kind.all())}" for kind in kinds)
    for kind in kinds:
        for name, member in kind.all().items():
            if not member.__module__.startswith("bench."):
                yield f"{kind.word} {name} from {inspect.getfile(member)}"


def data() -> Iterator[str]:
    """Which data sets are at hand."""
    sources = Sources(paths.data_roots(), download=False)
    places: dict[str, list[str]] = {}
    for name, dataset in DATASETS.all().items():
        places.setdefault(dataset.whereabouts(sources), []).append(name)
    yield from (f"{place}: {', '.join(names)}" for place, names in places.items())


def examine() -> Iterator[tuple[str, str, str]]:
    """State (``ok``, or ``fix``), topic and text; what an examination fails at is to be fixed."""
    for topic in (software, storage, database, plugins, data):
        try:
            yield from [("ok", topic.__name__, text) for text in topic()]
        except Exception as error:
            kind = "" if isinstance(error, RequestError) else f"{type(error).__name__}: "
            yield "fix", topic.__name__, kind + " ".join(str(error).split())
