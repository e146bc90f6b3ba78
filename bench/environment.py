"""Where a run is made: versions and hardware, without names of hosts, users or folders."""

from __future__ import annotations

import platform
import re
from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

PACKAGES = (
    "alembic",
    "numpy",
    "pandas",
    "pydantic",
    "pymetis",
    "scipy",
    "sqlalchemy",
    "torch",
    "torch-geometric",
)


def processor() -> str:
    """Model name of the processor, as the operating system gives it."""
    info = Path("/proc/cpuinfo")
    names = re.findall(r"^model name\s*: *(.+)$", info.read_text(), re.MULTILINE) if info.exists() else []
    return names[0].strip() if names else platform.processor() or platform.machine()


def accelerator(device: str) -> str:
    """Name of the accelerator behind a device such as ``cuda:0``; empty for ``cpu``."""
    if device == "cpu":
        return ""
    import torch

    return str(torch.cuda.get_device_name(device))


@cache
def describe(device: str, threads: int) -> Mapping[str, Any]:
    """Versions, processor, memory in bytes, device and threads of a run on this machine; asked once."""
    import psutil

    return {
        "python": platform.python_version(),
        "packages": {package: version(package) for package in PACKAGES},
        "system": platform.system(),
        "release": ".".join(platform.release().split(".")[:2]),
        "machine": platform.machine(),
        "libc": " ".join(platform.libc_ver()).strip(),
        "processor": processor(),
        "cores": psutil.cpu_count(logical=False) or psutil.cpu_count(),
        "logical_cores": psutil.cpu_count(),
        "memory": psutil.virtual_memory().total,
        "accelerator": accelerator(device),
        "threads": threads,
    }
