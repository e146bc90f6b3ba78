from __future__ import annotations

import os
import pickle
import subprocess
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.datasets._pickles import read_pickle


class Hostile:
    """Pickles as a call of any function."""

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        self.call = (function, arguments)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return self.call


def attacks(proof: Path) -> list[Any]:
    return [
        Hostile(os.system, f"touch {proof}"),
        {"data": [1, 2, Hostile(subprocess.call, ["touch", str(proof)])]},
        Hostile(eval, f"open({str(proof)!r}, 'w')"),
        np.array([Hostile(os.system, f"touch {proof}")], dtype=object),
        defaultdict(list, {0: Hostile(open, str(proof), "w")}),
    ]


@pytest.mark.parametrize("protocol", [0, 2, 5])
def test_a_hostile_pickle_is_refused_and_executes_nothing(tmp_path: Path, protocol: int) -> None:
    proof, file = tmp_path / "executed", tmp_path / "features.pickle"
    for attack in attacks(proof):
        content = pickle.dumps(attack, protocol)
        file.write_bytes(content)
        with pytest.raises(pickle.UnpicklingError, match="no need of"):
            read_pickle(file)
        assert not proof.exists()
        pickle.loads(content)  # the plain one executes it
        proof.unlink()


def test_an_array_of_python_2_is_read(tmp_path: Path) -> None:
    """The form of CIFAR's and Planetoid's files: byte strings, and NumPy's old module names."""
    file = tmp_path / "data.pickle"
    file.write_bytes(
        b"\x80\x02cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(K\x00tU\x01btR"
        b"(K\x01(K\x02tcnumpy\ndtype\n(U\x02u1K\x00K\x01tR(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
        b"\x89U\x02\x07\xfftb."
    )
    read = read_pickle(file)
    assert read.dtype == np.uint8
    assert read.tolist() == [7, 255]
