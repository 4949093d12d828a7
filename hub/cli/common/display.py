"""Print requests, devices and usage in a terminal, or as JSON."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

import click
from pydantic import BaseModel

from ...messages import requests as request_messages
from ...messages import units, utilization
from ...messages.timed_text import TimedSentence, TimedText, expected_start, reservation
from ...records.error_classes import error_class
from ...records.requests import CauseCode
from ...scheduling.model.text import hours
from ...schemas import (
    DeviceOut,
    JobSignOut,
    LedgerOut,
    PipelineJobOut,
    PipelineOut,
    PoolOut,
    ProgressOut,
    QueueOut,
    RequestOut,
    WaitOut,
    WarningOut,
)
from ...schemas.names import is_hidden
from ...schemas.requests import ExpectedEndOut
from ...schemas.sweeps import ReportOut, SweepOut
from .terminal import plain

_WIDEST = 40
"""Max length of a name in a list."""


def as_json(value: object) -> None:
    """Print a value as one line of JSON."""
    click.echo(dumped(value))


def listed(found: Sequence[object], *, empty: str, as_json: bool) -> bool:
    """Print a list as JSON, one object per line, or the sentence for an empty one.

    Returns whether that was all; otherwise the caller prints a table.
    """
    if as_json:
        for each in found:
            click.echo(dumped(each))
    elif not found:
        click.echo(empty)
    return as_json or not found


def dumped(value: object) -> str:
    return json.dumps(_plain(value), ensure_ascii=False)


def _plain(value: object) -> object:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value


def local_time(moment: float | None, now: float, *, clock: str = "%H:%M") -> str:
    """Format a time in the local zone: ``14:05`` today, ``20 Nov 14:05`` otherwise."""
    if moment is None:
        return ""
    local, today = _local(moment), _local(now)
    if local.date() == today.date():
        return local.strftime(clock)
    year = "" if local.year == today.year else " %Y"
    return local.strftime(f"%-d %b{year} {clock}")


def dated(line: TimedSentence, now: float) -> str:
    """Return a sentence with its times as text."""
    return "".join(f"{part.before}{_time_of(part, now)}{part.after}" for part in line)


def _time_of(part: TimedText, now: float) -> str:
    if part.at is None or part.show == "clock":
        return local_time(part.at, now)
    left = units.coming(part.at - now)
    return left if left == units.HERE else f"{local_time(part.at, now)} ({left})"


def waits(wait: WaitOut, now: float) -> str:
    """Return position, reason and expected start as one line."""
    return f"{wait.sentence} {dated(expected_start(wait, now), now)}".rstrip()


def exact_time(moment: float | None, now: float) -> str:
    """Format a time with seconds, since charges are exact to the second."""
    return local_time(moment, now, clock="%H:%M:%S")


def zone(now: float) -> str:
    """Return the name of the local time zone: ``CET``, ``UTC``."""
    return _local(now).strftime("%Z")


def _local(moment: float) -> datetime:
    return datetime.fromtimestamp(moment, UTC).astimezone()


def clock_time(moment: float) -> str:
    """Format a time of day in the local zone: ``14:05:09``."""
    return _local(moment).strftime("%H:%M:%S")


def table(
    header: Sequence[str], rows: Iterable[Sequence[str]], *, right: str = "", err: bool = False
) -> None:
    """Print a table; the columns named in ``right`` are right-aligned.

    ``err``: on stderr, beside another result.
    """
    # Names come from other users: they must not contain control characters.
    lines = [list(header), *([printable(text) for text in row] for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    for line in lines:
        cells = [
            cell.rjust(width) if name in right.split(",") else cell.ljust(width)
            for name, cell, width in zip(header, line, widths, strict=True)
        ]
        click.echo("  ".join(cells).rstrip(), err=err)


def printable(text: str) -> str:
    """Replace control characters and line breaks with question marks."""
    return text if text.isprintable() else "".join("?" if is_hidden(c) else c for c in text)


def requests_table(
    requests: Sequence[RequestOut], now: float, *, owners: bool, why: bool = False
) -> None:
    header = ["ID", "STATE", "WHAT", "GROUP", "DEVICES", "SUBMITTED", "LEFT"]
    rows = [_request_row(request, now) for request in requests]
    if why:
        header += ["EXPECTED", "WHY"]
        rows = [
            [*row, *_why_columns(request, now)] for row, request in zip(rows, requests, strict=True)
        ]
    if owners:
        header.insert(1, "OWNER")
        rows = [
            [row[0], request.owner, *row[1:]] for row, request in zip(rows, requests, strict=True)
        ]
    table(header, rows, right="DEVICES,LEFT")


def _request_row(request: RequestOut, now: float) -> list[str]:
    left = "" if request.ended or request.ends_by is None else units.duration(request.ends_by - now)
    return [
        request.id,
        place(request),
        what(request),
        request.group,
        devices_of(request),
        local_time(request.submitted_at, now),
        left,
    ]


def _why_columns(request: RequestOut, now: float) -> list[str]:
    if request.wait is None:
        return ["", ""]
    return [local_time(request.wait.expected_at, now), request.wait.sentence]


def place(request: RequestOut) -> str:
    """Describe the state of a request: ``queued, position 2``, ``running 3/9``, ``timed out``."""
    state = request_messages.state_name(request.state)
    if request.wait and request.wait.place:
        return f"{state}, position {request.wait.place}"
    if request.warning:
        return f"{state}, {_warned(request.warning)}"
    if request.progress and request.progress.cells and request.state == "running":
        state = f"{state} {request.progress.done}/{request.progress.cells}"
    if (left := request.remaining) and left.runs and request.state == "running":
        return f"{state}, about {units.about(left.seconds)} left"
    return state


def _warned(warning: WarningOut) -> str:
    if warning.kind == "time_limit":
        return "ends soon"
    if warning.kind == "halt":
        return "halting"
    return "to be stopped" if warning.final else "idle"


def what(request: RequestOut) -> str:
    if request.kind == "session":
        return f"session {request.server_name}".strip()
    return request_messages.work_title(
        request.kind, request.notebook, request.command, request.labels
    )[:_WIDEST]


def devices_of(request: RequestOut) -> str:
    simulated = request.lease and any(device.simulated for device in request.lease.devices)
    return f"{request.devices} simulated" if simulated else str(request.devices)


def request_details(
    request: RequestOut,
    now: float,
    reported: Iterable[ReportOut] = (),
    pipeline: PipelineOut | None = None,
) -> None:
    """Print all facts about one request, one on each line.

    Args:
        pipeline: the jobs before and after it.
    """
    last = ", ".join(f"{each.name} {_number(each.last)}" for each in reported)
    links = _links(request, pipeline, now)
    for name, value in (*_facts(request, now), *links, ("Reported values", last)):
        if value:
            click.echo(f"{name + ':':<16} {printable(value)}")
    if request.cause and request.cause.details:
        click.echo("\n" + plain(request.cause.details).rstrip())


def _sign(sign: JobSignOut, request: RequestOut, now: float) -> str:
    since = local_time(sign.since, now)
    if request.ended or sign.ended_at is not None:
        until = "the end" if sign.ended_at is None else local_time(sign.ended_at, now)
        return f"{sign.message} From {since} to {until}."
    return (
        f"{sign.message} Since {since}. {sign.suggestion} The job goes on; "
        f"`carrel cancel {request.id}` stops it."
    )


def _links(
    request: RequestOut, pipeline: PipelineOut | None, now: float
) -> Iterable[tuple[str, str]]:
    """Yield the jobs that this one waits for, and those that wait for it, with their states."""
    if pipeline is None or not pipeline.links:
        yield "After", ", ".join(request.after)
        return
    jobs = {job.id: job for job in pipeline.jobs}
    before, then = list[str](), list[str]()
    for link in pipeline.links:
        if link.then == request.id and link.kind != "resumes":
            before.append(_member(jobs[link.first], link.kind))
        if link.first == request.id:
            then.append(_member(jobs[link.then], link.kind))
    yield "After", ", ".join(before)
    yield "Then", ", ".join(then)
    if pipeline.expected_end is not None:
        yield "Pipeline ends", pipeline_end(pipeline.expected_end, now)


def pipeline_end(found: ExpectedEndOut, now: float) -> str:
    """Return when all jobs of a pipeline are expected to have ended."""
    bounds = f"{local_time(found.earliest, now)} to {local_time(found.latest, now)}"
    limits = ""
    if found.unknown:
        limits = f"; {units.count(found.unknown, 'job')} by time limit"
    return f"about {local_time(found.at, now)} ({bounds}{limits})"


def _member(job: PipelineJobOut, kind: str) -> str:
    how = {"any": ", however it ends", "resumes": ", which resumes it"}.get(kind, "")
    return f"{job.id} ({job.name}, {request_messages.state_name(job.state)}{how})"


def _number(value: float | None) -> str:
    return "not a number" if value is None else units.number_text(value)


def _trials(sweep: SweepOut | None) -> str:
    return units.trained_as_one(sweep.trials) if sweep is not None and sweep.together else ""


def _facts(request: RequestOut, now: float) -> Iterable[tuple[str, str]]:
    yield "Id", request.id
    yield "What", what(request)
    yield "Trials", _trials(request.sweep)
    yield "State", _state(request)
    if wait := request.wait:
        yield "Waits", waits(wait, now)
    if warning := request.warning:
        yield "Warning", _warning(warning, now)
    yield from (("Sign", _sign(sign, request, now)) for sign in request.signs)
    if cause := request.cause:
        yield "Cause", f"{cause.message} ({_kind(cause.code)})"
    yield "Owner", f"{request.owner}, group {request.group}"
    yield "Devices", units.devices(request.devices, request.model)
    yield "Time limit", units.duration(request.seconds)
    yield "Submitted", exact_time(request.submitted_at, now)
    yield "Started", exact_time(request.started_at, now)
    yield "Ended", _end(request, now)
    if request.ends_by is not None and not request.ended:
        left = units.duration(request.ends_by - now)
        yield "Ends by", f"{local_time(request.ends_by, now)} ({left} left)"
    if request.claim_by is not None:
        left = units.duration(request.claim_by - now)
        yield "Held until", f"{local_time(request.claim_by, now)} ({left} left to claim it)"
    if progress := request.progress:
        yield "Progress", _progress(progress)
    if remaining := request.remaining:
        yield "Remaining", remaining.sentence
    if request.kind != "grading":  # an internal command; the label describes it
        yield "Command", "" if request.roles else shlex.join(request.command)
    yield "Working folder", request.workdir
    if request.memory_bytes:
        yield "Memory limit", units.size(request.memory_bytes)
    yield from _retries(request, now)
    yield from _urgency(request, now)
    yield "Parameters", ", ".join(f"{k} = {json.dumps(v)}" for k, v in request.parameters.items())
    yield "Results", ", ".join(map(request_messages.result_text, request.results))
    yield "Output", request.output
    yield "Repaired", " ".join(request.notes)
    yield "Image", request.image
    if not request.internet:
        yield "Internet", "no access"
    yield "Labels", ", ".join(f"{key}={value}" for key, value in request.labels.items())
    if lease := request.lease:
        yield (
            "Lease",
            f"{lease.id}, {lease.state}" + (f", process {lease.pid}" if lease.pid else ""),
        )
        for device in lease.devices:
            yield "Device", device_name(device)
    yield from _members(request)
    yield from utilization.facts(request.utilization, lease.devices if lease else [])
    yield "Used", units.device_hours(request.device_seconds)


def _members(request: RequestOut) -> Iterable[tuple[str, str]]:
    for role in request.roles:
        yield f"Role {role.name}", request_messages.role_text(role)
    if request.roles:
        yield "Arrangement", request.arrangement
        yield "Must succeed", ", ".join(request.must_succeed) or "all roles"
    for member in request.lease.members if request.lease else ():
        yield f"Member {member.rank}", request_messages.member_text(member)


def _kind(code: str) -> str:
    """Return the code of a cause, with the class of an error: ``lost: infrastructure``."""
    try:
        found = error_class(CauseCode(code))
    except ValueError:  # of a newer service
        return code
    return code if found is None or found == code else f"{code}: {found}"


def _retries(request: RequestOut, now: float) -> Iterable[tuple[str, str]]:
    if request.retries == 0:
        yield "Retries", "none: it never runs twice"
    elif request.retries is not None:
        yield "Retries", f"{request.retries}, after a transient or infrastructure error"
    if request.wait and request.not_before is not None:
        yield "Next attempt", f"not before {exact_time(request.not_before, now)}"


def _urgency(request: RequestOut, now: float) -> Iterable[tuple[str, str]]:
    """Yield the settings that affect its place in the queue, except defaults."""
    if request.priority not in ("normal", "interactive"):
        yield "Priority", request.priority
    if request.deadline is not None:
        yield "Deadline", local_time(request.deadline, now)
    if request.kind == "job" and request.devices and not request.preemptible:
        yield "Preempted", "never"


def _warning(warning: WarningOut, now: float) -> str:
    left = units.duration(warning.stops_at - now)
    end = f"It stops at {local_time(warning.stops_at, now)} (in {left})"
    if warning.final:
        return f"{end}. {warning.message}"  # the message continues after the time
    how = "unless it becomes active" + (", or it is kept" * warning.can_keep)
    return " ".join([warning.message, f"{end} {how}.", *warning.seen])


def _progress(progress: ProgressOut) -> str:
    parts = [f"{progress.done} of {units.count(progress.cells, 'cell')}"] * bool(progress.cells)
    if step := progress.step:
        amount = f"{step.done:g}" + (f" of {step.of:g}" if step.of else "")
        parts.append(f"{amount} {step.text}".rstrip())
    return ", ".join(parts)


def _state(request: RequestOut) -> str:
    name, meaning = (
        request_messages.state_name(request.state),
        request_messages.state_meaning(request.state),
    )
    return name if name == meaning else f"{name} ({meaning})"


def _end(request: RequestOut, now: float) -> str:
    ended = exact_time(request.ended_at, now)
    if request.ended_at is None or request.started_at is None:
        return ended
    return f"{ended}, after {units.duration(request.ended_at - request.started_at)}"


def cancelled(request: RequestOut) -> str:
    """Return the effect of a cancellation so far."""
    state = request_messages.state_name(request.state)
    if request.state == "stopping":
        return f"{request.id} is being stopped."
    if request.ended and request.state != "cancelled":
        return f"{request.id} has already ended: {state}."
    return f"{request.id} is {state}."


def halted(request: RequestOut, now: float) -> str:
    """Return by when a job that is halted ends."""
    by = "" if request.warning is None else f" by {local_time(request.warning.stops_at, now)}"
    return f"{request.id} saves its work and ends{by}."


def device_name(device: DeviceOut) -> str:
    """Return model, memory and UUID, with a note for simulated devices."""
    size = units.memory(device.memory_bytes)
    kind = " (simulated)" if device.simulated else ""
    return f"{device.model}{kind}" + (f", {size}" if size else "") + f", {device.id}"


def pool_table(pool: PoolOut, now: float) -> None:
    rows = [
        [
            device.node,
            str(device.index),
            device.model + (" (simulated)" if device.simulated else ""),
            units.memory(device.memory_bytes),
            _tile(device, now),
            device.owner or device.request_id or "",
            device.why,
        ]
        for device in pool.devices
    ]
    if rows:
        table(["NODE", "#", "MODEL", "MEMORY", "STATE", "BY", "WHY"], rows, right="#,MEMORY")
    waiting = f"{units.count(pool.waiting, 'request')} waiting."
    simulated = " All of them are simulated." if all(d.simulated for d in pool.devices) else ""
    if rows:
        away = f"{pool.out_of_service} out of service, " if pool.out_of_service else ""
        click.echo(f"{pool.free} of {units.devices(pool.total)} free, {away}{waiting}{simulated}")
    else:
        click.echo(f"The pool has no devices: all work runs on CPU. {waiting}")
    for each in pool.reservations:
        click.echo(plain(dated((reservation(each),), now)))


def _tile(device: DeviceOut, now: float) -> str:
    """Describe the state of a device: ``free``, ``taken, draining until 14:05``."""
    states = [device.state, *(["quarantined"] if device.quarantined else [])]
    if device.draining and device.state != "draining":
        states.append("draining")
    until = f" until {local_time(device.drain_until, now)}" if device.drain_until else ""
    return ", ".join(states) + until


def queue_table(queue: QueueOut, now: float) -> None:
    rows = [
        [
            str(entry.place),
            entry.request_id or "",
            entry.owner or ("you" if entry.yours else ""),
            entry.title or entry.kind,
            str(entry.devices),
            local_time(entry.expected_at, now),
            entry.why,
        ]
        for entry in queue.queue
    ]
    table(
        ["POSITION", "ID", "OWNER", "WHAT", "DEVICES", "EXPECTED", "WHY"],
        rows,
        right="POSITION,DEVICES",
    )
    if queue.total > len(rows):
        click.echo(f"These are the first {len(rows)} of {queue.total}.")


def ledger_table(lines: Sequence[LedgerOut], now: float) -> None:
    rows = [
        [
            str(line.id),
            line.request_id,
            line.group,
            str(line.devices),
            exact_time(line.starts_at, now),
            exact_time(line.ends_at, now),
            hours(line.device_seconds),
        ]
        for line in lines
    ]
    header = ["LINE", "REQUEST", "GROUP", "DEVICES", "FROM", "TO", "DEVICE-HOURS"]
    table(header, rows, right="LINE,DEVICES,DEVICE-HOURS")


def change(item: RequestOut, now: float) -> str:
    """Return one line for a change of a request."""
    clock = clock_time(now)
    sentence = item.cause.message if item.cause else item.wait.sentence if item.wait else ""
    return f"{clock}  {item.id}  {place(item)}  {printable(sentence)}".rstrip()
