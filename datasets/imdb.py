"""IMDB4k: films of IMDB, joined by their directors and their actors.

The subset of Fu, Zhang, Meng, King, "MAGNN: Metapath Aggregated Graph Neural Network", WWW 2020, made
from its raw table by the recipe told there; prepared as the FedHGN study (arXiv 2408.05160) does.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import ClassVar

import numpy as np
from scipy import sparse

from bench.data import Hypergraph
from bench.sources import RawFile, Sources

from ._fedhgn import CleanedHypergraph, fedhgn_protocol
from ._prepare import clean, l1_normalise_rows

GENRES = ("Action", "Comedy", "Drama")
"""The classes, in order of their ids."""

DIRECTOR = ("director_name",)
ACTORS = ("actor_1_name", "actor_2_name", "actor_3_name")

TABLE = RawFile(
    "hypergraph/imdb4k/movie_metadata.csv",
    "74e4a9af314eea255147a6d48a5678ad7d0be3cb8ba3fdb819ef6edddb36e2ca",
    "https://github.com/cynricfu/MAGNN/raw/b8557f58ae04a7fe3e7a9fde64ea87c81b331efe"
    "/data/raw/IMDB/movie_metadata.csv",
)

Film = dict[str, str]


def _genres(film: Film) -> list[int]:
    """The ids of those of the film's genres that are classes, in the film's order."""
    return [GENRES.index(genre) for genre in film["genres"].split("|") if genre in GENRES]


def read_films(path: Path) -> list[Film]:
    """The films with a director, a first actor and a genre that is a class, in the table's order."""
    with path.open(encoding="utf-8", newline="") as table:
        return [
            film
            for film in csv.DictReader(table)
            if film["director_name"] and film["actor_1_name"] and _genres(film)
        ]


def word_counts(texts: Iterable[str]) -> sparse.csr_matrix:
    """How often each word stands in each text, for words of at least two texts, in alphabetical order.

    A word is two or more word characters in a row, in lower case.
    """
    counts = [Counter(re.findall(r"\b\w\w+\b", text.lower())) for text in texts]
    texts_with = Counter(word for count in counts for word in count)
    column = {word: index for index, word in enumerate(sorted(w for w, n in texts_with.items() if n > 1))}
    entries = [
        (number, row, column[word])
        for row, count in enumerate(counts)
        for word, number in count.items()
        if word in column
    ]
    values, rows, columns = np.array(entries, np.int64).reshape(-1, 3).T
    return sparse.csr_matrix((values.astype(np.float32), (rows, columns)), (len(counts), len(column)))


def films_by_name(films: list[Film], columns: tuple[str, ...]) -> list[list[int]]:
    """The films of every name in these columns, names in alphabetical order."""
    by_name: dict[str, list[int]] = {}
    for number, film in enumerate(films):
        for name in {film[column] for column in columns} - {""}:
            by_name.setdefault(name, []).append(number)
    return [by_name[name] for name in sorted(by_name)]


class Imdb4k(CleanedHypergraph):
    """IMDB4k: 4,278 films, 3,066 plot words, 3 genres, 2,810 distinct sets by director and by actor."""

    name = "imdb4k"
    title = "IMDB4k"
    homepage = "https://github.com/cynricfu/MAGNN"
    licence = "none stated in the README of its repository"
    protocol = fedhgn_protocol(6)
    files: ClassVar = (TABLE,)

    def raw_hyperedges(self, sources: Sources) -> list[list[int]]:
        """The films of every director, then of every actor, both by name."""
        films = read_films(sources.get(TABLE))
        return films_by_name(films, DIRECTOR) + films_by_name(films, ACTORS)

    def load(self, sources: Sources) -> Hypergraph:
        """All films; the class is the first genre that is one; rows of word counts are made to sum to 1."""
        films = read_films(sources.get(TABLE))
        words = word_counts(film["plot_keywords"] for film in films)
        labels = np.array([_genres(film)[0] for film in films], np.int64)
        return Hypergraph(l1_normalise_rows(words), labels, clean(self.raw_hyperedges(sources)), len(GENRES))
