"""Options and commands with another name now: the old one works for one version, and says the new one."""

from __future__ import annotations

from collections.abc import Sequence

OPTIONS = {
    ("sweep", "--timeout"): "--timeout-seconds",
    ("sweep", "--engine"): "--backend",
    ("tune", "--engine"): "--backend",
    ("tune", "--tune-seeds"): "--seed",
    ("speed", "--device"): "--devices",
    ("speed", "--methods"): "--method",
    ("speed", "--json"): "--out",
    ("check-gpu", "--device"): "--devices",
    ("verify", "--seed"): "--draw-seed",
}
"""Options that have another name now, by command and old name."""

FLAGS = {("speed", "--json")}
"""Old options that took a value where the option of that name is a flag now."""

COMMANDS: dict[tuple[str, ...], tuple[str, ...]] = {("data", "list"): ("datasets",)}
"""Commands that have another name now, by the old one."""


def renamed(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """The words of a command line as they are spelt now, and a line for each name that was an old one."""
    new_words = list(words)
    lines = []
    if command := COMMANDS.get(tuple(words[:2])):
        new_words[:2] = command
        lines.append(_line(f"bench {' '.join(words[:2])}", f"bench {' '.join(command)}"))
    for place, word in enumerate(new_words):
        name, equals, value = word.partition("=")
        new_name = OPTIONS.get((new_words[0], name))
        has_value = equals or (place + 1 < len(new_words) and not new_words[place + 1].startswith("-"))
        if new_name is not None and (has_value or (new_words[0], name) not in FLAGS):
            new_words[place] = f"{new_name}{equals}{value}"
            lines.append(_line(name, new_name))
    return new_words, list(dict.fromkeys(lines))


def _line(old_name: str, new: str) -> str:
    return f"{old_name} is {new} now; the old name goes with the next version"
