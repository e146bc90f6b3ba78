"""What a command line that cannot be read is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import registry

from .conftest import Bench


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("sweep -d cora -m local --rounds 3", "--set protocol.rounds=VALUE"),
        ("sweep -d cora --learning-rate=1", "--set client.learning_rate=VALUE"),
        ("sweep --trials 3", "bench sweep --help"),
        ("tune --trails 3", "did you mean --trials?"),
        ("sweep --timeout 5", "did you mean --timeout-seconds?"),
        ("db check --rounds 3", "bench db check --help"),
    ],
)
def test_an_unknown_option_is_refused_with_what_is_meant(
    words: str, meant: str, bench: Bench, home: Path
) -> None:
    option = next(word for word in words.split() if word.startswith("--")).partition("=")[0]
    ended = bench(words)
    assert ended.refused
    assert option in ended.err
    assert meant in ended.err
    assert not home.exists()


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("sweep weight_decay --dry-run", "--grid weight_decay"),
        ("report cora", "--dataset cora"),
        ("runs list overlapping", "--scenario overlapping"),
        ("sweep -d cora fedavg", "--method fedavg"),
        ("report fedhgn", "--study fedhgn"),
        ("scenarios cora", "bench scenarios --help"),
        ("report nosuch", "bench report --help"),
    ],
)
def test_a_word_too_many_is_refused_with_the_option_that_takes_it(
    words: str, meant: str, bench: Bench, home: Path
) -> None:
    ended = bench(words)
    assert ended.refused
    assert meant in ended.err
    assert not home.exists()


@pytest.mark.usefixtures("plugins")
def test_a_word_too_many_is_refused_beside_a_plug_in_that_is_broken_too(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(registry.PLUGINS, str(tmp_path / "none.py"))
    registry.forget()
    ended = bench("report nosuch")
    assert ended.refused
    assert "nosuch" in ended.err
