"""Template filters for times, amounts and names.

The service sends times in UTC; a script shows them in the time zone of the reader.
"""

from __future__ import annotations

import json
import math
import re
import shlex
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache, lru_cache
from time import gmtime, strftime
from typing import Literal

from jinja2 import Environment
from jinja2.filters import do_urlencode
from markupsafe import Markup, escape

from ...messages import audit_log as audit_messages
from ...messages import requests as request_messages
from ...messages import units
from ...messages.timed_text import (
    TimedSentence,
    expected_start,
    expected_start_or_unknown,
    reservation,
    timed_reasons,
)
from ...records.audit import AuditEntry
from ...schemas import DeviceOut, RequestOut
from ...schemas.admin import ChangeOut
from .ansi import ansi_html

Show = Literal["clock", "coming", "seconds", "day", "date", "in", "left", "ago"]
_STEP = 1024
_SIZES = ("KiB", "MiB", "GiB", "TiB")
_DATE = "%d %b %Y %H:%M UTC"
_CELL = re.compile(r"\bcell ([1-9][0-9]*)\b")
_WITHOUT_SCRIPT = {"date": _DATE, "day": _DATE, "seconds": "%H:%M:%S UTC"}


@lru_cache(maxsize=20_000)  # a page has hundreds of times, most of them repeated on the next page
def moment(at: float | None, show: Show = "clock") -> Markup:
    """Return a ``<time>`` that the script of the page rewrites.

    clock: 14:05 (with the day, unless it is today) · seconds: 14:05:07 · day: 24 Nov, 14:05 · date:
    with year, and with seconds unless they are 0 · coming: 14:05 (in about 2 h), "any moment" when
    it is due · in: "in about 2 h" · left: counts down · ago: "5 min ago".
    """
    if at is None:
        return Markup("")
    utc = gmtime(at)
    exact = strftime("%Y-%m-%dT%H:%M:%SZ", utc)
    text = strftime(_WITHOUT_SCRIPT.get(show, "%H:%M UTC"), utc)
    # Nothing in it needs escaping.
    return Markup(f'<time datetime="{exact}" data-show="{show}">{text}</time>')  # noqa: S704


def dated(line: TimedSentence) -> Markup:
    """Return a sentence with its times as ``<time>`` elements."""
    return Markup("").join(
        escape(part.before) + moment(part.at, part.show) + escape(part.after) for part in line
    )


@cache
def badge(name: str) -> Markup:
    """Return the badge of a state; there are few, and every list shows them."""
    template = Markup('<span class="state state-{0}" title="{1}">{2}</span>')
    return template.format(
        name, request_messages.state_meaning(name), request_messages.state_name(name)
    )


def standing(request: RequestOut) -> Markup:
    """Return the badge of a request: its state, or "held" if the owner must claim it."""
    return badge("held" if request.claim_by is not None else request.state)


def urlencode(value: str | Mapping[str, object]) -> str:
    """Quote a part of an address like Jinja's own filter, with a cache."""
    return _quoted(value) if isinstance(value, str) else do_urlencode(value)


_quoted = lru_cache(maxsize=20_000)(do_urlencode)


def pretty(value: object) -> str:
    """Format the value of a parameter as JSON, without escaping Unicode."""
    return json.dumps(value, ensure_ascii=False)


def title(request: RequestOut) -> str:
    """Return the title of a request."""
    if request.kind == "session":
        return request_messages.session_name(request.server_name)
    return request_messages.work_title(
        request.kind, request.notebook, request.command, request.labels
    )


def cause_html(request: RequestOut) -> Markup:
    """Return the cause of the end of a job, with a link to the cell that it names."""
    message = request.cause.message if request.cause is not None else ""
    named = _CELL.search(message) if request.notebook and request.lease is not None else None
    if named is None or request.lease is None:
        return escape(message)
    link = Markup('<a href="#cell-{}-{}">{}</a>').format(request.lease.epoch, named[1], named[0])
    return escape(message[: named.start()]) + link + escape(message[named.end() :])


def lease_devices(request: RequestOut) -> str:
    """Return ``NVIDIA H200 #0, NVIDIA H200 #1``; empty for a queued request and without devices."""
    if request.lease is None or request.state == "queued":
        return ""
    return ", ".join(
        f"{device.model} #{device.index}{' (simulated)' if device.simulated else ''}"
        for device in request.lease.devices
    )


def run_time(request: RequestOut, now: float) -> str:
    """Return how long a request has run: ``5 min``, ``5 min so far``; empty if it never started."""
    if request.started_at is None or (not request.ended and request.state == "queued"):
        return ""
    end = now if request.ended_at is None else request.ended_at
    so_far = "" if request.ended else " so far"
    return f"{units.duration(max(0.0, end - request.started_at))}{so_far}"


def pairs(values: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return the items in order."""
    return tuple(values.items())


def shell(command: Sequence[str]) -> str:
    """Format a command as typed in a shell."""
    return shlex.join(command)


def size(size_bytes: int) -> str:
    """Format a size: ``0 bytes``, ``1.2 KiB``, ``3.4 GiB``."""
    if size_bytes < _STEP:
        return units.count(size_bytes, "byte")
    exponent = min(int(math.log(size_bytes, _STEP)), len(_SIZES))
    amount, unit = size_bytes / _STEP**exponent, _SIZES[exponent - 1]
    return f"{amount:.1f} {unit}"


def short(seconds: float) -> str:
    """Format the duration of a cell: ``0.02 s``, ``12.3 s``, ``4 min 5 s``."""
    if seconds < 10:  # noqa: PLR2004  # a second decimal is useful only below this
        return f"{seconds:.2f} s"
    return f"{seconds:.1f} s" if seconds < 60 else units.duration(seconds)  # noqa: PLR2004


def differences(change: ChangeOut | AuditEntry) -> Markup:
    """Format ``max quota: 4 → 2`` and ``max time limit: 8 h → 2 h``, one on each line."""
    found = audit_messages.differences(change.before, change.after, lambda at: moment(at, "date"))
    return Markup("").join(
        Markup('<span class="change">{}: {}</span> ').format(name, Markup(" → ").join(sides))
        for name, sides in found
    )


def free_by_model(devices: Collection[DeviceOut]) -> list[str]:
    """Return ``1 of 2 Simulated GPU`` for each model, by name."""
    total = Counter(device.model for device in devices)
    free = Counter(device.model for device in devices if device.state == "free")
    return [f"{free[model]} of {total[model]} {model}" for model in sorted(total)]


def filters() -> Mapping[str, Callable[..., object]]:
    return {
        "ansi": ansi_html,
        "moment": moment,
        "dated": dated,
        "expected": expected_start,
        "start": expected_start_or_unknown,
        "reasons": timed_reasons,
        "badge": badge,
        "cause_html": cause_html,
        "standing": standing,
        "duration": units.duration,
        "free_by_model": free_by_model,
        "differences": differences,
        "devices": units.devices,
        "device_hours": units.device_hours,
        "memory": units.memory,
        "lease_devices": lease_devices,
        "pretty": pretty,
        "pairs": pairs,
        "reserved": reservation,
        "run_time": run_time,
        "state": request_messages.state_name,
        "server": request_messages.session_name,
        "title": title,
        "urlencode": urlencode,
        "shell": shell,
        "size": size,
        "short": short,
    }


def drawn_once(environment: Environment) -> Callable[..., Markup]:
    """Return the function ``drawn("row.html", id=…, state=…)``, which renders a part with a cache.

    The part must depend on these values only. Most of the hundred rows of a list are unchanged when
    it is rendered again, and so are plots.
    """

    @lru_cache(maxsize=5_000)
    def drawn(template: str, values: tuple[tuple[str, object], ...]) -> Markup:
        page = environment.get_template(template).render(values)
        return Markup(page)  # noqa: S704  # the template escapes what needs it

    def draw(template: str, **values: object) -> Markup:
        return drawn(template, tuple(values.items()))

    return draw
