"""Collect what the service knows of an ended job, and what its runner has reported."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from pydantic import ValidationError

from ..attempts.spec import PROVENANCE
from ..errors import CarrelError, NotFound
from ..files.safe_fs import opened_file
from ..provenance.receipt import (
    AttemptOut,
    HashedFileOut,
    HashedNotebookOut,
    JobReceiptOut,
    MemberReceiptOut,
    ReportedOut,
    SeedOut,
    TrialReceiptOut,
    UsedDeviceOut,
)
from ..records.requests import JobSpec, RequestRecord
from ..requests import outputs
from ..requests.sweeps import TrialService
from ..runtime.context import Context
from .notebook_facts import NotebookFacts, notebook_facts

RERUN_LABEL: Final = "rerun-of"
_MOST_REPORTED_BYTES: Final = 1 << 20
_MOST_FILES: Final = 200
_MOST_HASHED_BYTES: Final = 64 << 20
"""Of all output files together."""
_MOST_TRIALS: Final = 1000
_MOST_EVENTS: Final = 1000
_STARTED: Final = ("starting", "running")


@dataclass(frozen=True, slots=True)
class JobFacts:
    """Reads the facts of one ended job."""

    context: Context
    trials: TrialService
    record: RequestRecord
    job: JobSpec

    def receipt(self, site: str, key: str) -> JobReceiptOut:
        """Return the receipt.

        Args:
            site: address of the site.
            key: id of its signing key.
        """
        record, job, cause = self.record, self.job, self.record.cause
        submitted, seeds = self._submitted()
        files, left_out = self._files()
        trials, more_trials = self._trials()
        rerun_of, changes = _rerun(record)
        return JobReceiptOut(
            site=site,
            key=key,
            job=record.id,
            what="sweep" if job.sweep else "members" if job.gang else _kind(job),
            owner=record.owner,
            program=record.program,
            group=record.group,
            state=str(record.state),
            code="" if cause is None else str(cause.code),
            message="" if cause is None else cause.message,
            submitted_at=record.submitted_at,
            started_at=record.started_at,
            ended_at=record.ended_at,
            written_at=self.context.clock(),
            attempts=list(self._attempts()),
            devices=list(self._devices()),
            device_seconds=self.context.store.charged([record.id]).get(record.id, 0.0),
            image=record.image,
            requested={
                "devices": record.devices,
                "model": record.model,
                "seconds": record.seconds,
                "memory_bytes": job.memory_bytes,
                "internet": job.internet,
            },
            notebook=submitted,
            output=self._executed(),
            files=files,
            files_left_out=left_out,
            command=list(job.command),
            workdir=job.workdir,
            archive_sha256=self._archive(),
            kernel=job.kernel,
            parameters=dict(job.parameters),
            seeds=seeds,
            secrets=list(job.secrets),
            resumes=job.resumes,
            rerun_of=rerun_of,
            accepted_changes=changes,
            members=list(self._members()),
            trials=trials,
            trials_left_out=more_trials,
            reported=self._reported(),
        )

    def _attempts(self) -> Iterator[AttemptOut]:
        found: dict[int, AttemptOut] = {}
        events = self.context.store.events(
            self.record.id, kinds=frozenset({"state"}), limit=_MOST_EVENTS
        )
        for event in events:
            if event.epoch < 1:
                continue
            state, cause = str(event.data.get("state", "")), event.data.get("cause")
            known = found.get(event.epoch, AttemptOut(number=event.epoch))
            changes: dict[str, object] = {"state": state}
            if state in _STARTED:
                changes["started_at"] = known.started_at or event.at
            else:
                changes["ended_at"] = event.at
            if isinstance(cause, dict):
                changes |= {
                    "code": str(cause.get("code", "")),
                    "message": str(cause.get("message", "")),
                }
            found[event.epoch] = known.model_copy(update=changes)
        return iter(found.values())

    def _devices(self) -> Iterator[UsedDeviceOut]:
        lease = self.record.lease
        if lease is None or not lease.devices:
            return
        known = {device.id: device for device in self.context.store.devices()}
        for name in lease.devices:
            device = known.get(name)
            if device is None:
                yield UsedDeviceOut(id=name)
                continue
            yield UsedDeviceOut(
                id=name,
                model=device.model,
                memory_bytes=device.memory_bytes,
                node=device.node,
                simulated=device.simulated,
            )

    def _submitted(self) -> tuple[HashedNotebookOut | None, list[SeedOut]]:
        """Return the submitted notebook, and the calls in it that set a seed."""
        name = self.job.notebook_name
        if not name:
            return None, []
        try:
            content = outputs.submitted(self.context.files, self.record)
        except NotFound as error:
            return HashedNotebookOut(name=name, note=error.message), []
        facts = notebook_facts(content)
        return _hashed(name, content, facts), list(facts.seeds)

    def _executed(self) -> HashedNotebookOut | None:
        try:
            name, content = outputs.notebook(self.context.files, self.record)
        except NotFound:
            return None
        except CarrelError as error:
            return HashedNotebookOut(name=self.job.output_name, note=error.message)
        return _hashed(name or self.job.notebook_name, content, notebook_facts(content))

    def _archive(self) -> str:
        if not self.job.archive:
            return ""
        with suppress(OSError), self.context.files.archive_path(self.record.id).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
        return ""

    def _files(self) -> tuple[list[HashedFileOut], int]:
        storage = self.context.files
        epoch, listed = outputs.files(storage, self.record)
        found: list[HashedFileOut] = []
        left = _MOST_HASHED_BYTES
        for name, (size, _) in sorted(listed.files.items())[:_MOST_FILES]:
            if size > left:
                note = "too large to be hashed"
                found.append(HashedFileOut(name=name, size=size, note=note))
                continue
            with suppress(NotFound), storage.open_file(self.record.id, epoch, name) as file:
                content = file.read(size)
                left -= len(content)
                sha256 = hashlib.sha256(content).hexdigest()
                found.append(HashedFileOut(name=name, size=len(content), sha256=sha256))
        return found, listed.left_out + max(0, len(listed.files) - _MOST_FILES)

    def _members(self) -> Iterator[MemberReceiptOut]:
        for member in self.record.lease.members if self.record.lease else ():
            yield MemberReceiptOut(
                rank=member.rank,
                role=member.role,
                state="" if member.end is None else str(member.end.code),
                node=member.node,
                devices=list(member.devices),
            )

    def _trials(self) -> tuple[list[TrialReceiptOut], int]:
        if self.job.sweep is None:
            return [], 0
        found = self.trials.trials(None, self.record.id).trials
        shown = [
            TrialReceiptOut(
                number=trial.number,
                state=trial.state,
                parameters=trial.values,
                reported=dict(trial.reported),
            )
            for trial in found[:_MOST_TRIALS]
        ]
        return shown, len(found) - len(shown)

    def _reported(self) -> ReportedOut | None:
        """Return the report of the newest attempt; what is not in its form is left out."""
        for folder in outputs.kept_folders(self.context.files, self.record):
            with suppress(OSError), opened_file(folder, PROVENANCE) as file:
                content = file.read(_MOST_REPORTED_BYTES)
                with suppress(ValidationError):
                    return ReportedOut.model_validate_json(content)
            return None
        return None


def _kind(job: JobSpec) -> str:
    return "notebook" if job.notebook_name else "command"


def _rerun(record: RequestRecord) -> tuple[str, list[str]]:
    rerun_of = "" if record.job is None else record.job.rerun_of
    return rerun_of, [] if record.job is None else list(record.job.accepted_changes)


def _hashed(name: str, content: bytes, facts: NotebookFacts) -> HashedNotebookOut:
    return HashedNotebookOut(
        name=name,
        size=len(content),
        sha256=hashlib.sha256(content).hexdigest(),
        content_sha256=facts.content_sha256,
        source_sha256=facts.source_sha256,
        note=facts.note,
    )
