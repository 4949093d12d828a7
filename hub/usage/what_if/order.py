"""What a what-if replay gets on its standard input, as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from pydantic import ConfigDict, TypeAdapter
from pydantic.dataclasses import dataclass as validated

from ...errors import InvalidInput
from ...scheduling.model.learned_order import LearnedOrder
from ...scheduling.model.snapshot import Device, Group
from ...simulation.workload.calendar import Calendar
from ...simulation.workload.jobs import TraceJob

MOST_QUOTA = 1_000_000


@validated(frozen=True, slots=True, kw_only=True, config=ConfigDict(ser_json_inf_nan="constants"))
class WhatIfOrder:
    """The history of a site, and the site with other devices or quotas.

    Attributes:
        jobs: in the order of submission.
        learned_order: what both sites discount sizes with; None: nothing does.
        notes: sentences about what is not replayed.
    """

    jobs: tuple[TraceJob, ...]
    calendar: Calendar
    devices: tuple[Device, ...]
    groups: tuple[Group, ...]
    changed_devices: tuple[Device, ...]
    changed_groups: tuple[Group, ...]
    learned_order: LearnedOrder | None = None
    notes: tuple[str, ...] = field(default=())

    def written(self) -> bytes:
        return _ORDERS.dump_json(self)


_ORDERS = TypeAdapter(WhatIfOrder)


def read_order(given: bytes) -> WhatIfOrder:
    return _ORDERS.validate_json(given)


def nodes_of(text: str) -> str | None:
    """Return the nodes of ``+4`` (one node of four more), ``+2x4`` or ``6x8``; None for none.

    ``site_devices`` checks them.
    """
    text = text.strip()
    if not text:
        return None
    count = text.removeprefix("+")
    return f"+1x{count}" if text != count and count.isdecimal() else text


def parse_max_quotas(texts: tuple[str, ...]) -> Mapping[str, int]:
    """Parse ``group=8``: the max quota of a group, in devices.

    Raises:
        InvalidInput: one of them has another form.
    """
    found: dict[str, int] = {}
    for text in texts:
        name, _, most = (part.strip() for part in text.rpartition("="))
        if not name or not most.isdecimal() or int(most) > MOST_QUOTA:
            raise InvalidInput(
                f"The quota {text[:80]!r} is not accepted.",
                accepted="GROUP=DEVICES is accepted, such as cs101=8.",
                field="quota",
            )
        found[name] = int(most)
    return found
