"""Tables as a terminal shows them."""

from __future__ import annotations

import io

from rich.console import Console

from bench.report.table import Entry, Table
from bench.report.terminal import rich_table


def printed(groups: tuple[tuple[str, int], ...]) -> str:
    """Four columns of a table in groups of these headings and widths, in 80 columns."""
    names = ("Self", "Similar", "Other", "Round")
    table = Table("name", "Measured", "Method", groups, names, (("FedAGHN", (Entry("0.25"),) * 4),))
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(rich_table(table))
    return console.export_text()


def test_the_one_federation_of_a_table_is_named_once() -> None:
    place = "CIFAR-100 sample, case-study"
    text = printed(((place, 4),))
    assert text.count(place) == 1
    assert "Measured" in text
    assert all(name in text for name in ("Self", "Similar", "Other", "Round"))


def test_several_federations_stand_over_their_columns() -> None:
    text = printed((("Cora", 2), ("CiteSeer", 2)))
    title, *table = text.splitlines()
    assert "Cora" not in title
    heads = next(line for line in table if "Cora" in line)
    assert (heads.count("Cora"), heads.count("CiteSeer")) == (2, 2)
