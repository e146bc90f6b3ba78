"""Parts of a table of runs."""

import pandas as pd

from bench.studies.source import Runs

TABLE = pd.DataFrame(
    {
        "seed": [3, 1, 2],
        "state": pd.array(["done", "failed", "done"], dtype="string"),
        "bundle_checked": pd.to_datetime([None, "2026-01-02", None]),
    }
)


def test_parts_have_the_rows_of_a_mask_or_of_places_in_their_order() -> None:
    runs = Runs.of(TABLE)
    assert len(runs) == 3
    done = runs.take(runs["state"] == "done")
    assert done["seed"].tolist() == [3, 2]
    assert done.take([1, 0])["seed"].tolist() == [2, 3]
    assert not runs.take([])
    assert runs.take([])["state"].tolist() == []


def test_dates_and_what_is_missing_are_those_of_pandas() -> None:
    checked = Runs.of(TABLE)["bundle_checked"]
    assert pd.isna(checked[0])
    assert f"{checked[1]:%Y-%m-%d}" == "2026-01-02"
