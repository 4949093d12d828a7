"""The best split of a model into the stages of a pipeline, from measured operations and links."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from ..errors import InvalidInput
from .measurement_table import MeasuredRow, MeasurementColumns, measured_rows

MOST_OPERATIONS = 200
MOST_STAGES = 32
_MOST = 1e15
_COLUMNS = MeasurementColumns(
    names=("name", "seconds", "result_bytes", "memory"),
    required=("seconds", "result_bytes"),
    accepted="A CSV file with a row for each operation, in their order, and the columns seconds "
    "and result_bytes, and, where you know them, name and memory (bytes).",
    most_rows=MOST_OPERATIONS,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One operation of a chain, measured with one micro-batch.

    Attributes:
        seconds: its time on a device, forward and backward.
        result_bytes: what is sent if the next operation is on another device, both directions.
        memory: bytes that it needs on its device.
        name: as it was measured.
    """

    seconds: float
    result_bytes: float = 0.0
    memory: float = 0.0
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineSplit:
    """A split into stages.

    Attributes:
        cuts: numbers of the operations that begin a stage, without the first.
        stage_seconds: time of one micro-batch in each stage.
        link_seconds: time of its results on each link.
        seconds: time of all micro-batches.
    """

    cuts: tuple[int, ...]
    stage_seconds: tuple[float, ...]
    link_seconds: tuple[float, ...]
    seconds: float


def operations_from_csv(lines: Iterable[str]) -> list[Operation]:
    """Read operations from the lines of a CSV file.

    Raises:
        InvalidInput: a column is missing or unknown, or a value is not usable.
    """
    return [_operation(row) for row in measured_rows(lines, _COLUMNS)]


def _operation(row: MeasuredRow) -> Operation:
    known = "memory" in row.values
    return Operation(
        seconds=row.number("seconds", _MOST),
        result_bytes=row.number("result_bytes", _MOST, zero=True),
        memory=row.number("memory", _MOST, zero=True) if known else 0.0,
        name=row.values.get("name", "").strip(),
    )


def split_at(
    operations: Sequence[Operation],
    cuts: Sequence[int],
    links: Sequence[float],
    micro_batches: int,
) -> PipelineSplit:
    """Return what a split takes.

    The first micro-batch passes all stages and links in turn; after that the slowest of them sets
    the pace.

    Args:
        links: bytes per second between each device and the next.
    """
    bounds = [0, *cuts, len(operations)]
    stages = [
        math.fsum(each.seconds for each in operations[begin:end]) for begin, end in pairwise(bounds)
    ]
    sent = [operations[cut - 1].result_bytes / link for cut, link in zip(cuts, links, strict=False)]
    seconds = math.fsum(stages + sent) + (micro_batches - 1) * max(stages + sent)
    return PipelineSplit(
        cuts=tuple(cuts), stage_seconds=tuple(stages), link_seconds=tuple(sent), seconds=seconds
    )


def best_split(
    operations: Sequence[Operation],
    links: Sequence[float],
    micro_batches: int,
    *,
    memory: float = math.inf,
) -> PipelineSplit:
    """Return the split of a chain that takes the least time, over at most all devices.

    For a given pace, dynamic programming finds the stages with the cheapest links of which none is
    slower (as in PipeDream, Narayanan et al., SOSP 2019, which minimises the pace alone). The less
    is asked of the pace, the cheaper the links: a search by halves leaves out the paces that
    cannot lead to less time.

    Args:
        links: bytes per second between each of the equal devices and the next; one less than there
            are devices.
        micro_batches: how many pass the pipeline before the weights change.
        memory: bytes of one device.

    Raises:
        InvalidInput: there is nothing to split, or too much, or the devices have too little memory.
    """
    devices = len(links) + 1
    if not 1 <= len(operations) <= MOST_OPERATIONS or devices > MOST_STAGES or micro_batches < 1:
        raise InvalidInput(
            f"{len(operations)} operations, {devices} devices and {micro_batches} micro-batches "
            "cannot be split.",
            accepted=f"1 to {MOST_OPERATIONS} operations, 1 to {MOST_STAGES} devices, and at least "
            "1 micro-batch.",
        )
    found = _SplitSearch(operations, links, micro_batches, memory).run()
    if found is None:
        raise InvalidInput(
            f"The model does not fit on {devices} devices with {memory:.4g} bytes each.",
            accepted="More devices, more memory, or smaller operations.",
        )
    return found


class _SplitSearch:
    """A chain with its sums, and the best split so far."""

    def __init__(
        self,
        operations: Sequence[Operation],
        links: Sequence[float],
        micro_batches: int,
        memory: float,
    ) -> None:
        self._operations, self._links = operations, links
        self._repeats, self._memory = micro_batches - 1, memory
        self._seconds = [0.0, *accumulate(each.seconds for each in operations)]
        self._used = [0.0, *accumulate(each.memory for each in operations)]
        self._best: PipelineSplit | None = None

    def run(self) -> PipelineSplit | None:
        count = len(self._operations)
        stages = {self._seconds[b] - self._seconds[a] for b in range(count + 1) for a in range(b)}
        sent = {each.result_bytes / link for each in self._operations for link in self._links}
        paces = sorted(stages | sent)
        links = [self._cheapest(pace) for pace in (paces[0], paces[-1])]
        self._halve(paces, links[0], links[1])
        return self._best

    def _halve(self, paces: Sequence[float], first: float, last: float) -> None:
        """Search these paces, of which the link times of the first and the last are known."""
        middle = len(paces) // 2
        if not 0 < middle < len(paces) - 1 or first == last or self._hopeless(paces[1], last):
            return
        found = self._cheapest(paces[middle])
        self._halve(paces[: middle + 1], first, found)
        self._halve(paces[middle:], found, last)

    def _hopeless(self, pace: float, links: float) -> bool:
        """Whether no split of this pace or a slower one, with such links, beats the best one."""
        least = self._seconds[-1] + links + self._repeats * pace
        return math.isinf(links) or (self._best is not None and least >= self._best.seconds)

    def _cheapest(self, pace: float) -> float:
        """Return the least time on links at a pace, infinite if it cannot be kept; note the split.

        ``cost[end]`` is the least time on links of the operations before ``end`` in the stages so
        far, and ``begins`` where the last of these stages begins.
        """
        count = len(self._operations)
        cost = [0.0, *[math.inf] * count]
        begins: list[list[int]] = []
        least, stages = math.inf, 0
        for stage in range(min(len(self._links) + 1, count)):
            cost, begin = self._next_stage(cost, stage, pace)
            begins.append(begin)
            if cost[count] < least:
                least, stages = cost[count], stage + 1
        if math.isfinite(least):
            self._note(begins[:stages])
        return least

    def _next_stage(
        self, before: Sequence[float], stage: int, pace: float
    ) -> tuple[list[float], list[int]]:
        count = len(self._operations)
        cost, begin = [math.inf] * (count + 1), [0] * (count + 1)
        for end in range(1, count + 1):
            for start in range(end - 1, -1, -1):
                if (
                    self._seconds[end] - self._seconds[start] > pace
                    or self._used[end] - self._used[start] > self._memory
                ):
                    break
                total = before[start]
                if stage and start:
                    sent = self._operations[start - 1].result_bytes / self._links[stage - 1]
                    total = total + sent if sent <= pace else math.inf
                if total < cost[end]:
                    cost[end], begin[end] = total, start
        return cost, begin

    def _note(self, begins: Sequence[Sequence[int]]) -> None:
        cuts, end = [], len(self._operations)
        for begin in reversed(begins):
            end = begin[end]
            cuts.append(end)
        found = split_at(self._operations, cuts[-2::-1], self._links, self._repeats + 1)
        if self._best is None or found.seconds < self._best.seconds:
            self._best = found
