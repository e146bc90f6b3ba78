"""How reports word numbers, columns, stages and selection rules."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pandas as pd

from bench.studies.settings import Reading

STAGES = {"received": "the model received from the server", "trained": "the model after local training"}

RULES = {
    "best_val": "at the round that is best on validation items, by the mean over clients",
    "last": "at the last round",
    "best_test": "at the round of best mean test accuracy, which looks at test data",
    "client_best_val": "at each client's own step that is best on validation items",
}

AVERAGES = {
    "clients": "unweighted mean over clients",
    "samples": "mean over clients weighted by test samples",
}


def with_std(mean: float, std: float | None, digits: int = 2) -> str:
    """``74.32 ± 0.42``; the mean alone if there is no standard deviation."""
    return f"{mean:.{digits}f}" if pd.isna(std) else f"{mean:.{digits}f} ± {std:.{digits}f}"


def number(value: float | None, form: str = ".2f") -> str:
    """Format a number; ``-`` if it is missing."""
    return "-" if value is None or pd.isna(value) else f"{value:{form}}"


def interval(low: float | None, high: float | None, form: str = ".2f") -> str:
    """``1.20 to 1.34``; ``-`` if there is no interval."""
    return "-" if low is None or pd.isna(low) else f"{low:{form}} to {high:{form}}"


def signed(difference: float | None, digits: int = 2) -> str:
    """``+1.23``; ``-`` if missing. A number that rounds to zero has no minus sign: ``+0.00``."""
    return number(None if difference is None else round(difference, digits) + 0.0, f"+.{digits}f")


def reading_text(reading: Reading) -> str:
    """Stage and rule in words and by their names."""
    return f"{STAGES[reading.stage]}, {RULES[reading.rule]} (stage {reading.stage}, rule {reading.rule})"


def enumeration(texts: Sequence[str]) -> str:
    """``a, b and c``."""
    return " and ".join(filter(None, (", ".join(texts[:-1]), texts[-1])))


def ranges(numbers: Iterable[int]) -> str:
    """``0-4, 7`` for 0, 1, 2, 3, 4, 7."""
    parts: list[list[int]] = []
    for number in sorted(set(numbers)):
        if parts and number == parts[-1][-1] + 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    return ", ".join(f"{part[0]}-{part[-1]}" if len(part) > 1 else str(part[0]) for part in parts)
