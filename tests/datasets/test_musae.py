"""Facebook's pages from tables made by hand."""

from __future__ import annotations

import json
from pathlib import Path

from bench.data import Graph

from .raw_data import load_whole, sets_of, write


def test_facebook_ignores_self_loops(by_hand: Path) -> None:
    kinds = ["tvshow", "company", "politician", "government"]
    target = "id,facebook_id,page_name,page_type\n" + "".join(
        f'{page},7,"A, ""{page}""",{kinds[page]}\n' for page in (1, 0, 3, 2)
    )
    files = {
        "attenuated_edges/facebook_edges.csv": "x1,x2\n3,0\n1,1\n0,3\n2,0\n",
        "features/facebook.json": json.dumps({"2": [4, 0], "0": [], "1": [1], "3": [0]}),
        "target/facebook_target.csv": target,
    }
    write(by_hand / "hypergraph" / "facebook", files)
    data = load_whole("facebook", by_hand)
    assert isinstance(data, Graph)
    assert data.edges.T.tolist() == [[0, 2], [0, 3], [2, 0], [3, 0]]
    assert sets_of(data) == [(0, 2, 3), (1,), (0, 2), (0, 3)]
    assert data.labels.tolist() == [3, 0, 2, 1]
    assert data.features.toarray().tolist() == [[0] * 5, [0, 1, 0, 0, 0], [1, 0, 0, 0, 1], [1, 0, 0, 0, 0]]
