"""A batch that all processes have, and the part of each."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import torch
from torch.utils import _pytree as pytree

from ...hub.errors import InvalidInput


class GlobalBatch:
    """The arguments of a step; the first dimension of each tensor is that of the batch.

    Attributes:
        args: of the step, as ``kwargs``.
        rows: of the batch.

    Raises:
        InvalidInput: no argument has rows, or two have not the same number.
    """

    def __init__(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        self.args = args
        self.kwargs = kwargs
        self._leaves, self._form = pytree.tree_flatten((args, dict(kwargs)))
        counts = {len(each) for each in self._leaves if _has_rows(each)}
        if len(counts) != 1:
            found = f"tensors of {', '.join(map(str, sorted(counts)))} rows" if counts else "none"
            raise InvalidInput(
                f"A step needs a batch, and got {found}.",
                accepted="Tensors with the batch as their first dimension. The step finds other "
                "tensors as variables from around it.",
            )
        self.rows = counts.pop()

    def parts(self, size: int) -> list[float]:
        """Return the share of each of so many processes, as a part of the rows."""
        bounds = self._bounds(size)
        return [(end - start) / self.rows for start, end in pairwise(bounds)]

    def share(self, rank: int, size: int) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments for one of so many processes."""
        start, end = self._bounds(size)[rank : rank + 2]
        mine = [each[start:end] if _has_rows(each) else each for each in self._leaves]
        args, kwargs = pytree.tree_unflatten(mine, self._form)
        return args, kwargs

    def fingerprint(self) -> torch.Tensor:
        """Return numbers that depend on the values and their places; float64, in the host."""
        found = [torch.tensor(float(self.rows), dtype=torch.float64)]
        for each in self._leaves:
            if not _has_rows(each):
                continue
            content = torch.view_as_real(each) if each.is_complex() else each
            by_row = content.detach().reshape(self.rows, -1).sum(1, dtype=torch.float64)
            places = torch.arange(1, self.rows + 1, dtype=torch.float64, device=each.device)
            found.append(by_row.nan_to_num() @ places)
        return torch.stack([each.cpu() for each in found])

    def _bounds(self, size: int) -> list[int]:
        return [self.rows * rank // size for rank in range(size + 1)]


def refuse_other_batches(fingerprints: torch.Tensor) -> None:
    """Refuse fingerprints of the batches of all processes that differ.

    Raises:
        InvalidInput: two differ.
    """
    if not bool((fingerprints == fingerprints[0]).all()):
        raise InvalidInput(
            "The batches of the processes differ.",
            accepted="Each process passes the whole batch. Seed what shuffles the data.",
        )


def _has_rows(value: object) -> bool:
    return isinstance(value, torch.Tensor) and value.dim() > 0
