"""20 Newsgroups from tables made by hand."""

from __future__ import annotations

from pathlib import Path

from .raw_data import load_whole, sets_of, write


def test_news_rows_are_sorted_by_id_and_words_numbered_from_0(by_hand: Path) -> None:
    content = "2\t1\t0\t1\n0\t1\t1\t0\n1\t0\t1\t2\n"
    folder = "hypergraph/news20"
    edges = "0\t4\n0\t3\n1\t4\n2\t3\n"
    write(by_hand, {f"{folder}/20newsW100.content": content, f"{folder}/20newsW100.edges": edges})
    data = load_whole("news20", by_hand)
    assert data.features.toarray().tolist() == [[1, 1], [0, 1], [1, 0]]  # not normalised
    assert data.labels.tolist() == [0, 2, 1]
    assert sets_of(data) == [(0, 2), (0, 1)]
