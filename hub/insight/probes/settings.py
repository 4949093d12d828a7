"""Values of a probe: the settings that it may try, and what it has measured of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import Final

Choice = int | str | bool

DIMENSIONS: Final = ("precision", "compiled", "devices", "threads", "workers")
"""Fields of a setting other than the batch, in the order in which they are tried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeSetting:
    """How a training step is run; None for a dimension that it does not have.

    Attributes:
        batch: samples of one step.
        devices: number of devices (GPUs).
        threads: threads of one process.
        precision: such as ``float32`` or ``bfloat16``.
        workers: processes that load data.
        compiled: whether the model is compiled.
    """

    batch: int | None = None
    devices: int | None = None
    threads: int | None = None
    precision: str | None = None
    workers: int | None = None
    compiled: bool | None = None

    @property
    def without_batch(self) -> ProbeSetting:
        return replace(self, batch=None)

    def choice(self, dimension: str) -> Choice | None:
        """Return the value of one of ``DIMENSIONS``."""
        value: Choice | None = getattr(self, dimension)
        return value

    def changed(self, dimension: str, value: Choice) -> ProbeSetting:
        return replace(self, **{dimension: value})  # type: ignore[arg-type]  # of the dimension


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeSpace:
    """What a probe may try.

    Attributes:
        start: the present setting; it is measured first.
        smallest, largest: bounds of the batch.
        devices, threads, precision, workers, compiled: the values of each dimension; empty for one
            that is not varied.
        memory_limit: bytes that the run may use; 0 if unknown.
        whole_runs: whether a measurement is a start of a whole program, which takes about as long
            for each batch; otherwise it is some steps, whose time grows with the batch.
    """

    start: ProbeSetting
    smallest: int = 1
    largest: int = 1 << 20
    devices: tuple[int, ...] = ()
    threads: tuple[int, ...] = ()
    precision: tuple[str, ...] = ()
    workers: tuple[int, ...] = ()
    compiled: tuple[bool, ...] = ()
    memory_limit: int = 0
    whole_runs: bool = False

    def choices(self, dimension: str) -> tuple[Choice, ...]:
        """Return the values of one of ``DIMENSIONS``."""
        values: tuple[Choice, ...] = getattr(self, dimension)
        return values

    def batches(self) -> list[int]:
        """Return the batches of the full grid: the present one, its doubles and its halves."""
        present = self.start.batch
        if present is None:
            return []
        found = [present]
        while found[0] // 2 >= self.smallest:
            found.insert(0, found[0] // 2)
        while found[-1] * 2 <= self.largest:
            found.append(found[-1] * 2)
        return found

    @property
    def combinations(self) -> int:
        """The number of settings of the full grid."""
        sizes = [len(self.choices(name)) for name in DIMENSIONS if self.choices(name)]
        return prod(sizes, start=len(self.batches()) or 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeMeasurement:
    """What one setting has given.

    Attributes:
        rate: work per second: samples, or runs of a whole notebook; 0 if it has failed, or if only
            memory was measured.
        memory_bytes: peak memory; 0 if unknown.
        seconds: what the measurement took.
        unit_seconds: of one unit of the progress that a whole notebook reports; 0 if unknown.
        problem: why it has failed, as a sentence; empty if it has not.
        out_of_memory: whether it has failed for lack of memory.
    """

    setting: ProbeSetting
    rate: float = 0.0
    memory_bytes: int = 0
    seconds: float = 0.0
    unit_seconds: float = 0.0
    problem: str = ""
    out_of_memory: bool = False
