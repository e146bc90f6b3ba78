"""Compare what ``make quickstart`` or ``bench quickstart`` printed last with the block in the README.

Words, rows, verdicts and counts must be the same, in the same order. Numbers with decimals may differ by
``TOLERANCE``: on another processor sums are rounded differently, and then another round may have the best
validation accuracy. Which methods cannot be told apart by so few runs may turn with that, so that the
sentence on who is first, above the bars, is not compared. At most ``LINES`` lines are printed.
"""

import re
import sys
from pathlib import Path

TOLERANCE = 1.0
"""Points of accuracy; a verdict that would change within it is compared as it stands."""

LINES = 40

BAR = "\N{FULL BLOCK}"
"""What a bar of published values begins with where some are measured."""

OF_MAKE = "(first, in this shell:"
"""What a line begins with that ``make`` adds to what ``bench quickstart`` prints."""

NUMBER = re.compile(r"[+-]?\d+\.\d+")


def parts(line: str) -> tuple[str, list[float]]:
    """A line without its numbers and the spaces around them, and the numbers."""
    return " ".join(NUMBER.sub("#", line).split()), [float(number) for number in NUMBER.findall(line)]


def below_sentence(lines: list[str]) -> list[str]:
    """The lines from the first bar on."""
    bars = [place for place, line in enumerate(lines) if line.startswith(BAR)]
    if not bars:
        sys.exit("no bar of published values: the report's lines have another form than this script knows")
    return lines[bars[0] :]


def main() -> None:
    """Exit with what differs, if something does."""
    readme, printed = (Path(name).read_text(encoding="utf-8") for name in sys.argv[1:])
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", readme, flags=re.DOTALL | re.MULTILINE)
    blocks = [text for language, text in fenced if not language]
    if len(blocks) != 1:
        sys.exit(f"README: expected one block of output, found {len(blocks)}")
    shown = blocks[0].rstrip("\n").splitlines()
    lines = [line.rstrip() for line in printed.splitlines()]
    if shown[0] not in lines:
        sys.exit(f"the quickstart did not print the line {shown[0]!r}, with which the README's block begins")
    lines = lines[lines.index(shown[0]) :]
    if len(lines) > LINES:
        sys.exit(f"the quickstart printed {len(lines)} lines of report: at most {LINES} are wanted")
    shown, lines = (
        [line for line in below_sentence(text) if not line.lstrip().startswith(OF_MAKE)]
        for text in (shown, lines)
    )
    for expected, line in zip(shown, lines, strict=False):
        (words, numbers), (other_words, other_numbers) = parts(expected), parts(line)
        if words != other_words:
            sys.exit(f"README:  {expected}\nprinted: {line}")
        for number, other in zip(numbers, other_numbers, strict=True):
            if abs(number - other) > TOLERANCE:
                sys.exit(f"{number} and {other} differ by more than {TOLERANCE}\n{expected}\n{line}")
    if len(shown) != len(lines):
        sys.exit(f"the README shows {len(shown)} lines from the first bar on, the quickstart {len(lines)}")
    print(f"{len(shown)} lines agree")


main()
