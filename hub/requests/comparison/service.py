"""Compare two runs of users: jobs that the caller may see, or uploaded notebooks."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from ...comparison.facts import RunFacts
from ...comparison.schemas import (
    ComparedRunOut,
    ComparisonIn,
    ComparisonOut,
    Part,
    RunIn,
    ToleranceIn,
)
from ...comparison.tolerance import Tolerance
from ...errors import CarrelError, Conflict, InvalidInput, TooLarge
from ...messages import units
from ...provenance.receipt import JobReceiptOut
from ...records.identity import Identity
from ...scheduling.model.text import hours
from ...schemas import MAX_NOTEBOOK_BYTES, RequestOut
from ..queries import RequestQueries
from .order import ComparisonInput, ComparisonOrder
from .process import ComparingProcess

_MOST_LOG: Final = 8 << 20
"""Bytes of a log that are compared."""


class Receipts(Protocol):
    """Receipts of ended jobs, which say more about their environment."""

    def receipt(self, who: Identity | None, request_id: str) -> JobReceiptOut:
        """Return the receipt of a job. Raises CarrelError."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedRun:
    """A run whose content has been read."""

    facts: RunFacts
    content: bytes
    notes: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class RunComparisons:
    """Compares runs. Notebooks have at most 32 MiB each, and logs are compared up to 8 MiB."""

    requests: RequestQueries
    receipts: Receipts | None = None
    process: ComparingProcess = field(default_factory=ComparingProcess)

    def compare(self, who: Identity, wanted: ComparisonIn) -> ComparisonOut:
        """Compare two runs; blocks for seconds.

        Raises:
            NotFound: a job does not exist, the caller may not see it, or it has no output.
            Conflict: a job has not ended.
            InvalidInput: one is a command and the other a notebook, or one has no single output.
            TooLarge: a notebook is too large, or the comparison takes too long.
            Unavailable: too many comparisons are running.
        """
        a, b = self._read(who, wanted.a), self._read(who, wanted.b)
        kinds = [run.facts.about.kind for run in (a, b)]
        if kinds[0] != kinds[1]:
            names = [run.facts.about.name for run in (a, b)]
            raise InvalidInput(
                f"{names[0]} is a {kinds[0]} and {names[1]} a {kinds[1]}.",
                accepted="Two notebooks or two commands.",
            )
        order = ComparisonOrder(
            a=a.facts,
            b=b.facts,
            size=len(a.content),
            form="notebook" if kinds[0] == "notebook" else "log",
            tolerance=_tolerance(wanted.tolerance),
            ignored=_parts(wanted.ignore),
            notes=tuple(dict.fromkeys([*a.notes, *b.notes])),
        )
        return self.process.compare(ComparisonInput(order=order, a=a.content, b=b.content))

    def _read(self, who: Identity, run: RunIn) -> ComparedRun:
        if not run.request:
            name = run.name or "The notebook"
            content = run.notebook.encode(errors="replace")
            _check_size(name, len(content))
            return ComparedRun(facts=RunFacts(about=ComparedRunOut(name=name)), content=content)
        request = self.requests.request(who, run.request)
        _check_comparable(request)
        if request.command:
            return self._command(who, request)
        _, content = self.requests.output(who, request.id)
        _check_size(request.id, len(content))
        return ComparedRun(facts=_facts(request, self._receipt(who, request)), content=content)

    def _receipt(self, who: Identity, request: RequestOut) -> JobReceiptOut | None:
        try:
            return self.receipts.receipt(who, request.id) if self.receipts is not None else None
        except CarrelError:  # its files were deleted, or its receipt cannot be read
            return None

    def _command(self, who: Identity, request: RequestOut) -> ComparedRun:
        content, notes = b"", list[str]()
        facts = _facts(request, self._receipt(who, request))
        while len(content) < _MOST_LOG and (
            part := self.requests.log(who, request.id, len(content))
        ):
            content += part
        if len(content) >= _MOST_LOG:
            content = content[:_MOST_LOG]
            notes.append(f"Of each log, the first {_MOST_LOG >> 20} MiB are compared.")
        if request.roles:
            notes.append("Of jobs of several members, the log of the first member is compared.")
        return ComparedRun(facts=facts, content=content, notes=notes)


def _check_size(name: str, size: int) -> None:
    if size > MAX_NOTEBOOK_BYTES:
        raise TooLarge(
            f"{name} has {size / 2**20:.0f} MiB, which is too large to be compared.",
            accepted=f"Notebooks of at most {MAX_NOTEBOOK_BYTES >> 20} MiB.",
        )


def _check_comparable(request: RequestOut) -> None:
    if request.kind != "job":
        raise InvalidInput(f"{request.id} is a {request.kind}.", accepted="Jobs can be compared.")
    if request.sweep is not None:
        raise InvalidInput(
            f"{request.id} is a sweep: each of its trials has a notebook of its own.",
            accepted=f"Fetch them with `carrel output {request.id} --files`, and compare two of "
            "the files.",
        )
    if not request.ended:
        raise Conflict(
            f"{request.id} has not ended: it is {request.state}.",
            accepted=f"Wait for it: carrel wait {request.id}",
        )


def _facts(request: RequestOut, receipt: JobReceiptOut | None) -> RunFacts:
    """Return what the service knows about a job."""
    lease = request.lease
    run = {
        "Job": request.id,
        "Owner": request.owner,
        "Group": request.group,
        "State": request.state,
        "Device-hours": hours(request.device_seconds),
    }
    if request.started_at is not None and request.ended_at is not None:
        run["Run time"] = units.duration(request.ended_at - request.started_at)
    if lease is not None:
        run["Attempts"] = str(lease.epoch)
    environment = {"Image": request.image or "none", "Devices": _devices(request)}
    return RunFacts(
        about=ComparedRunOut(
            name=request.id,
            request=request.id,
            kind="command" if request.command else "notebook",
            state=request.state,
        ),
        command=shlex.join(request.command),
        outcome=request.state if request.command else "",
        parameters=request.parameters,
        environment=environment | (_reported(receipt) if receipt is not None else {}),
        packages=_packages(receipt),
        inputs=_inputs(receipt),
        run=run,
    )


def _reported(receipt: JobReceiptOut) -> dict[str, str]:
    """Return what the runner reported of the environment: versions, drivers, commit."""
    found: dict[str, str] = {
        f"Device {number}": device.model
        for number, device in enumerate(receipt.devices, 1)
        if device.model
    }
    reported = receipt.reported
    if reported is None:
        return found
    found |= {"Python": reported.python, "System": reported.system}
    found |= {"Driver": ", ".join(reported.drivers), "PYTHONHASHSEED": reported.hash_seed}
    if reported.git is not None:
        changed = " with changes" if reported.git.differs else ""
        found["Git commit"] = f"{reported.git.commit[:12]}{changed}"
    return {name: value for name, value in found.items() if value}


def _packages(receipt: JobReceiptOut | None) -> dict[str, str]:
    found = [] if receipt is None or receipt.reported is None else receipt.reported.packages
    return {name: version for name, _, version in (each.partition("==") for each in found)}


def _inputs(receipt: JobReceiptOut | None) -> dict[str, str]:
    if receipt is None or receipt.reported is None:
        return {}
    return {file.path: file.sha256[:12] or "not hashed" for file in receipt.reported.inputs.files}


def _devices(request: RequestOut) -> str:
    if not request.devices:
        return "none"
    model = f" {request.model}" if request.model else ""
    return f"{request.devices}{model}"


def _tolerance(given: ToleranceIn) -> Tolerance:
    return Tolerance(relative=given.relative, absolute=given.absolute, pixel=given.pixel)


def _parts(given: Sequence[Part]) -> tuple[Part, ...]:
    return tuple(dict.fromkeys(given))
