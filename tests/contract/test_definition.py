"""What a class says of itself, and hooks that are misspelt, are noticed."""

from __future__ import annotations

from typing import ClassVar

import pytest
from own_method import Misspells, Own, subject
from torch import Tensor

from bench.contract.broken import Broken
from bench.contract.definition import describes_itself, hooks_are_spelt_right
from bench.engine.method import Message, Stack
from bench.hyper import tunable
from bench.methods.fedavg import FedAvg


class HasHelpers(Own):
    """Methods beside the hooks: one that is private, one like a hook that is there too, and a further one."""

    def _agregate(self) -> None: ...

    def aggregates(self) -> None: ...

    def aggregate(self, participants: Tensor, received: Stack, upload: Message) -> None:
        super().aggregate(participants, received, upload)

    def weights(self) -> None: ...


def test_a_misspelt_hook_is_named_with_the_hook(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Broken, match="agregate") as error:
        hooks_are_spelt_right(subject(Misspells, monkeypatch))
    assert "aggregate()" in str(error.value)
    hooks_are_spelt_right(subject(HasHelpers, monkeypatch))


@pytest.mark.parametrize("name", ["adapt", "warm_up", "enrol", "artefacts"])
def test_a_hook_of_the_version_before_is_refused_and_not_left_uncalled(name: str) -> None:
    with pytest.raises(TypeError, match=name):
        type("Old", (FedAvg,), {"name": "old", name: lambda self: None})


class Misnames(Own):
    """Settings that are none, and a search beyond its limit."""

    protocol: ClassVar[dict[str, object]] = {"rouds": 3, "initial": "both"}
    client: ClassVar[dict[str, object]] = {"modl": "gcn"}

    class Hyper(FedAvg.Hyper):
        """``groups``: how many."""

        groups: int = tunable(2, search=[0, 1, 2.5, "x"], ge=1)


def test_settings_that_are_none_and_searches_beyond_limits_are_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(Broken) as error:
        describes_itself(subject(Misnames, monkeypatch))
    for part in ("rouds", "initial", "modl", "got 0", "got 2.5", "got 'x'"):
        assert part in str(error.value)


class ForgetsAnArgument(Own):
    """A hook that cannot be called as the engine calls it."""

    def load(self, own: Stack, message: Message) -> Stack:  # type: ignore[override]
        return own


def test_a_hook_that_lacks_an_argument_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Broken, match=r"load\(self, own, message\)"):
        hooks_are_spelt_right(subject(ForgetsAnArgument, monkeypatch))
