"""The command that makes a run again."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence

from bench.resolve import resolve
from bench.spec import RunSpec, difference


def command(spec: RunSpec, seeds: Sequence[int] = ()) -> str:
    """A ``bench sweep`` line with whatever differs from the defaults written out.

    ``seeds`` makes the same runs with these seeds, in place of the spec's own.

    Raises:
        RequestError: the method or data set is not installed.
    """
    names = (spec.dataset, spec.scenario, spec.clients, spec.method, spec.seed)
    default = resolve(*names)
    words = ["bench", "sweep"]
    for option, value in zip(("-d", "-s", "-k", "-m"), names, strict=False):
        words += [option, str(value)]
    for seed in seeds or (spec.seed,):
        words += ["--seed", str(seed)]
    for key, (value, _) in difference(spec, default).items():
        if key in spec.settings():
            # JSON writes numbers, truth values, lists and quoted texts as TOML does.
            words += ["--set", f"{key}={json.dumps(value, ensure_ascii=False)}"]
    return shlex.join(words)
