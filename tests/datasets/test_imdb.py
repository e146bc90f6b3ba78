"""IMDB's films, words and names from tables made by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from bench.datasets.imdb import films_by_name

from .raw_data import load_whole, sets_of, write

FILMS = """director_name,actor_1_name,actor_2_name,actor_3_name,genres,plot_keywords
Zoe,Ann,Bob,,Horror|Comedy|Action,big dog|Dog
Zoe,Bob,,,Drama,a cat|dog
,Ann,Bob,,Drama,cat
Yve,,Ann,Bob,Drama,cat
Yve,Ann,Bob,Bob,Horror,cat
"Ynez, Q.",Ann,Bob,Bob,Action|Comedy,big cat
"""


def test_imdb_films_words_and_names(by_hand: Path) -> None:
    write(by_hand, {"hypergraph/imdb4k/movie_metadata.csv": FILMS})
    data = load_whole("imdb4k", by_hand)
    # Kept: rows 0, 1 and 5. Others lack a director, a first actor or a genre that is a class.
    assert data.labels.tolist() == [1, 2, 0]
    assert data.classes == 3
    # Words of two films at least: big, cat, dog ("a" is too short).
    expected = [[1 / 3, 0, 2 / 3], [0, 0.5, 0.5], [0.5, 0.5, 0]]
    np.testing.assert_allclose(data.features.toarray(), expected, rtol=1e-6)
    # Directors Ynez and Zoe, then actors Ann and Bob; Ynez has one film.
    assert sets_of(data) == [(0, 1), (0, 2), (0, 1, 2)]


def test_a_film_is_once_in_the_list_of_a_name() -> None:
    films = [{"one": "A", "two": "A"}, {"one": "", "two": "B"}, {"one": "B", "two": "A"}]
    assert films_by_name(films, ("one", "two")) == [[0, 2], [1, 2]]
