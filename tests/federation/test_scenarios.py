from __future__ import annotations

import pytest

from bench.errors import RequestError
from bench.federation.hypergraph import LabelDirichlet
from bench.federation.images import Dirichlet
from bench.federation.scenarios import find


def test_the_number_in_the_name_is_the_concentration() -> None:
    images = find("dirichlet0.1", "toy", "images")
    assert isinstance(images, Dirichlet)
    assert images.concentration == 0.1
    default, other = (
        find("label-dirichlet", "toy", "hypergraph"),
        find("label-dirichlet0.5", "toy", "hypergraph"),
    )
    assert isinstance(default, LabelDirichlet)
    assert isinstance(other, LabelDirichlet)
    assert (default.concentration, other.concentration) == (10000.0, 0.5)


@pytest.mark.parametrize(
    ("name", "family", "message"),
    [
        ("non-overlaping", "graph", "did you mean 'non-overlapping'"),
        ("dirichlet", "images", "did you mean 'dirichlet0.1'.*; 0.1 stands for any positive number"),
        ("dirichletB", "images", "did you mean 'dirichlet0.1'"),
        ("label-dirichletB", "graph", "did you mean 'label-dirichlet'"),
        ("dirichlet0.10", "images", "positive number without padding"),
        ("dirichlet0", "images", "positive number"),
        ("dirichlet-1", "images", "unknown scenario"),
        ("dirichlet0.1", "graph", "use label-dirichlet or non-overlapping or overlapping or"),
        ("overlapping", "images", "for graph data, but toy is images data: use dirichlet0.1; 0.1 stands"),
        ("", "graph", "unknown scenario"),
    ],
)
def test_wrong_names_say_what_there_is(name: str, family: str, message: str) -> None:
    with pytest.raises(RequestError, match=message):
        find(name, "toy", family)  # type: ignore[arg-type]
