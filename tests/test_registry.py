"""Mistakes in a stranger's plug-in are one line that names its class or file, and print nothing on stdout."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench import registry
from bench.dataset import DATASETS
from bench.engine.methods import METHODS
from bench.errors import RequestError
from bench.registry import PLUGINS, blaming, plugin
from bench.studies.study import STUDIES

METHOD = '''
from bench.engine.method import Method


class Own(Method):
    """A method."""

    name = "own"
    title = "Own"
'''


@pytest.fixture(autouse=True)
def nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv(PLUGINS, "")
    registry.forget()
    yield
    registry.forget()


def use(folder: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = folder / "stranger.py"
    file.write_text(text)
    monkeypatch.setenv(PLUGINS, os.fspath(file))
    registry.forget()
    return file


@pytest.mark.parametrize("name", ['"../../elsewhere"', '"two words"', '""', "5", "None or 5.0"])
def test_a_name_is_a_word(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = use(tmp_path, METHOD.replace('"own"', name), monkeypatch)
    with pytest.raises(RequestError) as error:
        METHODS.all()
    assert "Own" in str(error.value)
    assert file.name in str(error.value)


def test_names_of_the_suite_are_words_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(tmp_path, METHOD.replace('"own"', '"own-0.1_x"'), monkeypatch)
    assert {"own-0.1_x", "fedavg"} <= METHODS.all().keys()


def test_two_plug_ins_of_one_name_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = [tmp_path / "one.py", tmp_path / "other.py"]
    for file in files:
        file.write_text(METHOD.replace('"own"', '"twin"'))
    monkeypatch.setenv(PLUGINS, os.pathsep.join(map(os.fspath, files)))
    registry.forget()
    with pytest.raises(RequestError, match="twin"):
        METHODS.all()


def test_only_classes_with_a_name_of_their_own_are_plug_ins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite = METHODS.all().keys()
    use(tmp_path, f"{METHOD}\n\nclass Helper(Own):\n    pass\n", monkeypatch)
    assert METHODS.all().keys() - suite == {"own"}
    assert METHODS.named("own").__name__ == "Own"


STUDY = """
from bench.studies.settings import Reading
from bench.studies.study import Study


class Own(Study):
    name = "own"
    title = "Own"
    grids = experiments = lines = []
    primary = Reading("trained", "last")
"""

DATASET = """
from bench.dataset import Dataset
from bench.spec import ClientSettings, Protocol


class Own(Dataset):
    name = "own"
    title = "Own"
    family = "graph"
    homepage = ""
    scenarios = ("non-overlapping",)
    protocol = Protocol()
    client = ClientSettings()

    def load(self, sources):
        raise NotImplementedError
"""


@pytest.mark.parametrize(
    ("text", "name", "old", "new"),
    [
        (STUDY, "primary", 'primary = Reading("trained", "last")', "pass"),
        (STUDY, "primary", 'Reading("trained", "last")', '"trained"'),
        (STUDY, "title", 'title = "Own"', "title = 5"),
        (STUDY, "grids", "grids = experiments", 'grids = "cora"\n    experiments'),
        (DATASET, "scenarios", 'scenarios = ("non-overlapping",)', "pass"),
        (DATASET, "protocol", "Protocol()", '{"rounds": 3}'),
    ],
)
def test_a_study_or_data_set_declares_what_its_base_explains(
    text: str, name: str, old: str, new: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = STUDIES if text is STUDY else DATASETS
    folders = [tmp_path / "right", tmp_path / "wrong"]
    for folder in folders:
        folder.mkdir()
    use(folders[0], text, monkeypatch)
    assert "own" in kind.all()
    file = use(folders[1], text.replace(old, new), monkeypatch)
    with pytest.raises(RequestError, match=f"'{name}'") as error:
        kind.all()
    assert "own" in str(error.value)
    assert file.name in str(error.value)


def test_all_that_is_missing_is_said_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = DATASET
    for line in ('scenarios = ("non-overlapping",)', "protocol = Protocol()"):
        assert line in text
        text = text.replace(line, "pass")
    use(tmp_path, text.replace('homepage = ""', "pass"), monkeypatch)
    with pytest.raises(RequestError, match="'scenarios', 'protocol' are missing"):
        DATASETS.all()


@pytest.mark.parametrize(
    "text", ["x = 1\n", "from bench.methods.fedavg import FedAvg\n", METHOD.replace('name = "own"', "x = 1")]
)
def test_a_file_that_declares_nothing_is_refused(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = use(tmp_path, text, monkeypatch)
    with pytest.raises(RequestError, match="holds no method, data set") as error:
        DATASETS.named("cora")
    assert str(file) in str(error.value)


def test_a_file_that_adds_another_kind_is_named_with_a_name_that_nothing_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = use(tmp_path, METHOD, monkeypatch)
    with pytest.raises(RequestError, match="'own'") as error:
        DATASETS.named("own")
    assert str(file) in str(error.value)


def test_files_with_a_comma_between_them_are_refused_with_what_separates_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = use(tmp_path, METHOD, monkeypatch)
    monkeypatch.setenv(registry.PLUGINS, f"{file},{file}")
    registry.forget()
    with pytest.raises(RequestError, match="':' separates files, not ','"):
        METHODS.all()


def test_what_a_plug_in_prints_is_no_output_of_a_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "chatty.py"
    file.write_text('print("hello")\n')
    plugin(file)
    assert capsys.readouterr() == ("", "hello\n")


def test_an_error_of_a_plug_in_names_class_file_and_line(tmp_path: Path) -> None:
    file = tmp_path / "broken.py"
    file.write_text("class Broken:\n    def draw(self):\n        return {}['oops']\n")
    kind = plugin(file).Broken
    with (
        pytest.raises(RequestError, match=r"Broken of broken\.py: KeyError in line 3: 'oops'"),
        blaming(kind),
    ):
        kind().draw()


def test_errors_of_the_suite_and_refusals_stay_what_they_are(tmp_path: Path) -> None:
    file = tmp_path / "fine.py"
    file.write_text("class Fine:\n    pass\n")
    with pytest.raises(RequestError, match=r"^too many clients$"), blaming(plugin(file).Fine):
        raise RequestError("too many clients")
    with pytest.raises(KeyError), blaming(METHODS.named("fedavg")):
        raise KeyError("a defect of the suite shows its trace")


def test_a_data_set_of_no_known_family_is_refused_with_the_nearest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = """
from bench.dataset import Dataset
from bench.spec import ClientSettings, Protocol

class Own(Dataset):
    name, title, family, scenarios = "own", "Own", "graphs", ("non-overlapping",)
    protocol, client = Protocol(), ClientSettings()

    def load(self, sources):
        raise NotImplementedError
"""
    file = use(tmp_path, text, monkeypatch)
    with pytest.raises(RequestError, match="unknown family 'graphs': did you mean 'graph'") as caught:
        DATASETS.all()
    assert str(file) in str(caught.value)
    use(tmp_path, text.replace('"graphs"', '["graph"]'), monkeypatch)
    with pytest.raises(RequestError, match="unknown family"):
        DATASETS.all()
