from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
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


def test_every_scenario_can_be_written_as_its_examples() -> None:
    names = forms()
    assert {"dirichlet0.1", "label-dirichlet", "label-dirichlet0.1", "overlapping"} <= set(names)
    assert "dirichlet" not in names
    for name in names:
        assert name.startswith(parse(name).name)


@pytest.mark.parametrize(
    ("name", "family", "words"),
    [
        ("non-overlaping", "graph", ("unknown scenario", "non-overlapping")),
        ("overlapping5", "graph", ("unknown scenario",)),
        ("dirichlet", "images", ("missing", "dirichlet0.1")),
        ("dirichletB", "images", ("positive number", "'B'", "dirichlet0.1")),
        ("label-dirichletB", "graph", ("positive number", "label-dirichlet0.1")),
        ("dirichlet0.10", "images", ("positive number without padding",)),
        ("dirichlet0.000010", "images", ("positive number without padding",)),
        ("dirichlet01", "images", ("positive number without padding",)),
        ("dirichlet0", "images", ("positive number",)),
        ("dirichlet-1", "images", ("positive number",)),
        ("dirichlet1e3", "images", ("positive number",)),
        ("dirichletnan", "images", ("positive number",)),
        ("dirichletinf", "images", ("positive number",)),
        ("dirichlet1\n", "images", ("positive number",)),
        ("dirichlet\u0661", "images", ("positive number",)),
        ("dirichletx", "images", ("positive number", "'x'")),
        ("dirichlet0.3-released", "images", ("0.1 or 0.2 or 0.5", "'0.3'")),
        ("dirichlet-released", "images", ("0.1 or 0.2 or 0.5",)),
        ("dirichlet0.10-released", "images", ("0.1 or 0.2 or 0.5",)),
        ("dirichlet0.1-released-released", "images", ("0.1 or 0.2 or 0.5",)),
        ("pathologcal-released", "images", ("unknown scenario", "pathological-released")),
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
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A file of the user's own with a scenario whose name goes on with a whole number."""
    file = tmp_path / "strides.py"
    file.write_text(PLUGIN)
    monkeypatch.setenv(registry.PLUGINS, str(file))
    registry.forget()
    yield
    registry.forget()


@pytest.mark.usefixtures("plugin")
def test_a_scenario_of_ones_own_reads_its_own_parameter(use_toy: Callable[..., type[Dataset]]) -> None:
    use_toy(random_graph(12))
    two, three = (build("toy", f"strides{width}", 2, 0, SPLIT) for width in (2, 3))
    assert [client.ids.tolist() for client in two.clients] == [[0, 1, 4, 5, 8, 9], [2, 3, 6, 7, 10, 11]]
    assert [client.ids.tolist() for client in three.clients] == [[0, 1, 2, 6, 7, 8], [3, 4, 5, 9, 10, 11]]
    assert two.scenario == "strides2"
    again = build("toy", "strides2", 2, 0, SPLIT)  # from the stored draw
    assert again.hash == two.hash != three.hash
    assert all(np.array_equal(a.ids, b.ids) for a, b in zip(again.clients, two.clients, strict=True))


@pytest.mark.parametrize(
    ("body", "word"),
    [("raise KeyError('oops')", "oops"), ("return None", "NoneType"), ("return data.nothing", "nothing")],
)
def test_a_draw_that_fails_is_one_line_with_its_scenario(
    body: str,
    word: str,
    use_toy: Callable[..., type[Dataset]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    use_toy(random_graph(12))
    file = tmp_path / "broken.py"
    file.write_text(PLUGIN.replace("        nodes = np.arange", f"        {body}\n        nodes = np.arange"))
    monkeypatch.setenv(registry.PLUGINS, str(file))
    registry.forget()
    with pytest.raises(RequestError) as caught:
        build("toy", "strides2", 2, 0, SPLIT)
    registry.forget()
    assert "\n" not in str(caught.value)
    assert all(part in str(caught.value) for part in ("Strides", "broken.py", word))


@pytest.mark.parametrize("seed", [-1, 2**63])
def test_a_partition_seed_that_nothing_holds_is_refused(
    seed: int, use_toy: Callable[..., type[Dataset]], suite_home: Path
) -> None:
    use_toy(random_graph(12))
    with pytest.raises(RequestError, match=str(seed)):
        build("toy", "non-overlapping", 2, seed, SPLIT)
    assert not suite_home.exists()


@pytest.mark.usefixtures("plugin")
@pytest.mark.parametrize("name", ["strides", "stridesB", "strides2.5"])
def test_a_wrong_or_missing_parameter_of_it_is_refused_in_one_line(
    name: str, use_toy: Callable[..., type[Dataset]], suite_home: Path
) -> None:
    use_toy(random_graph(12))
    with pytest.raises(RequestError) as caught:
        build("toy", name, 2, 0, SPLIT)
    assert "\n" not in str(caught.value)
    assert name in str(caught.value)
    assert "strides2" in str(caught.value)
    assert not suite_home.exists()
