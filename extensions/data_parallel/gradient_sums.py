"""Sum gradients over all processes: ways that differ in what is sent, not in the result.

A sparse gradient has the rows of an embedding that a batch used. Gloo reduces such tensors; for
NCCL, and often faster, processes send their rows to each other. A dense gradient whose rows are
mostly zero can be sent by rows, too. All ways return the layout that they got.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import torch
import torch.distributed as dist

from .processes import TrainingProcesses

_PLACE: Final = "the exchange of gradients"
_ALIGNMENT: Final = 8
_NO_GRADIENT: Final = -1


def dense_sum(processes: TrainingProcesses, gradient: torch.Tensor) -> torch.Tensor:
    """Reduce all elements."""
    dense = gradient.to_dense() if gradient.is_sparse else gradient.clone()
    with processes.waiting(_PLACE):
        dist.all_reduce(dense)
    return dense.to_sparse(1).coalesce() if gradient.is_sparse else dense


def sparse_sum(processes: TrainingProcesses, gradient: torch.Tensor) -> torch.Tensor:
    """Let the backend reduce a sparse tensor; only gloo does."""
    found = gradient.coalesce()
    with processes.waiting(_PLACE):
        dist.all_reduce(found)
    return found.coalesce()


def row_sums(
    processes: TrainingProcesses,
    parameters: Sequence[torch.Tensor],
    gradients: Sequence[torch.Tensor | None],
    part: float = 1.0,
) -> list[torch.Tensor | None]:
    """Send the rows that are not zero, of all gradients at once.

    Args:
        parameters: on one device.
        gradients: of the parameters; None where this process has none. Dense ones are changed.
        part: by which gradients of this process are multiplied before.

    Returns:
        The sums; None where no process has a gradient.
    """
    own = [_rows(each, of, part) for each, of in zip(gradients, parameters, strict=True)]
    counts = torch.tensor(
        [
            _NO_GRADIENT if gradient is None else len(rows)
            for gradient, (rows, _) in zip(gradients, own, strict=True)
        ],
        dtype=torch.int64,
    )
    counts_by_rank = processes.gathered_numbers(counts, _PLACE).tolist()
    sizes = [_bytes_of(parameters, counts) for counts in counts_by_rank]
    device = parameters[0].device
    sent = torch.zeros(max(sizes), dtype=torch.uint8, device=device)
    at = 0
    for pair in own:
        for tensor in pair:
            content = tensor.contiguous().reshape(-1).view(torch.uint8)
            sent[at : at + len(content)] = content
            at += _aligned(len(content))
    received = torch.empty(processes.size, len(sent), dtype=torch.uint8, device=device)
    if len(sent):
        with processes.waiting(_PLACE):
            dist.all_gather(list(received.unbind()), sent)
    by_rank = [
        _unpacked(content, parameters, counts)
        for content, counts in zip(received, counts_by_rank, strict=True)
    ]
    sums: list[torch.Tensor | None] = []
    for index, parameter in enumerate(parameters):
        if all(counts[index] == _NO_GRADIENT for counts in counts_by_rank):
            sums.append(None)
            continue
        rows = torch.cat([each[index][0] for each in by_rank])
        values = torch.cat([each[index][1] for each in by_rank])
        gradient = gradients[index]
        if gradient is not None and not gradient.is_sparse:
            gradient[own[index][0]] = 0
            sums.append(gradient.index_add_(0, rows, values))
        else:
            found = torch.sparse_coo_tensor(
                rows.unsqueeze(0), values, parameter.shape, check_invariants=False
            )
            sums.append(found.coalesce())
    return sums


def mostly_zero_rows(gradient: torch.Tensor) -> bool:
    """Return whether a dense gradient is large, and at most half of its rows are not zero."""
    large = gradient.dim() > 1 and gradient.numel() * gradient.element_size() >= 2**20
    return large and len(_nonzero_rows(gradient)) <= len(gradient) / 2


def _nonzero_rows(gradient: torch.Tensor) -> torch.Tensor:
    # Of the numbers that are not zero, NaN is one.
    return gradient.flatten(1).count_nonzero(1).nonzero().squeeze(1)


def _rows(
    gradient: torch.Tensor | None, parameter: torch.Tensor, part: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the numbers of the rows that are not zero, and a part of these rows."""
    if gradient is None:
        return (
            torch.zeros(0, dtype=torch.int64, device=parameter.device),
            parameter.detach()[:0],
        )
    if gradient.is_sparse:
        found = gradient.coalesce()
        return found.indices()[0], found.values() * part
    rows = _nonzero_rows(gradient)
    return rows, gradient[rows] * part


def _row_bytes(parameter: torch.Tensor) -> int:
    return int(parameter.element_size() * parameter[0].numel())


def _bytes_of(parameters: Sequence[torch.Tensor], counts: Sequence[int]) -> int:
    return sum(
        _aligned(8 * max(0, count)) + _aligned(_row_bytes(parameter) * max(0, count))
        for parameter, count in zip(parameters, counts, strict=True)
    )


def _aligned(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT


def _unpacked(
    content: torch.Tensor, parameters: Sequence[torch.Tensor], counts: Sequence[int]
) -> list[tuple[torch.Tensor, torch.Tensor]]:
    found = []
    at = 0
    for parameter, count in zip(parameters, counts, strict=True):
        number = max(0, count)
        rows = content[at : at + 8 * number].view(torch.int64)
        at += _aligned(8 * number)
        size = _row_bytes(parameter) * number
        values = content[at : at + size].view(parameter.dtype).view(number, *parameter.shape[1:])
        at += _aligned(size)
        found.append((rows, values))
    return found
