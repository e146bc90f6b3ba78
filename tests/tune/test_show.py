"""What searches look like in a dry run."""

import pytest

from bench.runner.plan import Estimator
from bench.tune.search import Search
from bench.tune.show import cost, row

from .toy_tuning import go_on, tuning

NINE, ONE = Search(tuning(trials=9), 1), go_on(tuning(trials=1))
NOBODY_KNOWS = Estimator((), "cpu")


@pytest.mark.parametrize(
    ("searches", "slots", "width", "seconds"),
    [
        ([90.0], 1, 1, 90),
        ([90.0], 2, 1, 45),  # the two seeds side by side
        ([90.0], 20, 1, 45),
        ([90.0], 20, 4, 11.25),
        ([90.0] * 3, 6, 1, 45),
        ([90.0] * 3, 2, 1, 135),
        ([20.0, 90.0, 40.0], 4, 1, 45),  # the longest decides
    ],
)
def test_a_dry_run_says_what_the_rest_takes(
    searches: list[float], slots: int, width: int, seconds: float
) -> None:
    rows = [row(NINE, NOBODY_KNOWS, "") | {"seconds": search} for search in searches]
    lacking = row(NINE, NOBODY_KNOWS, "not in any data root") | {"seconds": 1000.0}
    done = row(ONE, NOBODY_KNOWS, "")
    text = cost([*rows, lacking, done], slots, 2 * width)
    time = f"{seconds:.0f} s" if seconds < 60 else f"{seconds / 60:.0f} min"
    assert f"{len(rows) + 2} searches, {len(rows)} to do, {time} on {slots} at a time" in text
    assert ("stay idle" in text) == (slots > 2 * width * len(rows))
