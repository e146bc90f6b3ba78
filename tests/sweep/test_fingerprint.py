"""Which code makes a run, by its sources."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from bench import registry
from bench.sweep import fingerprint


def test_fingerprint_differs_by_method_file() -> None:
    sources = {name: fingerprint.code(name).source for name in ("local", "fedprox", "majority")}
    assert len(set(sources.values())) == 3


@pytest.fixture
def hashed_anew() -> Iterator[None]:
    caches = (fingerprint.code, fingerprint._source, fingerprint._shared_hash)
    for cache in caches:
        cache.cache_clear()
    yield
    for cache in caches:
        cache.cache_clear()


@pytest.mark.usefixtures("hashed_anew")
@pytest.mark.parametrize(
    ("edited", "changed"),
    [
        ("pfedgraph.py", {"pfedgraph"}),
        ("_neighbourhoods.py", {"fedsage", "fedsage_plus"}),  # what a method's file imports
        ("fedavg.py", {"fedavg", "fedper", "fedprox", "fedsage", "fedsage_plus"}),
        ("hypernetwork.py", {"fedavg", "fedper", "fedprox", "fedsage", "fedsage_plus", "local", "pfedgraph"}),
    ],
)
def test_fingerprint_covers_what_a_method_imports(
    edited: str, changed: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("fedavg", "fedper", "fedprox", "fedsage", "fedsage_plus", "local", "pfedgraph")
    before = {name: fingerprint.code(name).source for name in names}
    real = fingerprint._hash
    monkeypatch.setattr(fingerprint, "_hash", lambda file: "x" if file.name == edited else real(file))
    assert {fingerprint.code(name).source for name in names} == set(before.values()), "read once"
    for function in (fingerprint.code, fingerprint._source, fingerprint._shared_hash):
        function.cache_clear()
    assert {name for name in names if fingerprint.code(name).source != before[name]} == changed


@pytest.mark.usefixtures("hashed_anew")
def test_a_file_that_is_edited_later_is_not_what_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "mine.py"
    text = "from bench.methods.local import Local\n\n\nclass Mine(Local):\n    name = 'mine'\n"
    file.write_text(text)
    monkeypatch.setenv(registry.PLUGINS, str(file))
    registry.forget()
    try:
        fingerprint.code("local")  # whichever is asked for first
        file.write_text(text + "    numerics = 5\n")
        late = fingerprint.code("mine")
        for function in (fingerprint.code, fingerprint._source):
            function.cache_clear()
        assert fingerprint.code("mine").source != late.source
    finally:
        monkeypatch.delenv(registry.PLUGINS)
        registry.forget()


@pytest.mark.usefixtures("hashed_anew")
def test_the_sources_of_a_run_are_those_of_a_client_model_of_ones_own_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "wider.py"
    text = "from bench.nn.gcn import GCN\n\n\nclass Wider(GCN):\n    name = 'wider'\n"
    sources = []
    monkeypatch.setenv(registry.PLUGINS, str(file))
    try:
        for edited in (text, text + "    batches = True\n"):
            file.write_text(edited)
            registry.forget()
            for function in (fingerprint.code, fingerprint._source):
                function.cache_clear()
            sources.append({model: fingerprint.code("local", model).source for model in ("gcn", "wider")})
    finally:
        monkeypatch.delenv(registry.PLUGINS)
        registry.forget()
    first, second = sources
    assert first["gcn"] == second["gcn"] == fingerprint.code("local").source
    assert len({first["gcn"], first["wider"], second["wider"]}) == 3
