"""The verdict on columns is the scalar rule of ``bench.studies.verdicts``, row by row."""

from __future__ import annotations

import math
from statistics import fmean, stdev
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.frames.verdicts import agreed, graded
from bench.studies.verdicts import PartitionSpread, PublishedRuns, Verdict, agreed_verdict, grade, weigh

POINTS = st.floats(0, 100, allow_subnormal=False)
SPREADS = st.one_of(st.just(0.0), st.floats(1e-3, 30))


@st.composite
def rows(draw: st.DrawFn) -> dict[str, Any]:
    """A cell's numbers: measured values around a published mean, and all else that a verdict rests on."""
    published = draw(POINTS)
    centre = published + draw(st.sampled_from([0.0, 0.5, 1.0, 2.0, -2.0, 10.0]))
    values = draw(st.lists(st.floats(-3, 3).map(lambda off: centre + off), min_size=2, max_size=6))
    s_d = draw(st.none() | SPREADS)
    return {
        "values": values,
        "published_mean": published,
        "published_std": draw(st.none() | SPREADS),
        "n_p": draw(st.integers(1, 20)),
        "population": draw(st.booleans()),
        "s_d": s_d,
        "s_d_freedom": math.inf if s_d is None else draw(st.integers(1, 9)),
        "draws": draw(st.integers(0, 2)),
        "control": draw(st.none() | POINTS),
        "margin": draw(st.sampled_from([0.5, 2.0])),
    }


def as_frame(cells: list[dict[str, Any]]) -> pd.DataFrame:
    frame = pd.DataFrame(cells)
    numbers = frame.drop(columns=["values", "population"]).astype(float)
    return numbers.assign(
        population=frame["population"],
        n=[len(values) for values in frame["values"]],
        mean=[fmean(values) for values in frame["values"]],
        std=[stdev(values) for values in frame["values"]],
    )


@given(st.lists(rows(), min_size=1, max_size=20))
@settings(max_examples=200)
def test_every_row_has_the_evidence_and_the_grade_of_the_scalar_rule(cells: list[dict[str, Any]]) -> None:
    new = graded(as_frame(cells))
    for cell, (_, row) in zip(cells, new.iterrows(), strict=True):
        runs = PublishedRuns(cell["n_p"], population=cell["population"])
        spread = PartitionSpread(cell["s_d"], draws=cell["draws"], freedom=cell["s_d_freedom"])
        numbers = cell["published_mean"], cell["published_std"], runs, cell["values"]
        evidence = weigh(*numbers, spread, cell["margin"], cell["control"])
        found = row[["difference", "low_difference", "high_difference", "tolerance"]].to_numpy(float)
        expected = [evidence.difference, evidence.low, evidence.high, evidence.tolerance]
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-10)
        assert row["verdict"] == grade(evidence, cell["published_mean"], len(cell["values"]))
        alone = weigh(*numbers, PartitionSpread(), cell["margin"], cell["control"])
        is_apart = grade(alone, cell["published_mean"], len(cell["values"])) in ("above", "below")
        if row["verdict"] == "compatible":
            assert row["rests_on_spread"] == is_apart


def test_a_value_of_an_unknown_stage_has_the_grade_on_which_all_stages_agree() -> None:
    readings = pd.DataFrame(
        {
            "order": [0, 0, 1, 1, 2],
            "stage": ["trained", "received", "trained", "received", "trained"],
            "verdict": ["above", "below", "above", "above", "compatible"],
            "reason": ["", "", "", "", "x"],
            "low_difference": [1.0, 2.0, 3.0, 4.0, 5.0],
            "rests_on_spread": [False, False, False, False, True],
        }
    )
    expected = agreed_verdict({"trained": Verdict("above"), "received": Verdict("below")}, "trained")
    found = agreed(readings)
    assert found["verdict"].tolist() == [expected.name, "above", "compatible"]
    assert found["reason"].tolist() == [expected.reason, "", "x"]
    assert found["low_difference"].tolist() == [1.0, 3.0, 5.0]
