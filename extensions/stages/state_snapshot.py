"""Copies of a training state: everything with a state dict, and the random states of the process.

A state is pickled, except that an object with ``state_dict()`` and ``load_state_dict()``, wherever
it is found, contributes its state dict. When the state is restored, that is loaded into the object
which is there already. So an optimizer keeps its hold on the parameters of its model.
"""

from __future__ import annotations

import importlib
import io
import pickle
import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

_ACCEPTED = (
    "A state is an object with state_dict() and load_state_dict(), a value that pickle can copy, "
    "or a dict, list or tuple of these."
)
_IMMUTABLE = (type(None), bool, int, float, complex, str, bytes)


class TrainingState:
    """The state that steps change.

    Args:
        start: makes the first state.
        seed: of ``random``, NumPy and PyTorch before the first state is made.

    Attributes:
        value: what the next step receives.
    """

    def __init__(self, start: Callable[[], Any], seed: int) -> None:
        self.value = _started(start, seed)
        if isinstance(self.value, _IMMUTABLE):
            raise TypeError(f"start() has returned {self.value!r}, which no step can change. "
                            f"{_ACCEPTED}")  # fmt: skip  # one sentence
        self._live: list[Any] = []
        self._seeded = _generators()
        self.snapshot()  # finds the objects with a state dict

    def run(self, step: Callable[..., Any], *arguments: Any) -> Any:
        """Call a step with the state and further arguments.

        Raises:
            ImportError: it has imported NumPy or PyTorch, whose random state has no seed then.
        """
        found = step(self.value, *arguments)
        if late := _generators() - self._seeded:
            raise ImportError(
                f"step() was the first to import {' and '.join(sorted(late))}, so that the seed "
                "came too early: import it before you call carrel.stages."
            )
        return found

    def snapshot(self) -> bytes:
        """Return a copy of the state and of the random states.

        Raises:
            TypeError: a part of it cannot be copied.
        """
        file = io.BytesIO()
        pickler = _StatePickler(file)
        try:
            pickler.dump(self.value)
            body = file.getvalue()
            parts = [each.state_dict() for each in pickler.found]
            file = io.BytesIO()
            _PartsPickler(file, pickle.HIGHEST_PROTOCOL).dump((body, parts, random_states()))
        except (pickle.PicklingError, TypeError, AttributeError, RecursionError) as error:
            raise TypeError(f"The state cannot be copied: {error}. {_ACCEPTED}") from error
        self._live = pickler.found
        return file.getvalue()

    def restore(self, copied: bytes) -> None:
        """Go back to a snapshot, also one that another process has made."""
        body, parts, states = pickle.loads(copied)  # noqa: S301  # written by ourselves
        if len(parts) != len(self._live):
            raise TypeError(
                f"A checkpoint has {len(parts)} objects with a state dict, the state now has "
                f"{len(self._live)}: start() has to make all of them."
            )
        self.value = _StateUnpickler(io.BytesIO(body), self._live).load()
        for live, part in zip(self._live, parts, strict=True):
            live.load_state_dict(part)
        set_random_states(states)


class _StatePickler(pickle.Pickler):
    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self.found: list[Any] = []
        self._numbers: dict[int, int] = {}

    def persistent_id(self, obj: Any) -> int | None:
        kind = type(obj)
        if not hasattr(kind, "state_dict") or not hasattr(kind, "load_state_dict"):
            return None
        if id(obj) not in self._numbers:
            self._numbers[id(obj)] = len(self.found)
            self.found.append(obj)
        return self._numbers[id(obj)]


class _PartsPickler(pickle.Pickler):
    """Copies common tensors as arrays, which takes a third of the time.

    For state dicts only: whether two tensors share their memory is not recorded.
    """

    def reducer_override(self, obj: Any) -> Any:
        torch: Any = sys.modules.get("torch")
        if (
            torch is not None
            and type(obj) is torch.Tensor
            and obj.device.type == "cpu"
            and obj.layout is torch.strided
            and obj.is_contiguous()
            and not (obj.requires_grad or obj.is_conj() or obj.is_neg())
            and obj.dtype in (torch.float32, torch.float64, torch.int64, torch.uint8)
        ):
            return _tensor, (obj.numpy(),)
        return NotImplemented


def _tensor(array: Any) -> Any:
    torch: Any = importlib.import_module("torch")
    return torch.from_numpy(array).clone()  # in memory that is aligned as before


class _StateUnpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, live: list[Any]) -> None:
        super().__init__(file)
        self._live = live

    def persistent_load(self, number: int) -> Any:
        return self._live[number]


def _started(start: Callable[[], Any], seed: int) -> Any:
    """Return the first state; made once more if ``start`` has imported NumPy or PyTorch."""
    while True:
        before = _generators()
        set_seed(seed)
        value = start()
        if _generators() == before:
            return value


def _generators() -> set[str]:
    return {name for name in ("numpy", "torch") if name in sys.modules}


def _numpy_random() -> Any:
    """Return NumPy's module, which it imports itself only when it is first used."""
    return importlib.import_module("numpy.random") if "numpy" in sys.modules else None


def set_seed(seed: int) -> None:
    """Seed ``random``, and NumPy and PyTorch if they are imported."""
    random.seed(seed)
    if numpy := _numpy_random():
        numpy.seed(seed)
    if torch := sys.modules.get("torch"):
        torch.manual_seed(seed)


def random_states() -> dict[str, Any]:
    """Return the global random states of ``random``, NumPy and PyTorch, those of devices too."""
    states: dict[str, Any] = {"random": random.getstate()}
    if numpy := _numpy_random():
        states["numpy"] = numpy.get_state()
    if torch := sys.modules.get("torch"):
        states["torch"] = torch.get_rng_state()
        if torch.cuda.is_available() and torch.cuda.is_initialized():
            states["cuda"] = torch.cuda.get_rng_state_all()
    return states


def set_random_states(states: dict[str, Any]) -> None:
    random.setstate(states["random"])
    if "numpy" in states:
        importlib.import_module("numpy.random").set_state(states["numpy"])
    if "torch" in states:
        torch: Any = importlib.import_module("torch")
        torch.set_rng_state(states["torch"])
        if "cuda" in states:
            torch.cuda.set_rng_state_all(states["cuda"])


@contextmanager
def own_random_states() -> Iterator[None]:
    """Give the caller's random states back at the end."""
    states = random_states()
    try:
        yield
    finally:
        set_random_states(states)
