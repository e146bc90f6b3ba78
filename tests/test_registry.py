"""Mistakes in a stranger's plug-in are one line that names its class or file, and print nothing on stdout."""

from __future__ import annotations

import inspect
import os
from pathlib import Path

import pytest

from bench import registry
from bench.dataset import DATASETS
from bench.engine.methods import METHODS
from bench.errors import RequestError
from bench.registry import PLUGINS, add_plugin, plugin

METHOD = '''
from bench.engine.method import Method


class Own(Method):
    """A method."""

    name = "own"
    title = "Own"
'''


pytestmark = pytest.mark.usefixtures("plugins")


def use(folder: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = folder / "stranger.py"
    file.write_text(text)
    monkeypatch.setenv(PLUGINS, os.fspath(file))
    registry.forget()
    return file


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


def test_a_method_of_the_suite_can_be_named_by_its_file() -> None:
    ditto = METHODS.named("ditto")
    assert add_plugin(Path(inspect.getfile(ditto))) is inspect.getmodule(ditto)
    assert registry.plugin_files() == []


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


def test_all_that_is_missing_is_said_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = DATASET
    for line in ('scenarios = ("non-overlapping",)', "protocol = Protocol()"):
        assert line in text
        text = text.replace(line, "pass")
    use(tmp_path, text.replace('homepage = ""', "pass"), monkeypatch)
    with pytest.raises(RequestError, match=r"Own of bench_plugin_stranger_* lacks 'scenarios', 'protocol'"):
        DATASETS.all()


def test_what_a_plug_in_prints_is_no_output_of_a_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "chatty.py"
    file.write_text('print("hello")\n')
    plugin(file)
    assert capsys.readouterr() == ("", "hello\n")
