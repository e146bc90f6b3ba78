"""A wall clock that a test sets back, for whatever is started with it: a library before libc's (Linux, a C
compiler). Processes, their workers and SQLite read it; the machine's own clock stays as it is.
"""

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

SOURCE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

static long seconds_back(void) {
    const char *path = getenv("SECONDS_BACK");
    FILE *file = path ? fopen(path, "r") : NULL;
    long seconds = 0;
    if (file) {
        if (fscanf(file, "%ld", &seconds) != 1) seconds = 0;
        fclose(file);
    }
    return seconds;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int failure = real(clock, now);
    if (!failure && clock == CLOCK_REALTIME) now->tv_sec -= seconds_back();
    return failure;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec moment;
    int failure = clock_gettime(CLOCK_REALTIME, &moment);
    now->tv_sec = moment.tv_sec;
    now->tv_usec = moment.tv_nsec / 1000;
    return failure;
}
"""


@dataclass
class WallClock:
    """A folder with the library and the seconds by which the clock is behind."""

    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        """What processes that shall read this clock are started with."""
        return {"LD_PRELOAD": str(self.folder / "clock.so"), "SECONDS_BACK": str(self.folder / "back")}

    def set_back(self, hours: float) -> None:
        """Behind the right time by so many hours, at once, for all that run."""
        new = self.folder / "new"
        new.write_text(f"{hours * 3600:.0f}")
        new.replace(self.folder / "back")


@pytest.fixture
def clock(tmp_path: Path) -> WallClock:
    """A clock that is right until it is set back."""
    compiler = shutil.which("cc")
    if compiler is None or os.uname().sysname != "Linux":
        pytest.skip("no compiler, or no Linux: no clock of its own to set back")
    folder = tmp_path / "clock"
    folder.mkdir()
    command = [compiler, "-shared", "-fPIC", "-o", str(folder / "clock.so"), "-xc", "-", "-ldl"]
    subprocess.run(command, input=SOURCE, text=True, check=True)
    clock = WallClock(folder)
    clock.set_back(0.0)
    return clock
