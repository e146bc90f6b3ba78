"""The option ``--seed``: numbers, and ranges of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Any

from cyclopts import Parameter, Token

MOST = 10_000
"""Seeds of one range; more is a slip of the finger."""


def _numbers(_: Any, tokens: Sequence[Token]) -> list[int]:
    """``3`` is one seed, ``20-39`` are twenty; a seed that is named twice counts once.

    Raises:
        ValueError: a word is neither; cyclopts puts the option's name before it.
    """
    seeds: dict[int, None] = {}
    for token in tokens:
        match = re.fullmatch(r"(\d{1,9})(?:-(\d{1,9}))?", token.value, re.ASCII)
        if match is None:
            raise ValueError(f"expected a number from 0 on or a range such as 0-4, got '{token.value}'")
        first, last = int(match[1]), int(match[2] or match[1])
        if not first <= last < first + MOST:
            raise ValueError(f"expected up to {MOST} seeds in ascending order, got '{token.value}'")
        seeds.update(dict.fromkeys(range(first, last + 1)))
    return list(seeds)


Seeds = Annotated[list[int] | None, Parameter(negative="", converter=_numbers)]
