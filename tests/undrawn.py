"""Reports without what takes longest: drawing, and a study's grids expanded for every test anew."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import pytest
from matplotlib.figure import Figure as Canvas

from bench.figures import drawing
from bench.frames import graded_cells, spread, stored_runs


@pytest.fixture(scope="module", autouse=True)
def undrawn(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Every figure's files hold an empty canvas, but in modules with ``LOOKS_AT_FIGURES``.

    They have a home of their own, lest empty drawings are kept for others.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BENCH_HOME", str(tmp_path_factory.mktemp("home")))
        if not getattr(request.module, "LOOKS_AT_FIGURES", False):
            patch.setattr(drawing, "draw", lambda figure: Canvas(figsize=(1, 1)))
        usual_of = cache(stored_runs.usual_of)
        for module in (graded_cells, spread):
            patch.setattr(module, "usual_of", lambda grids: dict(usual_of(tuple(grids))))
        yield
