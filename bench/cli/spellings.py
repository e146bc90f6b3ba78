"""Options and commands with another name now: the old one works for one version, and says the new one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple


class Spelling(NamedTuple):
    """An option of a command that has another name now. ``with_value`` alone: the old one took a value where
    the option of that name is a flag now.
    """

    command: str
    old: str
    new: str
    with_value: bool = False


OPTIONS = (
    Spelling("sweep", "--timeout", "--timeout-seconds"),
    Spelling("sweep", "--engine", "--backend"),
    Spelling("tune", "--engine", "--backend"),
    Spelling("tune", "--tune-seeds", "--seed"),
    Spelling("speed", "--device", "--devices"),
    Spelling("speed", "--methods", "--method"),
    Spelling("speed", "--json", "--out", with_value=True),
    Spelling("check-gpu", "--device", "--devices"),
)

COMMANDS = {("data", "list"): ("datasets",)}
"""Commands that have another name now, by the old one."""


def renamed(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """The words of a command line as they are spelt now, and a line for each name that was an old one."""
    lines = []
    for old, new in COMMANDS.items():
        if tuple(words[: len(old)]) == old:
            words = [*new, *words[len(old) :]]
            lines.append(_line(" ".join(("bench", *old)), " ".join(("bench", *new))))
    spellings = {spelling.old: spelling for spelling in OPTIONS if [spelling.command] == list(words[:1])}
    now = list(words)
    for place, spelling, value in _old_options(words, spellings):
        now[place] = f"{spelling.new}={value}" if value is not None else spelling.new
        lines.append(_line(spelling.old, spelling.new))
    return now, list(dict.fromkeys(lines))


def _old_options(
    words: Sequence[str], spellings: dict[str, Spelling]
) -> Iterator[tuple[int, Spelling, str | None]]:
    """The places of options that are spelt as before, and the value that stands in the same word."""
    for place, word in enumerate(words):
        name, equals, value = word.partition("=")
        spelling = spellings.get(name)
        if spelling is None:
            continue
        followed = equals or (place + 1 < len(words) and not words[place + 1].startswith("-"))
        if followed or not spelling.with_value:
            yield place, spelling, value if equals else None


def _line(old: str, new: str) -> str:
    return f"{old} is {new} now; the old name goes with the next version"
