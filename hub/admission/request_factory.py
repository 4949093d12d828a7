"""Build requests from submitted bodies, with all checks; nothing is stored here."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ..errors import Forbidden, InvalidInput, TooLarge
from ..groups.membership import Membership
from ..insight.runtime_prediction import expected_seconds
from ..interfaces.backend import Backend
from ..interfaces.clock import Clock
from ..interfaces.files import Files
from ..interfaces.run_times import RunTimes
from ..interfaces.store import Store
from ..inventory.images import ImageCatalogue
from ..provenance.notebook_hash import source_hash
from ..records.gangs import JobGang
from ..records.identity import Identity
from ..records.images import Image
from ..records.requests import JobSpec, NewRequest
from ..runtime.context import Context
from ..scheduling.model.snapshot import Kind, PriorityClass
from ..schemas import JobIn, SessionIn
from ..schemas.names import hidden_in
from ..schemas.requests import MOST_RETRIES
from . import job_fields
from .archive import read_archive
from .gangs import gang_of
from .notebook import (
    CheckedNotebook,
    check_kernel,
    check_name,
    check_notebook,
    check_parameters,
)
from .policy import admit, class_of, seconds_of, total_devices
from .script import as_notebook

_ALPHABET = "abcdefghjkmnpqrstuvwxyz23456789"
_ID_LENGTH = 8

MIN_MEMORY_BYTES = 64 * 1024 * 1024
MAX_MEMORY_BYTES = 1 << 50
MAX_COMMAND_BYTES = 64 * 1024
MAX_PARAMETERS_BYTES = 256 * 1024
MAX_LABELS = 32
MAX_LABEL_VALUE = 128
_LABEL = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._/-]{0,61}[A-Za-z0-9])?")


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptedJob:
    """A job that passed all checks, with its files."""

    request: NewRequest
    notebook: bytes | None
    archive: bytes | None


@dataclass(frozen=True, slots=True)
class RequestFactory:
    """Applies the checks of a request that do not depend on the running requests."""

    store: Store
    membership: Membership
    backend: Backend
    files: Files
    images: ImageCatalogue
    run_times: RunTimes
    clock: Clock

    @classmethod
    def of(cls, context: Context) -> RequestFactory:
        return cls(
            context.store,
            Membership.of(context),
            context.backend,
            context.files,
            ImageCatalogue.of(context),
            context.run_times,
            context.clock,
        )

    def job(self, who: Identity, body: JobIn) -> AcceptedJob:
        """Build the request of a job. Raises a ``Refused`` that names what is accepted."""
        owner = who.name
        if body.notebook:
            body = body.model_copy(update={"notebook": as_notebook(body.notebook)})
        support = self.backend.gangs
        gang = gang_of(body, check_command, support)
        checked_notebook = _checked_notebook(body) if body.notebook else None
        if gang is not None:
            spec = _roles(body, gang)
        else:
            spec = _notebook(body, checked_notebook) if checked_notebook else _command(body)
        devices = total_devices(gang) if gang else body.devices
        checked = {
            "workdir": self._workdir(owner, body),
            "archive": bool(body.archive),
            "memory_bytes": check_memory(body.memory_bytes),
            "retries": check_retries(body.retries),
            "internet": self._internet(body.internet),
        }
        spec = replace(spec, **{**job_fields.options(body), **checked})
        labels = check_labels(body.labels)
        check_text(body.idempotency_key, "idempotency_key")
        group = self.membership.choose_group(owner, body.group)
        admit(
            self.store,
            group=group,
            devices=devices,
            seconds=body.seconds,
            model=body.model,
            preemptible=body.preemptible,
            gang=gang,
            why_one_node="" if body.arrangement == "node" else support.why_one_node,
        )
        if gang is not None:
            spec = replace(spec, gang=self._with_images(group, gang))
            image = None
        else:
            image = self.images.choose(group, body.image, body.devices)
        if checked_notebook:
            spec = replace(spec, kernel=self._kernel(owner, spec.kernel, image))
        priority = self._priority(who, group, body)
        # Last, since it is the slowest check.
        archive = read_archive(body.archive) if body.archive else None
        request_id = new_id("j")
        request = NewRequest(
            id=request_id,
            kind=Kind.JOB,
            owner=owner,
            group=group,
            devices=devices,
            model=body.model,
            seconds=body.seconds,
            idempotency_key=body.idempotency_key or request_id,
            job=spec,
            labels=labels,
            priority=priority,
            preemptible=body.preemptible,
            deadline=body.deadline,
            image=spec.gang.roles[0].image if spec.gang else image.reference if image else "",
        )
        request = replace(request, expected=self._expected(request, spec))
        notebook = checked_notebook.content.encode() if checked_notebook else None
        return AcceptedJob(request=request, notebook=notebook, archive=archive)

    def session(self, owner: str, server_name: str, options: SessionIn) -> NewRequest:
        """Build the request of a session. Raises a ``Refused`` that names what is accepted."""
        seconds = seconds_of(options.hours)
        group = self.membership.choose_group(owner, options.group)
        admit(
            self.store,
            group=group,
            devices=options.devices,
            seconds=seconds,
            model=options.model,
            kind=Kind.SESSION,
        )
        if options.claim and options.devices == 0:
            raise InvalidInput(
                "A session on CPU has no devices to hold.",
                accepted="Omit 'claim', or request at least one device.",
                field="claim",
            )
        image = self.images.choose(group, options.image, options.devices)
        request_id = new_id("s")
        return NewRequest(
            id=request_id,
            kind=Kind.SESSION,
            owner=owner,
            group=group,
            devices=options.devices,
            model=options.model,
            seconds=seconds,
            idempotency_key=request_id,
            priority=class_of(Kind.SESSION),
            server_name=server_name,
            claim=options.claim,
            image=image.reference if image else "",
        )

    def _expected(self, request: NewRequest, spec: JobSpec) -> float | None:
        """Return the likely seconds; without a forecast those of the newest similar jobs."""
        forecast = self.run_times.forecast(request, self.clock())
        if forecast is not None and forecast.basis is not None:
            return forecast.seconds
        return expected_seconds(self.store, request.owner, spec, request.seconds)

    def _with_images(self, group: str, gang: JobGang) -> JobGang:
        """Return the gang with the image of every role."""
        roles = []
        for role in gang.roles:
            image = self.images.choose(group, role.image, role.devices)
            roles.append(replace(role, image=image.reference if image else ""))
        return replace(gang, roles=tuple(roles))

    def _priority(self, who: Identity, group: str, body: JobIn) -> PriorityClass:
        """Return the requested priority. Raises Forbidden or InvalidInput."""
        priority = PriorityClass(body.priority)
        if priority is PriorityClass.URGENT and not (who.admin or self._teaches(who, group)):
            raise Forbidden(
                f"Only teachers of {group} and administrators may submit urgent jobs.",
                accepted="The priority 'normal' or 'opportunistic'.",
                field="priority",
            )
        if priority is PriorityClass.OPPORTUNISTIC and not body.preemptible:
            raise InvalidInput(
                "An opportunistic job is always preemptible.",
                accepted="Allow preemption, or choose another priority.",
                field="preemptible",
            )
        return priority

    def _teaches(self, who: Identity, group: str) -> bool:
        return group in self.store.taught_by(who.name)

    def _kernel(self, owner: str, kernel: str, image: Image | None) -> str:
        """Find the kernel among those of the image, or of the engine without an image."""
        return check_kernel(
            kernel,
            frozenset(image.kernels) if image else self.backend.kernels(self.files.home(owner)),
        )

    def _internet(self, wanted: bool) -> bool:
        """Refuse a job without internet if the engine cannot enforce that."""
        if not wanted and not self.backend.keeps_inside:
            raise InvalidInput(
                "Jobs run as processes of this machine, which cannot be kept from the internet.",
                accepted="Omit the option, or use a site that runs jobs in containers.",
                field="internet",
            )
        return wanted

    def _workdir(self, owner: str, body: JobIn) -> str:
        """Return the working folder as a path below the home, with all links resolved."""
        if not body.workdir:
            return ""
        if body.archive:
            raise InvalidInput(
                "Both a working folder and an archive of one were sent.",
                accepted="Send the archive, or the path of a folder in your home.",
                field="workdir",
            )
        home = self.files.home(owner).resolve()
        try:
            found = (home / body.workdir).resolve()
            inside = found.is_relative_to(home) and found.is_dir()
        except (OSError, ValueError, RuntimeError):  # too long, a NUL, a loop of links
            inside = False
        if not inside:
            raise InvalidInput(
                f"There is no folder {body.workdir[:200]!r} in your home.",
                accepted="The path of a folder below your home, such as 'thesis/code'.",
                field="workdir",
            )
        return "" if found == home else str(found.relative_to(home))


def grading_request(
    *,
    request_id: str,
    owner: str,
    group: str,
    devices: int,
    seconds: int,
    command: tuple[str, ...],
    retries: int,
    labels: Mapping[str, str],
    idempotency_key: str,
    priority: PriorityClass = PriorityClass.NORMAL,
    deadline: float | None = None,
    expected: float | None = None,
) -> NewRequest:
    """Build the request of a command that the service itself runs for a course.

    The courses have checked the caller's access; ``policy.admit`` checks the resources.
    """
    return NewRequest(
        id=request_id,
        kind=Kind.GRADING,
        owner=owner,
        group=group,
        devices=devices,
        seconds=seconds,
        idempotency_key=idempotency_key,
        priority=priority,
        job=JobSpec(notebook_name="", command=command, retries=retries),
        labels=labels,
        deadline=deadline,
        expected=expected or None,
    )


def _checked_notebook(body: JobIn) -> CheckedNotebook:
    assert body.notebook is not None
    if body.command:
        raise _one_of_two("Both a notebook and a command were sent.")
    return check_notebook(check_name(body.notebook.name, "notebook name"), body.notebook.content)


def _notebook(body: JobIn, notebook: CheckedNotebook) -> JobSpec:
    assert body.notebook is not None
    name = body.notebook.name
    check_parameters(name, notebook, {**body.parameters, **body.results})
    size = len(json.dumps(body.parameters, ensure_ascii=False).encode(errors="replace"))
    if size > MAX_PARAMETERS_BYTES:
        raise TooLarge(
            f"The parameters have {size >> 10:,} KiB.",
            accepted=f"At most {MAX_PARAMETERS_BYTES >> 10} KiB: put data into a file.",
            field="parameters",
        )
    return JobSpec(
        notebook_name=name,
        parameters=body.parameters,
        kernel=body.kernel or notebook.kernel,
        output_name=check_name(body.output or name, "output name"),
        notes=notebook.repairs,
        source_hash=source_hash(json.loads(notebook.content)),
    )


def _command(body: JobIn) -> JobSpec:
    if not body.command:
        raise _one_of_two("Neither a notebook nor a command was sent.")
    _check_no_notebook_fields(body)
    return JobSpec(notebook_name="", command=check_command(body.command))


def _roles(body: JobIn, gang: JobGang) -> JobSpec:
    _check_no_notebook_fields(body)
    main = next(role for role in gang.roles if gang.is_required(role.name))
    return JobSpec(notebook_name="", command=main.command, gang=gang)


def _check_no_notebook_fields(body: JobIn) -> None:
    for given, name in (
        (body.parameters, "parameters"),
        (body.results, "results"),
        (body.kernel, "kernel"),
        (body.output, "output"),
    ):
        if given:
            raise InvalidInput(
                f"A command has no {name}: that is for notebooks.",
                accepted=f"Omit {name}.",
                field=name,
            )


def check_command(command: Sequence[str]) -> tuple[str, ...]:
    """Raise InvalidInput unless a command has a program and is short enough."""
    size = sum(len(check_text(part, "command").encode()) + 1 for part in command)
    if not command[0].strip() or size > MAX_COMMAND_BYTES:
        raise InvalidInput(
            "The command has no program."
            if not command[0].strip()
            else f"The command has {size >> 10} KiB.",
            accepted="A program and its arguments, such as ['python', 'train.py']: "
            f"at most {MAX_COMMAND_BYTES >> 10} KiB together.",
            field="command",
        )
    return tuple(command)


def _one_of_two(message: str) -> InvalidInput:
    return InvalidInput(message, accepted="Send either 'notebook' or 'command'.", field="notebook")


def check_text(text: str, field: str) -> str:
    """Raise InvalidInput for text that is not valid as an argument or in a database."""
    try:
        text.encode()
        broken = "\0" in text
    except UnicodeEncodeError:
        broken = True
    if broken:
        raise InvalidInput(
            f"The field {field!r} contains invalid characters.",
            accepted="Unicode text without the character NUL.",
            field=field,
        )
    return text


def check_memory(memory_bytes: int) -> int:
    """Raise InvalidInput unless it is 0 or a limit under which Python can start."""
    if memory_bytes and not MIN_MEMORY_BYTES <= memory_bytes <= MAX_MEMORY_BYTES:
        raise InvalidInput(
            f"Memory must be between {MIN_MEMORY_BYTES >> 20} MiB and "
            f"{MAX_MEMORY_BYTES >> 50} PiB; you requested {memory_bytes:,} bytes.",
            accepted="Give 0 bytes for no limit.",
            field="memory_bytes",
        )
    return memory_bytes


def check_retries(retries: int | None) -> int | None:
    """Raise InvalidInput for a number of retries that is out of range."""
    if retries is not None and not 0 <= retries <= MOST_RETRIES:
        raise InvalidInput(
            f"{retries} retries are not possible.",
            accepted=f"0 to {MOST_RETRIES}.",
            field="retries",
        )
    return retries


def check_labels(labels: dict[str, str]) -> dict[str, str]:
    """Raise InvalidInput for invalid labels."""
    if len(labels) > MAX_LABELS:
        raise _label(f"There are {len(labels)} labels.")
    for name, value in labels.items():
        if not _LABEL.fullmatch(name):
            raise _label(f"The label {name[:80]!r} cannot be used.")
        if len(value) > MAX_LABEL_VALUE or hidden_in(value):
            raise _label(f"The value of the label {name} cannot be used.")
    return labels


def _label(message: str) -> InvalidInput:
    return InvalidInput(
        message,
        accepted=f"At most {MAX_LABELS} labels: names of 1 to 63 letters, digits and . _ - /, "
        f"values of at most {MAX_LABEL_VALUE} printable characters.",
        field="labels",
    )


def new_id(prefix: str) -> str:
    """Return a random id that is short to type, without letters that look alike."""
    return prefix + "-" + "".join(secrets.choice(_ALPHABET) for _ in range(_ID_LENGTH))
