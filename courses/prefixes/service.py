"""Compute the prefixes of assignments, and offer them to the jobs of the course's members.

A computation is a job of the teacher who has switched it on, or after they have left, of another
present teacher; it is charged to the course's group. Its result is copied into a folder that only
the service uses; each attempt gets a copy of its own.
"""

from __future__ import annotations

import hashlib
import io
import json
import logging
import shutil
import sys
import tarfile
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from ...hub.admission.policy import admit
from ...hub.admission.request_factory import new_id
from ...hub.errors import CarrelError, InvalidInput, NotFound, OverMaximum
from ...hub.files.filenames import safe_name
from ...hub.files.safe_fs import Owner
from ...hub.inventory.images import ImageCatalogue
from ...hub.messages import units
from ...hub.records.audit import AuditAction
from ...hub.records.identity import Identity
from ...hub.records.images import Reference
from ...hub.records.leases import LeaseRecord
from ...hub.records.requests import Cause, CauseCode, JobSpec, NewRequest, RequestRecord
from ...hub.scheduling.model.snapshot import Kind
from ...hub.scheduling.model.states import TERMINAL, State
from ...hub.scheduling.quota.tree import group_max
from ...hub.schemas.courses import PrefixesOut, PrefixIn, PrefixNotebookOut, PrefixOut
from ...hub.transitions import lifecycle
from ..files.transfer import contents
from ..model.interfaces import Blobs
from ..model.prefixes import Prefix, PrefixOffer, PrefixSavings, PrefixStore, PrefixSwitch
from ..model.records import Assignment, ReleasedVersion
from ..roster.access import GRADERS, TEACHERS, CourseAccess, check_not_archived
from . import attempt_files
from .prefix_cells import notebook_digest, prefix_notebook, prefix_plan
from .process_comparison import listing, packages

log = logging.getLogger(__name__)

LABEL, OFF = "prefix", "off"
"""The label with which a job runs all its cells."""
_COMPUTATION = "computation"
_LONGEST_SECONDS = 4 * 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """A prefix that should exist."""

    notebook: str
    text: str
    key: str
    planned: int
    digest: str
    image: str


@dataclass(frozen=True, slots=True)
class PrefixService:
    """Attributes:
    root: the folder of all prefixes; None where there are none.
    data: the folder of all courses, in which each has its data.
    owner: the account that jobs run as, where that is not the service's.
    """

    access: CourseAccess
    blobs: Blobs
    root: Path | None = None
    data: Path | None = None
    owner: Owner | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def store(self) -> PrefixStore:
        return self.access.store.prefixes

    # -- for teachers ---------------------------------------------------------------------

    def show(self, who: Identity, course: str, name: str) -> PrefixOut:
        """The prefixes of an assignment, and what they saved. For teachers and graders."""
        self.access.assignment(self.access.membership(who, course, GRADERS), name)
        savings = self.store.savings(course).get(name, PrefixSavings())
        return self._shown(course, name, self._switch(course, name), savings)

    def course(self, who: Identity, course: str) -> PrefixesOut:
        """The prefixes of all assignments that have or had one. For teachers and graders."""
        self.access.membership(who, course, GRADERS)
        switches = {each.assignment: each for each in self.store.switches(course)}
        savings = self.store.savings(course)
        return PrefixesOut(
            prefixes=[
                self._shown(course, name, switches.get(name), savings.get(name, PrefixSavings()))
                for name in sorted({*switches, *savings})
            ]
        )

    def switch(self, who: Identity, course: str, name: str, body: PrefixIn) -> PrefixOut:
        """Switch the prefix of an assignment on or off; safe to repeat. For teachers.

        Raises:
            InvalidInput: the assignment has not been released, or has no cell to run once.
            OverMaximum: the course never has so many devices.
        """
        membership = self.access.membership(who, course, TEACHERS)
        check_not_archived(membership.course)
        assignment = self.access.assignment(membership, name)
        self.access.check_unchanged(who, AuditAction.PREFIX_SET, f"{course}/{name}")
        before = self._switch(course, name)
        if not body.on:
            if before is not None:
                self._switch_off(who, before)
            return self.show(who, course, name)
        made = self._released(assignment)
        devices = assignment.devices if body.devices is None else body.devices
        most = group_max(self.access.context.store.group(course))
        if devices > most:
            raise OverMaximum(
                f"{course} never has {units.devices(devices)}.",
                accepted=f"At most {most}.",
                field="devices",
            )
        self._check_cells(made)
        now = self.access.context.clock()
        after = PrefixSwitch(course=course, assignment=name, devices=devices, by=who.name, at=now)
        change = self.access.audit_entry(
            *(who, AuditAction.PREFIX_SET, f"{course}/{name}"),
            before={} if before is None else {"devices": before.devices},
            after={"devices": devices},
        )
        with self.lock:
            self.store.switch_on(after, change=change)
            # What has failed is tried again.
            for prefix in self.store.prefixes(course, name):
                if prefix.why_not:
                    self._remove(prefix)
            self._refresh(after)
        return self.show(who, course, name)

    def clear_compiled(self, who: Identity, course: str, name: str) -> PrefixOut:
        """Delete what the computations of an assignment have compiled. For teachers.

        The prefix itself stays. Running jobs have a copy of their own. A prefix that is computed
        anew has compiled code again.
        """
        self.access.assignment(self.access.membership(who, course, TEACHERS), name)
        self.access.check_unchanged(who, AuditAction.PREFIX_SET, f"{course}/{name}")
        size = sum(each.compiled_bytes for each in self.show(who, course, name).notebooks)
        if size:
            with self.lock:
                for prefix in self.store.prefixes(course, name):
                    attempt_files.delete_compiled(self._folder(prefix))
            change = self.access.audit_entry(
                *(who, AuditAction.PREFIX_SET, f"{course}/{name}"),
                before={"compiled_bytes": size},
                after={"compiled_bytes": 0},
            )
            self.access.context.store.add_change(change)
        return self.show(who, course, name)

    def released(self, course: str, name: str) -> str:
        """Compute the prefix of a new version; return why that failed, or nothing."""
        switch = self._switch(course, name)
        if switch is None:
            return ""
        try:
            with self.lock:
                self._refresh(switch)
        except CarrelError as error:
            return f"The prefix is not computed: {error.message}"
        return ""

    # -- for jobs -------------------------------------------------------------------------

    def offer(self, request: RequestRecord, lease: LeaseRecord, folder: Path) -> bool:
        """See ``SharedPrefixes``: of the prefixes that fit, the longest one is offered."""
        if self.root is None or not _may_begin(request):
            return False
        switches = self.store.switches(request.group)
        switches = tuple(each for each in switches if each.devices == len(lease.devices))
        if not switches:
            return False
        path = self.access.context.files.input_path(request.id)
        text = path.read_text(encoding="utf-8")
        with self.lock:
            found = [
                prefix
                for switch in switches
                for prefix in self._usable(switch)
                if prefix.image == request.image
                and prefix.models == self._models(lease)
                and notebook_digest(prefix.notebook, text, prefix.planned) == prefix.digest
            ]
            if not found:
                return False
            prefix = max(found, key=lambda each: each.seconds)
            self.store.add_offer(
                PrefixOffer(
                    request=request.id,
                    epoch=lease.epoch,
                    prefix=prefix.request,
                    course=prefix.course,
                    assignment=prefix.assignment,
                    seconds=prefix.seconds,
                    devices=len(lease.devices),
                    offered_at=self.access.context.clock(),
                )
            )
            attempt_files.offer(self._folder(prefix), folder, owner=self.owner)
        return True

    def used(self, request_id: str, epoch: int) -> None:
        """See ``SharedPrefixes``."""
        self.store.use(request_id, epoch, now=self.access.context.clock())

    def ended(self, request: RequestRecord, folder: Path) -> None:
        """See ``SharedPrefixes``."""
        if request.job is None or not request.job.computes_prefix:
            attempt_files.withdraw_offer(folder)
            return
        known = self.store.prefixes(request.group, request.labels.get("assignment", ""))
        if all(each.request != request.id for each in known):
            self._discard(request)

    # -- internal -------------------------------------------------------------------------

    def _switch(self, course: str, name: str) -> PrefixSwitch | None:
        found = self.store.switches(course)
        return next((each for each in found if each.assignment == name), None)

    def _switch_off(self, who: Identity, switch: PrefixSwitch) -> None:
        course, name = switch.course, switch.assignment
        change = self.access.audit_entry(
            *(who, AuditAction.PREFIX_SET, f"{course}/{name}"), before={"devices": switch.devices}
        )
        with self.lock:
            self.store.switch_off(course, name, change=change)
            for prefix in self.store.prefixes(course, name):
                self._cancel(who, prefix)
                self._remove(prefix)

    def _cancel(self, who: Identity, prefix: Prefix) -> None:
        context = self.access.context
        try:
            record = context.store.request(prefix.request)
        except NotFound:
            return
        if record.state not in TERMINAL:
            message = f"{who.name} switched the prefix of {prefix.assignment} off."
            cause = Cause(code=CauseCode.CANCELLED, message=message)
            context.store.apply(
                record.id, lifecycle.stop, State.CANCELLED, cause, now=context.clock()
            )
            context.notifier.notify()

    def _remove(self, prefix: Prefix) -> None:
        self.store.remove(prefix.request)
        if self.root is not None:
            shutil.rmtree(self._folder(prefix), ignore_errors=True)
        with suppress(NotFound):
            record = self.access.context.store.request(prefix.request)
            if record.state in TERMINAL:
                self._discard(record)

    def _discard(self, computation: RequestRecord) -> None:
        """Delete what the attempts of a computation have saved; safe to repeat."""
        files = self.access.context.files
        if computation.lease is None or not files.keeps(computation.id):
            return
        for epoch in range(1, computation.lease.epoch + 1):
            attempt_files.discard(files.attempt_folder(computation.id, epoch))

    def _folder(self, prefix: Prefix) -> Path:
        assert self.root is not None
        return self.root / safe_name(prefix.course) / safe_name(prefix.request)

    def _released(self, assignment: Assignment) -> ReleasedVersion:
        if not assignment.version:
            raise InvalidInput(
                f"{assignment.name} has not been released.", accepted="Release it first."
            )
        return self.access.store.released_version(assignment.course, assignment.name)

    def _check_cells(self, made: ReleasedVersion) -> None:
        ends = []
        for name, text in self._notebooks(made):
            plan = prefix_plan(name, text)
            if plan.restorable:
                return
            ends.append(f"{name}: {plan.ends}" if plan.ends else f"{name} has no such cell")
        raise InvalidInput(
            f"No cell of {made.assignment} can run once for all members. "
            f"{'; '.join(ends) or 'It has no notebook'}.",
            accepted="Given cells before the first one that students edit, which read the released "
            "files or the data of the course, and only compute.",
        )

    def _notebooks(self, made: ReleasedVersion) -> Iterator[tuple[str, str]]:
        for file in made.files.files:
            if file.name.endswith(".ipynb"):
                yield file.name, contents(self.blobs, [file])[file.name].decode("utf-8", "replace")

    def _wanted(self, switch: PrefixSwitch) -> Iterator[_Wanted]:
        """The prefixes of the newest version, as they should be now."""
        course = self.access.store.course(switch.course)
        assignment = self.access.store.assignment(switch.course, switch.assignment)
        if course.archived_at is not None or not assignment.open:
            return
        made = self.access.store.released_version(switch.course, switch.assignment)
        image = self._image(switch)
        for name, text in self._notebooks(made):
            plan = prefix_plan(name, text)
            if not plan.restorable:
                continue
            planned = plan.cells[-1].index + 1
            digest = notebook_digest(name, text, planned)
            folder = None if self.data is None else self.data / safe_name(switch.course) / "data"
            try:
                data = listing(str(folder)) if plan.data and folder is not None else ""
            except ValueError:
                continue  # too many files to compare
            parts = [
                *(switch.course, switch.assignment, name, digest, made.files.sha256, data),
                *(image, str(switch.devices), "" if image else _installed()),
            ]
            yield _Wanted(
                notebook=name,
                text=text,
                key=hashlib.sha256(json.dumps(parts).encode()).hexdigest(),
                planned=planned,
                digest=digest,
                image=image,
            )

    def _image(self, switch: PrefixSwitch) -> str:
        """The image in which jobs of the course start that name none."""
        named = Reference.read(self.access.store.course(switch.course).image)
        catalogue = ImageCatalogue.of(self.access.context)
        if self.access.context.backend.images() is None:
            return ""
        found = catalogue.choose(switch.course, named.name if named else "", switch.devices)
        return found.reference if found else ""

    def _refresh(self, switch: PrefixSwitch) -> list[Prefix]:
        """Delete prefixes that are out of date, submit missing ones, and return those there are."""
        known = {each.key: each for each in self.store.prefixes(switch.course, switch.assignment)}
        wanted = {each.key: each for each in self._wanted(switch)}
        for key in known.keys() - wanted.keys():
            self._remove(known.pop(key))
        for key in wanted.keys() - known.keys():
            self._compute(switch, wanted[key])
        return list(known.values())

    def _usable(self, switch: PrefixSwitch) -> Iterator[Prefix]:
        for prefix in self._refresh(switch):
            kept = self._kept(prefix)
            if kept is None:
                continue
            if attempt_files.read_header(self._folder(kept)) is None:
                self._remove(kept)  # such as after a restore of a backup; the next job computes it
                continue
            yield kept

    def _kept(self, prefix: Prefix) -> Prefix | None:
        """Copy the result of a computation that has ended; None if there is none."""
        if prefix.kept:
            return prefix
        if prefix.why_not:
            return None
        context = self.access.context
        try:
            record = context.store.request(prefix.request)
        except NotFound:
            self._remove(prefix)
            return None
        if record.state not in TERMINAL:
            return None
        why = f"{prefix.request} {record.state}: {record.cause.message if record.cause else ''}"
        if record.state is State.SUCCEEDED and record.lease is not None:
            attempt = context.files.attempt_folder(record.id, record.lease.epoch)
            header = attempt_files.keep(attempt, self._folder(prefix))
            if header is not None:
                self._discard(record)
                kept = replace(
                    prefix,
                    kept=True,
                    first=header.first,
                    cells=header.cells,
                    seconds=header.seconds,
                    models=self._models(record.lease),
                )
                self.store.put(kept)
                return kept
            why = f"The log of {prefix.request} says why no cell can be restored."
        self._discard(record)
        self.store.put(replace(prefix, why_not=why))
        return None

    def _models(self, lease: LeaseRecord) -> tuple[str, ...]:
        models = {each.id: each.model for each in self.access.context.store.devices()}
        return tuple(sorted(str(models.get(name, "")) for name in lease.devices))

    def _compute(self, switch: PrefixSwitch, wanted: _Wanted) -> None:
        """Submit the job that computes a prefix.

        Raises:
            Conflict: the course has no teacher any more; jobs run all their cells.
        """
        context, course = self.access.context, switch.course
        owner = self.access.request_owner(course, switch.by)
        assignment = self.access.store.assignment(course, switch.assignment)
        made = self.access.store.released_version(course, switch.assignment)
        limit = self.access.max_seconds(course)
        seconds = int(min(max(assignment.seconds, 3600), _LONGEST_SECONDS, limit))
        admit(context.store, group=course, devices=switch.devices, seconds=seconds)
        plan = prefix_plan(wanted.notebook, wanted.text)
        request_id = new_id("j")
        request = NewRequest(
            id=request_id,
            kind=Kind.JOB,
            owner=owner,
            group=course,
            devices=switch.devices,
            seconds=seconds,
            idempotency_key=request_id,
            job=JobSpec(
                notebook_name=f"prefix-of-{Path(wanted.notebook).name}",
                output_name=f"prefix-of-{Path(wanted.notebook).name}",
                archive=True,
                computes_prefix=True,
            ),
            labels={"course": course, "assignment": switch.assignment, LABEL: _COMPUTATION},
            image=wanted.image,
        )
        stored = False
        try:
            notebook = prefix_notebook(wanted.notebook, wanted.text, plan)
            context.files.put_input(request_id, notebook.encode())
            context.files.put_archive(request_id, self._archive(made))
            self.store.put(
                Prefix(
                    request=request_id,
                    course=course,
                    assignment=switch.assignment,
                    notebook=wanted.notebook,
                    key=wanted.key,
                    planned=wanted.planned,
                    digest=wanted.digest,
                    image=wanted.image,
                    devices=switch.devices,
                    submitted_at=context.clock(),
                )
            )
            context.store.submit(request, context.clock())
            stored = True
        finally:
            if not stored:
                context.files.discard(request_id)
                self.store.remove(request_id)
        context.notifier.notify()

    def _archive(self, made: ReleasedVersion) -> bytes:
        """The released files, notebooks left out, as the working folder of the computation."""
        content = io.BytesIO()
        files = [file for file in made.files.files if not file.name.endswith(".ipynb")]
        with tarfile.open(fileobj=content, mode="w:gz") as archive:
            for name, found in contents(self.blobs, files).items():
                entry = tarfile.TarInfo(name)
                entry.size = len(found)
                archive.addfile(entry, io.BytesIO(found))
        return content.getvalue()

    def _shown(
        self, course: str, name: str, switch: PrefixSwitch | None, savings: PrefixSavings
    ) -> PrefixOut:
        found = self.store.prefixes(course, name) if switch is not None else ()
        return PrefixOut(
            course=course,
            assignment=name,
            on=switch is not None,
            devices=0 if switch is None else switch.devices,
            notebooks=[self._notebook_out(each) for each in found],
            jobs=savings.jobs,
            seconds=savings.seconds,
            device_seconds=savings.device_seconds,
        )

    def _notebook_out(self, prefix: Prefix) -> PrefixNotebookOut:
        with self.lock:
            kept = self._kept(prefix)
        now = kept or next(
            (
                each
                for each in self.store.prefixes(prefix.course, prefix.assignment)
                if each.request == prefix.request
            ),
            prefix,
        )
        state = "ready" if now.kept else "none" if now.why_not else "computing"
        return PrefixNotebookOut(
            notebook=now.notebook,
            request=now.request,
            state=state,
            seconds=now.seconds,
            why_not=now.why_not,
            compiled_bytes=self._compiled_bytes(now),
        )

    def _compiled_bytes(self, prefix: Prefix) -> int:
        if self.root is None or not prefix.kept:
            return 0
        return attempt_files.compiled_size(self._folder(prefix))


def _may_begin(request: RequestRecord) -> bool:
    job = request.job
    return (
        request.kind is Kind.JOB
        and job is not None
        and bool(job.notebook_name)
        and job.gang is None
        and job.sweep is None
        and not (job.continuation or job.from_cell or job.computes_prefix)
        and request.labels.get(LABEL) != OFF
    )


@cache
def _installed() -> str:
    """Python and the packages of the service, in which kernels run on an engine without images."""
    return f"{sys.version} {packages()}"
