from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from toy_data import random_graph

from bench import registry
from bench.dataset import Dataset
from bench.errors import RequestError
from bench.federation.build import build
from bench.federation.dirichlet import LabelDirichlet
from bench.federation.images import Dirichlet
from bench.federation.scenarios import find, forms, parse

SPLIT = (40.0, 30.0, 30.0)
Use = Callable[..., type[Dataset]]


def test_the_number_in_the_name_is_the_concentration() -> None:
    images, default, other = map(parse, ("dirichlet0.1", "label-dirichlet", "label-dirichlet0.5"))
    assert isinstance(images, Dirichlet)
    assert isinstance(default, LabelDirichlet)
    assert isinstance(other, LabelDirichlet)
    assert (images.concentration, default.concentration, other.concentration) == (0.1, 10000.0, 0.5)
    names = forms()
    assert {"dirichlet0.1", "label-dirichlet", "label-dirichlet0.1", "overlapping"} <= set(names)
    assert all(name.startswith(parse(name).name) for name in names)


@pytest.mark.parametrize(
    ("name", "family", "words"),
    [
        ("non-overlaping", "graph", ("unknown scenario", "non-overlapping")),
        ("overlapping5", "graph", ("unknown scenario",)),
        ("dirichlet", "images", ("missing", "dirichlet0.1")),
        ("dirichletB", "images", ("positive number", "'B'", "dirichlet0.1")),
        ("label-dirichletB", "graph", ("positive number", "label-dirichlet0.1")),
        ("dirichlet0.10", "images", ("positive number without padding",)),
        ("dirichlet0", "images", ("positive number",)),
        ("dirichlet1e3", "images", ("positive number",)),
        ("dirichlet1\n", "images", ("positive number",)),
        ("dirichlet\u0661", "images", ("positive number",)),
        ("dirichlet0.3-released", "images", ("0.1 or 0.2 or 0.5", "'0.3'")),
        ("pathological5", "images", ("unknown scenario", "'pathological'")),
        ("dirichlet0.1", "graph", ("for images data", "label-dirichlet", "non-overlapping")),
        ("overlapping", "images", ("for graph data", "toy is images data", "dirichlet0.1")),
        ("", "graph", ("unknown scenario",)),
    ],
)
def test_wrong_names_say_what_there_is(name: str, family: str, words: tuple[str, ...]) -> None:
    with pytest.raises(RequestError) as caught:
        find(name, "toy", family)  # type: ignore[arg-type]
    assert all(word in str(caught.value) for word in words)


PLUGIN = '''
import numpy as np
from bench.federation.scenario import Assignment, Scenario
from bench.federation.types import TEST, TRAIN, VALIDATION

class Strides(Scenario):
    """Node i goes to client (i // width) modulo the number of clients."""

    name = "strides"
    parameters = ("2",)
    families = ("graph",)

    def __init__(self, width):
        self.width = width

    @classmethod
    def parse(cls, parameter):
        return cls(int(parameter))

    def draw(self, data, clients, partition_seed, split):
        nodes = np.arange(len(data.labels))
        owner = nodes // self.width % clients
        ids = tuple(np.flatnonzero(owner == client) for client in range(clients))
        cycle = np.array([TRAIN, VALIDATION, TEST], np.int8)
        return Assignment(ids, tuple(np.resize(cycle, len(part)) for part in ids))
'''


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Makes a text a plug-in file of the user's own."""

    def use(text: str) -> None:
        (tmp_path / "strides.py").write_text(text)
        monkeypatch.setenv(registry.PLUGINS, str(tmp_path / "strides.py"))
        registry.forget()

    yield use
    registry.forget()


def test_a_scenario_of_ones_own_reads_its_own_parameter(use_toy: Use, plugin: Callable[[str], None]) -> None:
    plugin(PLUGIN)
    use_toy(random_graph(12))
    two, three = (build("toy", f"strides{width}", 2, 0, SPLIT) for width in (2, 3))
    assert [client.ids.tolist() for client in two.clients] == [[0, 1, 4, 5, 8, 9], [2, 3, 6, 7, 10, 11]]
    assert [client.ids.tolist() for client in three.clients] == [[0, 1, 2, 6, 7, 8], [3, 4, 5, 9, 10, 11]]
    assert two.scenario == "strides2"
    again = build("toy", "strides2", 2, 0, SPLIT)  # from the stored draw
    assert again.hash == two.hash != three.hash


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("strides", ("strides2",)),
        ("stridesB", ("stridesB", "strides2")),
        ("strides2.5", ("strides2.5", "strides2")),
    ],
)
def test_a_wrong_parameter_is_one_line(
    name: str,
    words: tuple[str, ...],
    use_toy: Use,
    plugin: Callable[[str], None],
    suite_home: Path,
) -> None:
    plugin(PLUGIN)
    use_toy(random_graph(12))
    with pytest.raises(RequestError) as caught:
        build("toy", name, 2, 0, SPLIT)
    assert "\n" not in str(caught.value)
    assert all(word in str(caught.value) for word in words)
    assert not [path for path in suite_home.rglob("*") if path.is_file()]
