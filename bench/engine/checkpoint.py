"""A run's state between two rounds, in a file that holds numbers only and is read as such.

What a run has become since it was set up: parameters, the clients' optimisers, what the method keeps
at its server, counts, bytes and seconds. Random streams are named by what they are for
(``bench.streams``) and need no state. A run that is set up anew from the same spec and goes on from
here ends, on a CPU, with the same bits.
"""

from __future__ import annotations

import io
import json
import os
import time
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

if TYPE_CHECKING:
    from bench.engine.run import Run

FORMAT = 1
MINUTES = 10.0
"""How often a run is saved: about a second of writing for the largest runs of the suite."""

SETUP = frozenset({"task", "hyper"})
"""Attributes of a method that the spec decides."""

Arrays = dict[str, NDArray[Any]]


class _Derived(Exception):
    """A value that is neither numbers nor made of them."""


class _Writer:
    """Turns values into JSON that names arrays; a tensor that occurs twice is kept once."""

    def __init__(self) -> None:
        self.arrays: Arrays = {}
        self._seen: dict[int, tuple[str, Any]] = {}

    def _array(self, kind: str, value: Any, array: NDArray[Any]) -> dict[str, str]:
        if id(value) not in self._seen:
            name = str(len(self.arrays))
            self.arrays[name] = array
            self._seen[id(value)] = (name, value)  # kept alive, so that its id stays its own
        return {kind: self._seen[id(value)][0]}

    def encode(self, value: Any) -> Any:
        """JSON for a value; raises ``_Derived`` where it holds anything but numbers and text."""
        if isinstance(value, np.generic) and not isinstance(value, (np.flexible, np.object_)):
            return {"scalar": [value.dtype.str, value.tobytes().hex()]}  # first: some are float, too
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        if isinstance(value, Tensor):
            return self._tensor(value)
        if isinstance(value, np.ndarray) and not value.dtype.hasobject:
            return self._array("array", value, value)
        if isinstance(value, torch.Generator):
            return self._array("generator", value, value.get_state().numpy())
        if isinstance(value, (nn.Module, torch.optim.Optimizer)):
            return {"state": self.encode(value.state_dict())}
        if isinstance(value, dict) and all(isinstance(key, (str, int, float, np.generic)) for key in value):
            return {"dict": [[self.encode(key), self.encode(item)] for key, item in value.items()]}
        if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
            return {type(value).__name__: [self.encode(item) for item in value]}
        raise _Derived

    def _tensor(self, value: Tensor) -> dict[str, Any]:
        plain = value.detach().cpu()
        if plain.layout == torch.sparse_coo:
            # Its own fields: whatever is sorted or summed here would change the bits of later sums.
            parts = [self._tensor(plain._indices()), self._tensor(plain._values())]
            return {"coo": [*parts, list(plain.shape), plain.is_coalesced()]}
        if plain.layout == torch.sparse_csr:
            rows, columns = self._tensor(plain.crow_indices()), self._tensor(plain.col_indices())
            return {"csr": [rows, columns, self._tensor(plain.values()), list(plain.shape)]}
        plain = plain.resolve_conj().resolve_neg()
        if plain.dtype == torch.bfloat16:  # NumPy has none
            return self._array("bfloat16", value, plain.view(torch.int16).numpy())
        return self._array("tensor", value, plain.numpy())

    def fields(self, owner: object) -> dict[str, Any]:
        """The attributes of an object that are numbers or made of them."""
        kept = {}
        for name, value in vars(owner).items():
            if name not in SETUP:
                try:
                    kept[name] = self.encode(value)
                except _Derived:
                    continue
        return kept


class _Reader:
    """Turns that JSON into values again."""

    def __init__(self, arrays: Arrays, device: torch.device) -> None:
        self._arrays = arrays
        self._device = device

    def decode(self, node: Any, now: Any = None) -> Any:
        """The value of a node. Parameters, modules, optimisers and generators of ``now`` are set in place."""
        if not isinstance(node, dict):
            return node
        ((kind, content),) = node.items()
        if kind in ("tensor", "bfloat16", "coo", "csr"):
            return self._placed(self._tensor(kind, content), now)
        if kind == "scalar":
            dtype, digits = content
            return np.frombuffer(bytes.fromhex(digits), dtype)[0]
        if kind == "array":
            return self._arrays[content].copy()
        if kind == "generator":
            now.set_state(torch.from_numpy(self._arrays[content]))
            return now
        if kind == "state":
            now.load_state_dict(self.decode(content))
            return now
        if kind == "dict":
            known = now if isinstance(now, dict) else {}
            pairs = [(self.decode(key), item) for key, item in content]
            return {key: self.decode(item, known.get(key)) for key, item in pairs}
        same = isinstance(now, (list, tuple)) and len(now) == len(content)
        old = list(now) if same else [None] * len(content)
        values = [self.decode(item, one) for item, one in zip(content, old, strict=True)]
        return tuple(values) if kind == "tuple" else values

    def _tensor(self, kind: str, content: Any) -> Tensor:
        if kind == "coo":
            indices, values, size, coalesced = content
            return torch.sparse_coo_tensor(
                self.decode(indices),
                self.decode(values),
                size,
                is_coalesced=coalesced,
                check_invariants=True,
            )
        if kind == "csr":
            rows, columns, values, size = content
            return torch.sparse_csr_tensor(
                self.decode(rows), self.decode(columns), self.decode(values), size, check_invariants=True
            )
        value = torch.from_numpy(self._arrays[content].copy())
        return value.view(torch.bfloat16) if kind == "bfloat16" else value

    def _placed(self, value: Tensor, now: Any) -> Tensor:
        if isinstance(now, Tensor) and now.is_leaf and now.requires_grad:
            with torch.no_grad():
                now.copy_(value)
            return now
        return value.to(self._device)


def _state(run: Run, round: int, seconds: float, identity: str) -> tuple[Any, Arrays]:
    """Everything that changes while a run lasts; JSON and the arrays that it names."""
    writer = _Writer()
    state = {
        "format": FORMAT,
        "identity": identity,
        "round": round,
        "total": seconds,
        "seconds": run.watch.seconds,
        "bytes": [run.wire.bytes_up, run.wire.bytes_down],
        "exchanges": writer.encode(run.wire.numbered),
        "own": writer.encode(dict(run.own)),
        "counts": writer.encode(run.counts),
        "loss": writer.encode(run.loss),
        "clients": writer.encode(run.clients.state()),
        "enrolled": writer.encode(run.enrolled),
        "attacked": run.attacker is not None and run.attacker.replaced,
        "method": writer.fields(run.method),
        "arrays": len(writer.arrays),
    }
    return state, writer.arrays


def _apply(run: Run, state: Any, arrays: Arrays) -> None:
    reader = _Reader(arrays, run.device)
    run.watch.seconds = dict(state["seconds"])
    run.wire.bytes_up, run.wire.bytes_down = state["bytes"]
    run.wire.numbered = reader.decode(state["exchanges"])
    run.own = reader.decode(state["own"])
    run.counts = reader.decode(state["counts"])
    run.loss = reader.decode(state["loss"])
    run.clients.resume(reader.decode(state["clients"]))
    if run.attacker is not None:
        run.attacker.replaced = state["attacked"]
    run.enrolled = reader.decode(state["enrolled"])
    run.method.enrol(run.enrolled)  # sets up what the first reports decide
    for name, node in state["method"].items():
        setattr(run.method, name, reader.decode(node, getattr(run.method, name, None)))


class Saved(NamedTuple):
    """The round that a saved state follows, and the seconds until then."""

    round: int
    seconds: float


def parts(path: Path) -> Iterable[Path]:
    """What processes that were killed while they saved a run have left beside its file."""
    return path.parent.glob(f"{path.stem}.*.tmp")


@dataclass
class Checkpoint:
    """Where and how often a run is saved.

    ``identity`` names whatever must be the same for a saved state to be taken up (code, spec, data);
    another one's file is ignored. A file that is damaged is, too: the run starts anew.
    """

    path: Path
    identity: str
    minutes: float = MINUTES
    _last: float = field(default_factory=time.monotonic, init=False)
    _warned: bool = field(default=False, init=False)

    def keep(self, run: Run, round: int, seconds: float) -> None:
        """Save the run if so many minutes have passed since it began or was last saved.

        Where that fails, for whatever reason, the run goes on with one warning: losing it would be worse.
        """
        if time.monotonic() - self._last < 60 * self.minutes:
            return
        self._last = time.monotonic()
        try:
            self.save(run, round, seconds)
        except Exception as error:
            if not self._warned:
                what = f"{type(error).__name__}: {error}"
                warnings.warn(f"no checkpoint after round {round}: {what}", stacklevel=2)
            self._warned = True

    def save(self, run: Run, round: int, seconds: float) -> None:
        """Replace the file by the state after a round, or leave the old one.

        ``seconds`` is what the run took so far.

        Raises:
            OSError: it cannot be written.
            TypeError: a tensor has a layout or type that is not known here.
        """
        state, arrays = _state(run, round, seconds, self.identity)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        for part in parts(self.path):
            part.unlink(missing_ok=True)
        beside = self.path.with_suffix(f".{os.getpid()}.tmp")
        try:
            with beside.open("wb") as file:
                text = np.frombuffer(json.dumps(state).encode(), np.uint8)
                named = {f"a{name}": array for name, array in arrays.items()}
                np.savez(file, allow_pickle=False, state=text, **named)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(self.path)
        finally:
            beside.unlink(missing_ok=True)

    def load(self) -> tuple[Any, Arrays] | None:
        """The saved state; None where there is none of this run, or it is damaged.

        Raises:
            OSError: the file cannot be read, which says nothing of what is in it.
        """
        try:
            content = io.BytesIO(self.path.read_bytes())
        except FileNotFoundError:
            return None
        except OSError as error:
            error.filename = str(self.path)  # which an error in the middle of it lacks
            raise
        try:
            with np.load(content, allow_pickle=False) as file:
                if file.zip.testzip() is not None:
                    return None
                state = json.loads(file["state"].tobytes())
                if (state["format"], state["identity"]) != (FORMAT, self.identity):
                    return None
                # Checksums guard what is in the archive; a damaged directory only hides some of it.
                arrays = {name[1:]: file[name] for name in file.files if name != "state"}
                return (state, arrays) if len(arrays) == state["arrays"] else None
        except MemoryError:
            raise
        except Exception:  # a damaged file raises whatever it looks like
            return None

    def resume(self, run: Run) -> Saved | None:
        """Take up the saved state; None, and ``run`` untouched, where there is nothing to take up.

        Raises:
            OSError: it cannot be read.
        """
        found = self.load()
        if found is None:
            return None
        state, arrays = found
        _apply(run, state, arrays)
        return Saved(state["round"], state["total"])
