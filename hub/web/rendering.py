"""Filters for the templates: how times and amounts are written into a page.

Times leave the service in UTC; a small script shows them in the reader's zone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Literal

from markupsafe import Markup

from .. import wording

Show = Literal["clock", "date", "in", "left", "ago"]


def moment(at: float | None, show: Show = "clock") -> Markup:
    """A ``<time>`` that the script in the page rewrites.

    clock: 14:05 (with the day, unless it is today) · date: day and time · in: "in about 2 h" ·
    left: counts down · ago: "5 min ago".
    """
    if at is None:
        return Markup("")
    there = datetime.fromtimestamp(at, UTC)
    return Markup('<time datetime="{}" data-show="{}">{}</time>').format(
        there.isoformat(timespec="seconds").replace("+00:00", "Z"),
        show,
        there.strftime("%d %b %Y %H:%M UTC" if show == "date" else "%H:%M UTC"),
    )


def pretty(value: object) -> str:
    """A parameter's value as JSON, in plain characters."""
    return json.dumps(value, ensure_ascii=False)


def filters() -> Mapping[str, Callable[..., object]]:
    return {
        "moment": moment,
        "duration": wording.duration,
        "devices": wording.devices,
        "device_seconds": wording.device_seconds,
        "memory": wording.memory,
        "pretty": pretty,
        "state": wording.state,
        "server": wording.server,
    }
