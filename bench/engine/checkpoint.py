"""Saves the state of a run between two rounds in a file that holds numbers only.

The state has everything that changed after the set-up: parameters, the clients' optimisers, the method's
attributes, counts, bytes and seconds. Random streams need no state, because a name identifies each of them
(``bench.streams``). On a CPU, a run that is set up again from the same spec and continues from the file ends
with the same bits.
"""

from __future__ import annotations

import hashlib
import io
import os
import time
import warnings
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from bench.engine.method import Message, Method
from bench.engine.run import Run
from bench.paths import replacing_file, unfinished_files

MINUTES = 10.0
"""How often a run is saved. The largest runs of the suite take about a second to write."""

SETUP = frozenset({"task", "hyper"})
"""Attributes of a method that the spec decides."""

ARRAYS: list[Any] = [bytes, np.ndarray, np.dtype, np.zeros(0).__reduce__()[0], np.float64(0).__reduce__()[0]]
ARRAYS += {type(np.dtype(code)) for code in "?bhilqBHILQefdgFDG"}
"""Types that are needed to write arrays and numbers of NumPy."""


def encode(value: Any) -> Any:
    """Replace networks, optimisers and generators in a value by their states.

    Any other value that is not a number, text or tensor raises ``TypeError``.
    """
    if isinstance(value, torch.Generator):
        return value.get_state()
    if isinstance(value, (nn.Module, torch.optim.Optimizer)):
        return encode(dict(value.state_dict()))
    if isinstance(value, dict):
        return {encode(key): encode(item) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(map(encode, value))
    if isinstance(value, Tensor):
        tensor = value.detach().resolve_conj().resolve_neg()
        if tensor.layout == torch.strided and tensor.untyped_storage().nbytes() > tensor.nbytes:
            tensor = tensor.clone()  # otherwise the whole memory behind the view would be written
        return tensor
    is_array = isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in "biufc"
    if is_array or value is None or type(value) in (bool, int, float, str):
        return value
    raise TypeError(f"expected numbers, text, tensors, networks, optimisers or generators, got {value!r:.80}")


def decode(value: Any, device: torch.device, target: Any = None) -> Any:
    """Return the value that ``encode`` received. ``target`` is the same value in a run that was set up anew.

    Parameters, networks, optimisers and generators of the target are set in place. A tensor is put on the
    device of the target's tensor.
    """
    if isinstance(target, torch.Generator):
        target.set_state(value)
        return target
    if isinstance(target, (nn.Module, torch.optim.Optimizer)):
        target.load_state_dict(value)
        return target
    if isinstance(value, Tensor):
        if isinstance(target, Tensor) and target.is_leaf and target.requires_grad:
            target.data.copy_(value)
            return target
        return value.to(target.device if isinstance(target, Tensor) else device)
    if isinstance(value, dict):
        targets = target if isinstance(target, dict) else {}
        return {key: decode(item, device, targets.get(key)) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        is_alike = isinstance(target, (list, tuple)) and len(target) == len(value)
        pairs = zip(value, target if is_alike else [None] * len(value), strict=True)
        return type(value)(decode(item, device, like) for item, like in pairs)
    return value


def method_state(method: Method) -> dict[str, Any]:
    """Return the attributes of a method, except attributes that the spec decides and derived ones.

    An attribute that cannot be saved raises ``TypeError`` with its name.
    """
    state = {}
    for name, value in vars(method).items():
        if name in SETUP or name in method.derived:
            continue
        try:
            state[name] = encode(value)
        except TypeError as error:
            raise TypeError(
                f"attribute '{name}' of {method.name} cannot be kept in a checkpoint: {error}; name it in "
                f"'derived' if a run that is set up anew has it again"
            ) from None
    return state


def run_state(run: Run) -> dict[str, Any]:
    """Return everything that changes during a run, except the method's attributes."""
    return {
        "seconds": run.watch.seconds,
        "bytes_up": run.traffic.bytes_up,
        "bytes_down": run.traffic.bytes_down,
        "exchanges": run.traffic.numbered,
        "own": dict(run.own),
        "tally": run.tally.state(),
        "loss": run.loss,
        "clients": run.clients.state(),
        "first_message": [dict(run.first_message.model), dict(run.first_message.extras)],
        "kept": run.kept.state() if run.kept else None,
        "attacked": run.attacker is not None and run.attacker.replaced,
    }


def apply_state(run: Run, state: dict[str, Any], attributes: dict[str, Any]) -> None:
    """Let a run that was set up continue from the ``run_state`` and ``method_state`` of another run."""
    run.watch.seconds = state["seconds"]
    run.traffic.bytes_up, run.traffic.bytes_down = state["bytes_up"], state["bytes_down"]
    run.traffic.numbered = state["exchanges"]
    run.own, run.loss = state["own"], state["loss"]
    run.tally.resume(state["tally"])
    run.clients.resume(state["clients"])
    if run.kept is not None:
        run.kept.resume(state["kept"])
    if run.attacker is not None:
        run.attacker.replaced = state["attacked"]
    run.first_message = Message(*state["first_message"])
    run.method.receive_first(run.first_message)  # sets up what the first messages decide
    for name, value in attributes.items():
        setattr(run.method, name, decode(value, run.device, getattr(run.method, name, None)))


@dataclass
class Checkpoint:
    """The file and the interval of saving a run.

    Attributes:
        path: the file: what ``torch.save`` writes, followed by its SHA-256.
        identity: names everything that must be the same for a saved state to be taken up (code, spec,
            data). A file with another identity, or a damaged one, is not used: the run starts anew.
        minutes: how often the run is saved.
    """

    path: Path
    identity: str
    minutes: float = MINUTES
    _last_save: float = field(default_factory=time.monotonic, init=False)

    def keep(self, run: Run, round: int, seconds: float) -> None:
        """Save the run if ``minutes`` have passed since it began or was last saved.

        If that fails, the run goes on with a warning, shown once: losing it would be worse.
        """
        if time.monotonic() - self._last_save < 60 * self.minutes:
            return
        self._last_save = time.monotonic()
        try:
            self.save(run, round, seconds)
        except Exception as error:
            warnings.warn(f"{self.path} is not saved: {type(error).__name__}: {error}", stacklevel=2)

    def save(self, run: Run, round: int, seconds: float) -> None:
        """Replace the file by the state after a round, which the run reached in ``seconds``.

        If that fails, the old file stays and the error is raised.
        """
        state = {
            "identity": self.identity,
            "round": round,
            "seconds": seconds,
            "run": encode(run_state(run)),
            "method": method_state(run.method),
        }
        self.path.parent.mkdir(parents=True, exist_ok=True)
        for part in unfinished_files(self.path):
            part.unlink(missing_ok=True)
        content = io.BytesIO()
        torch.save(state, content)
        with replacing_file(self.path) as temporary, temporary.open("wb") as file:
            file.write(content.getbuffer())
            file.write(hashlib.sha256(content.getbuffer()).digest())
            file.flush()
            os.fsync(file.fileno())

    def load(self) -> dict[str, Any] | None:
        """Return the saved state; None if there is none. Warn about a file that is not used."""
        try:
            content = self.path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            error.filename = str(self.path)  # an error while reading has no file name
            raise
        size = hashlib.sha256().digest_size
        state_bytes, digest = memoryview(content)[:-size], content[-size:]
        state: dict[str, Any] = {}
        if hashlib.sha256(state_bytes).digest() == digest:
            with suppress(Exception), torch.serialization.safe_globals(ARRAYS):  # any file can lie there
                state = torch.load(io.BytesIO(state_bytes), "cpu", weights_only=True)
        if state.get("identity") == self.identity:
            return state
        problem = "it is damaged"
        if state:
            problem = f"its round {state['round']} is of other code, data, torch, device or threads"
        warnings.warn(f"{self.path} is not used and will be replaced: {problem}", stacklevel=2)
        return None

    def resume(self, run: Run) -> tuple[int, float] | None:
        """Take up the saved state. Return its round, and the seconds that the run took until then.

        If there is none, return None and leave ``run`` as it is. A file that cannot be read is an error.
        """
        state = self.load()
        if state is None or (run.kept and not state["run"]["kept"]):
            return None
        apply_state(run, decode(state["run"], run.device), state["method"])
        return state["round"], state["seconds"]
