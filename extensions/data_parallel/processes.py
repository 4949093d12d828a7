"""The processes that train together: they find each other by the variables of a gang or torchrun.

A process that fails says why in the store of the group and leaves the group. The others then get an
error in the operation in which they wait for it, and raise ``ProcessLost`` with that reason.
"""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

import torch
import torch.distributed as dist

from ...hub.errors import InvalidInput

_VARIABLES: Final = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


class ProcessLost(RuntimeError):
    """Another process failed, ended or did not answer; the training cannot go on."""


def place_of(environment: Mapping[str, str]) -> tuple[int, int]:
    """Return the rank of this process and the number of processes.

    Raises:
        InvalidInput: variables are missing, or are no such numbers.
    """
    if "RANK" not in environment and environment.get("WORLD_SIZE", "1") == "1":
        return 0, 1
    if missing := [name for name in _VARIABLES if not environment.get(name)]:
        raise InvalidInput(
            f"Variables of a process that trains with others are missing: {', '.join(missing)}.",
            accepted="A job of several members (carrel run --nodes 2), or torchrun, sets all.",
        )
    texts = environment["RANK"], environment["WORLD_SIZE"]
    if not all(text.isdecimal() for text in texts) or not int(texts[0]) < int(texts[1]):
        raise InvalidInput(
            f"RANK is {texts[0]!r} and WORLD_SIZE {texts[1]!r}.",
            accepted="RANK is a number from 0, below WORLD_SIZE.",
        )
    return int(texts[0]), int(texts[1])


@dataclass(slots=True)
class _Connection:
    """The connections of this process, of which there is one set.

    Attributes:
        store: what the processes share; None where the caller has made the connections.
        lost: why the processes no longer train together; empty while they do.
    """

    store: Any = None
    lost: str = ""


_connection: Final = _Connection()


class TrainingProcesses:
    """This process and the others.

    Attributes:
        rank: of this process, from 0.
        size: number of processes.
    """

    def __init__(self, timeout: float) -> None:
        """Wait for the other processes, if there are any.

        Args:
            timeout: seconds after which an operation fails if a process does not take part.

        Raises:
            InvalidInput: the environment has wrong variables.
            ProcessLost: not all processes have come in time, or one was lost before.
        """
        self._timeout = timeout
        if dist.is_initialized():
            self.rank, self.size = dist.get_rank(), dist.get_world_size()
            return
        self.rank, self.size = place_of(os.environ)
        if self.size > 1:
            self._connect()

    @property
    def gloo(self) -> bool:
        """Whether the operations of tensors in the host's memory can reduce sparse ones."""
        return self.size > 1 and "gloo" in str(dist.get_backend())

    def _connect(self) -> None:
        limit = timedelta(seconds=self._timeout)
        # The first is for tensors in the host's memory.
        nccl = torch.cuda.is_available() and dist.is_nccl_available()
        # The store of a lost process may be gone, or still have its reason.
        with self.waiting("the start"):
            store, _, _ = next(dist.rendezvous("env://", self.rank, self.size, timeout=limit))
            _connection.store = dist.PrefixStore("carrel", store)
            dist.init_process_group(
                "cpu:gloo,cuda:nccl" if nccl else "gloo",
                store=_connection.store,
                rank=self.rank,
                world_size=self.size,
                timeout=limit,
            )

    @contextmanager
    def waiting(self, place: str) -> Iterator[None]:
        """Raise the errors of operations in which this process waits for others as
        ``ProcessLost``."""
        if _connection.lost:
            raise ProcessLost(_connection.lost)
        try:
            yield
        except RuntimeError as error:  # of all backends
            first = next(iter(str(error).strip().split("\n")), "")
            sentence = f"Process {self.rank} of {self.size} lost the others in {place}: "
            _leave(f"{sentence}{_reason() or first}")
            raise ProcessLost(_connection.lost) from error

    def fail(self, error: BaseException) -> None:
        """Tell the others why this process fails, and leave them."""
        if self.size == 1 or _connection.lost:
            return
        first = next(iter(str(error).strip().split("\n")), "")
        sentence = f"process {self.rank} failed: {type(error).__name__}: {first}"
        if _connection.store is not None:
            with suppress(RuntimeError):
                _connection.store.set("failure", sentence)
        _leave(f"The training has ended: {sentence}")

    def gathered(self, value: Any, place: str) -> list[Any]:
        """Return a value of each process, by rank."""
        if self.size == 1:
            return [value]
        found: list[Any] = [None] * self.size
        with self.waiting(place):
            dist.all_gather_object(found, value)
        return found

    def gathered_numbers(self, values: torch.Tensor, place: str) -> torch.Tensor:
        """Return tensors of one shape in the host's memory, stacked by rank."""
        found = torch.empty(self.size, *values.shape, dtype=values.dtype)
        with self.waiting(place):
            dist.all_gather(list(found.unbind()), values)
        return found

    def longest(self, seconds: float) -> float:
        """Return the largest of the numbers of all processes."""
        return float(max(self.gathered(seconds, "the measurement of times")))

    def share(self, tensors: Sequence[torch.Tensor]) -> None:
        """Give all processes the values that tensors have in process 0."""
        with self.waiting("the distribution of weights"), torch.no_grad():
            for tensor in tensors:
                dist.broadcast(tensor, 0)

    def share_random_states(self) -> None:
        """Give all processes the states that random number generators have in process 0, so that
        they shuffle data alike."""
        numpy = sys.modules.get("numpy")
        states = [
            torch.get_rng_state(),
            random.getstate(),
            None if numpy is None else numpy.random.get_state(),
        ]
        torch_state, python_state, numpy_state = self.gathered(states, "the start")[0]
        torch.set_rng_state(torch_state)
        random.setstate(python_state)
        if numpy is not None and numpy_state is not None:
            numpy.random.set_state(numpy_state)


def _leave(reason: str) -> None:
    """End the connections, so that processes that wait for this one get an error."""
    _connection.lost = reason
    if dist.is_initialized():
        with suppress(RuntimeError):
            dist.destroy_process_group()


def _reason() -> str:
    """Return why another process failed, if it could say so."""
    if _connection.store is None:
        return ""
    with suppress(RuntimeError):
        if _connection.store.check(["failure"]):
            return str(_connection.store.get("failure").decode())
    return ""
