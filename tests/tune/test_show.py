"""What searches look like in a dry run."""

import pytest

from bench.runner.plan import Estimator
from bench.tune.search import Search
from bench.tune.show import cost, standing

from .toy_tuning import go_on, tuning

NOBODY_KNOWS = Estimator((), "cpu")
NINE = standing(Search(tuning(trials=9)), NOBODY_KNOWS, "")
DONE = standing(go_on(tuning(trials=1)), NOBODY_KNOWS, "")


@pytest.mark.parametrize(
    ("searches", "slots", "expected"),
    [
        ([90.0], 1, "2 min"),
        ([90.0], 20, "45 s"),  # the two seeds side by side
        ([90.0] * 3, 2, "2 min"),
        ([20.0, 90.0, 40.0], 4, "45 s"),  # the longest decides
    ],
)
def test_a_dry_run_says_what_the_rest_takes(searches: list[float], slots: int, expected: str) -> None:
    rows = [NINE._replace(seconds=seconds) for seconds in searches]
    lacking = NINE._replace(lacking="not in any data root", seconds=1000.0)
    text = cost([*rows, lacking, DONE], slots, 2)
    assert text == f"{len(rows) + 2} searches, {len(rows)} to do, {expected} on {slots} at a time"


def test_a_search_has_a_line() -> None:
    name = "local cora non-overlapping 3"
    nothing = f"{name}: 0 of 9 trials, 0 of 216 client epochs, best -"
    assert str(NINE) == f"{nothing}: to do, time unknown"
    assert str(NINE._replace(lacking="no file")) == f"{nothing}: no file"
    assert str(DONE).startswith(f"{name}: 1 of 1 trials, 24 of 24 client epochs, best ")
    assert str(DONE).endswith(": done: trials used up")
