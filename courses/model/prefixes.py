"""The values of prefixes: the switch of an assignment, a computed prefix, and its uses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from ...hub.records.audit import AuditEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefixSwitch:
    """That jobs of an assignment may begin with a prefix.

    Attributes:
        devices: of the jobs that may; the prefix is computed with as many.
        by: the teacher who has switched it on: the owner of the computation.
    """

    course: str
    assignment: str
    devices: int
    by: str
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefix:
    """A prefix of one notebook.

    Attributes:
        request: the id of the job that computes it, and of the prefix itself.
        key: digest of all that it depends on.
        planned: number of cells, text cells included, that the computation runs.
        digest: of these cells.
        image: of the computation, and of the jobs that may begin with it.
        models: of the devices of the computation, sorted.
        kept: whether its files are in the store.
        first, cells: the restored cells, as in ``PrefixHeader``.
        seconds: the run time of the restored cells.
        why_not: why there is none; empty while it is computed, and if there is one.
    """

    request: str
    course: str
    assignment: str
    notebook: str
    key: str
    planned: int
    digest: str
    image: str
    devices: int
    submitted_at: float
    models: tuple[str, ...] = ()
    kept: bool = False
    first: int = 0
    cells: int = 0
    seconds: float = 0.0
    why_not: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefixOffer:
    """That an attempt of a job may begin with a prefix.

    Attributes:
        seconds: the run time of the restored cells.
        devices: of the attempt.
    """

    request: str
    epoch: int
    prefix: str
    course: str
    assignment: str
    seconds: float
    devices: int
    offered_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefixSavings:
    """What the prefixes of an assignment have saved, over all its versions."""

    jobs: int = 0
    seconds: float = 0.0
    device_seconds: float = 0.0


class PrefixStore(Protocol):
    """Stores prefixes. Each method is one transaction; ``change`` goes to the audit log."""

    def switches(self, course: str) -> tuple[PrefixSwitch, ...]:
        """The assignments of a course that are switched on, by name."""

    def switch_on(self, switch: PrefixSwitch, *, change: AuditEntry | None = None) -> None:
        """Raises NotFound where there is no such assignment."""

    def switch_off(
        self, course: str, assignment: str, *, change: AuditEntry | None = None
    ) -> None: ...

    def prefixes(self, course: str, assignment: str) -> tuple[Prefix, ...]:
        """The prefixes of an assignment, oldest first."""

    def put(self, prefix: Prefix) -> None: ...

    def remove(self, request: str) -> None: ...

    def add_offer(self, offer: PrefixOffer) -> None:
        """Store an offer; that of the same attempt is replaced unless it was used."""

    def use(self, request: str, epoch: int, *, now: float) -> bool:
        """Store that an offer was used; False where there is none, or it was used before."""

    def savings(self, course: str) -> Mapping[str, PrefixSavings]:
        """What was saved, by assignment."""
