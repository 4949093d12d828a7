"""Sum the gradients of all processes during ``backward``.

Dense gradients are copied into buckets. A bucket is reduced as soon as its gradients are known,
while ``backward`` goes on (Li et al., PyTorch Distributed, VLDB 2020). Gradients by rows follow at
its end. So they are complete when ``backward`` returns, for clipping as for the optimizer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, Final

import torch
import torch.distributed as dist

from .gradient_sums import row_sums, sparse_sum
from .processes import TrainingProcesses

_FIRST_BUCKET_BYTES: Final = 2**20
_BUCKET_BYTES: Final = 25 * 2**20
_PLACE: Final = "the exchange of gradients"


class ExchangeWay(StrEnum):
    """How a gradient is summed."""

    DENSE = "all elements reduced"
    SPARSE = "sparse tensor reduced"
    ROWS = "rows exchanged"


class _Bucket:
    """Gradients of one dtype and device, that are reduced at once.

    Behind them is an element for each: how many processes have this gradient.
    """

    def __init__(self, parameters: Sequence[torch.Tensor]) -> None:
        self.parameters = tuple(parameters)
        sizes = [each.numel() for each in parameters]
        first = parameters[0]
        count = len(parameters)
        self._flat = torch.zeros(sum(sizes) + count, dtype=first.dtype, device=first.device)
        *parts, self._used = self._flat.split([*sizes, count])
        self._views = [part.view(each.shape) for part, each in zip(parts, parameters, strict=True)]
        self._places = {id(each): place for place, each in enumerate(parameters)}
        self._missing = set(self._places)
        self._sparse: set[int] = set()
        self._work: Any = None

    def add(self, parameter: torch.Tensor, part: float) -> bool:
        """Take the gradient of a parameter; return whether none is missing now."""
        place = self._places[id(parameter)]
        self._copy(place, part)
        self._used[place] = 1
        self._missing.discard(id(parameter))
        return not self._missing

    def start(self, part: float) -> None:
        """Begin to reduce; a gradient of an earlier ``backward`` counts, zero where is none."""
        for parameter in self.parameters:
            if id(parameter) in self._missing:
                place = self._places[id(parameter)]
                self._used[place] = 0
                self._copy(place, part)
        self._work = dist.all_reduce(self._flat, async_op=True)

    def finish(self) -> None:
        """Wait, and set the gradients of parameters that a process has used."""
        self._work.wait()
        for place, used in enumerate(self._used.tolist()):
            if used:
                view = self._views[place]
                self.parameters[place].grad = view.to_sparse(1) if place in self._sparse else view
        self._missing = set(self._places)

    def _copy(self, place: int, part: float) -> None:
        gradient, view = self.parameters[place].grad, self._views[place]
        if gradient is None:
            view.zero_()
        elif gradient.is_sparse:
            self._sparse.add(place)
            view.copy_(gradient.to_dense()).mul_(part)
        else:
            torch.mul(gradient, part, out=view)


class GradientExchange:
    """The gradients of some parameters; other ones are not summed.

    Args:
        parameters: that require gradients, in the same order in all processes.
        ways: of parameters by their places; DENSE where one is not named.
    """

    def __init__(
        self,
        processes: TrainingProcesses,
        parameters: Sequence[torch.Tensor],
        ways: Mapping[int, ExchangeWay],
    ) -> None:
        self._processes = processes
        apart = {place: way for place, way in ways.items() if way is not ExchangeWay.DENSE}
        self._apart = [(parameters[place], way) for place, way in apart.items()]
        dense = [each for place, each in enumerate(parameters) if place not in apart]
        # Gradients of the last layers are known first.
        self._buckets = [_Bucket(each) for each in _divided(dense[::-1])]
        self._bucket_of = {
            id(parameter): number
            for number, bucket in enumerate(self._buckets)
            for parameter in bucket.parameters
        }
        self._complete: set[int] = set()
        self._started = 0
        self._in_backward = False
        self._part: float | None = None
        self._hooks = [
            each.register_post_accumulate_grad_hook(self._gradient_known) for each in parameters
        ]

    def begin(self, part: float) -> None:
        """Sum gradients from now on.

        Args:
            part: by which gradients of this process are multiplied before.
        """
        self._part = part

    def end(self) -> None:
        self._part = None

    def remove(self) -> None:
        """Leave the parameters as they were before."""
        for hook in self._hooks:
            hook.remove()

    def _gradient_known(self, parameter: torch.Tensor) -> None:
        if self._part is None:
            return
        if not self._in_backward:
            self._in_backward = True
            torch.autograd.Variable._execution_engine.queue_callback(self._finish)
        number = self._bucket_of.get(id(parameter))
        if number is not None and self._buckets[number].add(parameter, self._part):
            self._complete.add(number)
            # In the same order in all processes.
            while self._started in self._complete:
                self._start()

    def _start(self) -> None:
        assert self._part is not None
        with self._processes.waiting(_PLACE):
            self._buckets[self._started].start(self._part)
        self._started += 1

    def _finish(self) -> None:
        while self._started < len(self._buckets):
            self._start()
        self._sum_apart()
        with self._processes.waiting(_PLACE):
            for bucket in self._buckets:
                bucket.finish()
        self._complete.clear()
        self._started = 0
        self._in_backward = False

    def _sum_apart(self) -> None:
        assert self._part is not None
        rows = [each for each, way in self._apart if way is ExchangeWay.ROWS]
        if rows:
            sums = row_sums(self._processes, rows, [each.grad for each in rows], self._part)
            for parameter, found in zip(rows, sums, strict=True):
                parameter.grad = found
        for parameter, way in self._apart:
            if way is ExchangeWay.SPARSE:
                gradient = _no_rows(parameter) if parameter.grad is None else parameter.grad
                parameter.grad = sparse_sum(self._processes, gradient * self._part)


def _no_rows(parameter: torch.Tensor) -> torch.Tensor:
    rows = torch.zeros(1, 0, dtype=torch.int64, device=parameter.device)
    return torch.sparse_coo_tensor(rows, parameter.detach()[:0], parameter.shape)


def _divided(parameters: Sequence[torch.Tensor]) -> list[list[torch.Tensor]]:
    """Return parameters in buckets of one dtype and device, in order. Each ends with the parameter
    that fills it; the first one is small, so that it is sent early."""
    found: list[list[torch.Tensor]] = []
    kind: tuple[Any, ...] | None = None
    left = 0
    for each in parameters:
        if (each.dtype, each.device) != kind or left <= 0:
            left = _BUCKET_BYTES if found else _FIRST_BUCKET_BYTES
            kind = (each.dtype, each.device)
            found.append([])
        found[-1].append(each)
        left -= each.numel() * each.element_size()
    return found
