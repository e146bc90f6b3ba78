"""What reports and leaderboard share: the picture of ranks, and the files beside every page."""

from types import SimpleNamespace

import pandas as pd
import pytest

from bench.site.templating import environment

TABLE = pd.DataFrame(
    {
        "method": ["a", "b", "c", "d", "e"],
        "title": ["A", "B & B", "C", "D", "E"],
        "rank": [1.0, 2.5, 5.0, 1.5, 3.0],
        "low": [1.0, 2.0, 4.0, None, None],
        "high": [1.5, 3.0, 5.0, None, None],
        "group": pd.array([1, 1, 2, None, None], "Int64"),
        "tasks": [4, 4, 4, 2, 2],
        "minus_baseline": [3.25, -0.01, 0.0, None, 1.0],
    }
)


def rows(**arguments: object) -> list[str]:
    """The rows of the table as HTML, below its head."""
    ranking = SimpleNamespace(ranks=TABLE.assign(planned=6), task_count=4, baseline_title="B")
    template = environment().from_string(
        '{% from "elements.html.j2" import ranks with context %}{{ ranks("Ranks", ranking, **more) }}'
    )
    body = template.render(ranking=ranking, more=arguments).partition("<tbody>")[2]
    return body.split("<tr")[1:]


def test_methods_of_fewer_tasks_stand_below_a_line_with_their_number() -> None:
    assert ["rule" in row.partition(">")[0] for row in rows()] == [False, False, False, True, False]
    assert ["4/6" in row for row in rows()] == [True, True, True, False, False]
    assert ["2/6" in row for row in rows()] == [False, False, False, True, True]


def test_methods_of_group_1_are_filled() -> None:
    assert ['class="dot first"' in row for row in rows()] == [True, True, False, False, False]


@pytest.mark.parametrize(("row", "rank"), list(enumerate(TABLE["rank"])))
def test_dots_lie_between_the_first_and_the_last_place(row: int, rank: float) -> None:
    places = [float(each.partition('cx="')[2].partition("%")[0]) for each in rows()]
    first, last = places[0], places[2]  # of rank 1 and 5
    assert 0 < first < last < 100
    assert places[row] == pytest.approx(first + (last - first) * (rank - 1) / 4)


def test_what_is_printed_as_zero_has_no_sign_of_a_loss() -> None:
    assert "-0.0" not in rows()[1]


def test_methods_have_links_where_there_are_pages() -> None:
    assert "<a" not in "".join(rows())
    assert '<a href="pages/b">B &amp; B</a>' in rows(link=lambda method: f"pages/{method}")[1]
