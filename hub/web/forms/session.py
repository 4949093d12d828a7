"""The form that starts a session: entered values and errors."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count

from ...client.job_builder import model_choices
from ...errors import CarrelError, Conflict, InvalidInput, NotAMember
from ...groups.membership import GroupChoice
from ...records.images import MOST as IMAGE_LENGTH
from ...schemas import MODEL_LENGTH, DeviceOut, RequestOut, SessionIn, most_devices, parsers
from ..html.urls import MOST_NEXT
from .fields import read


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionForm:
    """The values as entered, with the error."""

    server_name: str = ""
    devices: str = "1"
    model: str = ""
    hours: str = "1"
    group: str = ""
    image: str = ""
    secrets: str = ""
    next: str = ""
    problem: str = ""
    accepted: str = ""
    field: str = ""

    @classmethod
    def filled(cls, fields: Mapping[str, str]) -> SessionForm:
        return cls(
            server_name=fields.get("server_name", "").strip(),
            devices=fields.get("devices", "").strip(),
            model=fields.get("model", "").strip()[:MODEL_LENGTH],
            hours=fields.get("hours", "").strip(),
            group=fields.get("group", "").strip(),
            image=fields.get("image", "").strip()[:IMAGE_LENGTH],
            secrets=fields.get("secrets", "").strip()[:2000],
            next=fields.get("next", "")[:MOST_NEXT],
        )

    @classmethod
    def beside(
        cls, sessions: Sequence[RequestOut], *, server_name: str, wanted: str
    ) -> SessionForm:
        """Return the form for another session, with an unused name unless one was requested."""
        taken = {session.server_name for session in sessions}
        free = (f"gpu-{number}" if number > 1 else "gpu" for number in count(1))
        name = "" if "" not in taken else next(name for name in free if name not in taken)
        return cls(server_name=server_name or name, next=wanted[:MOST_NEXT])

    def options(self) -> SessionIn:
        """Return the options of the session. Raises InvalidInput for an invalid number."""
        return SessionIn(
            devices=read(parsers.devices, self.devices, "devices"),
            model=self.model or None,
            hours=_hours(self.hours),
            group=self.group,
            image=self.image,
            secrets=self.secrets.replace(",", " ").split(),
        )

    def refused(self, error: CarrelError, groups: list[GroupChoice]) -> SessionForm:
        """Return the same values with an error, at the field that caused it."""
        return replace(
            self,
            problem=error.message,
            accepted=error.accepted,
            field=error.field or self._field_of(error, groups),
        )

    def _field_of(self, error: CarrelError, groups: list[GroupChoice]) -> str:
        if isinstance(error, NotAMember):
            return "group"
        if isinstance(error, Conflict):
            return "server_name"
        chosen = next((group for group in groups if group.name == self.group), None)
        if chosen is None:
            return ""
        options = self.options()
        if not 0 < options.hours * 3600 <= chosen.max_seconds:
            return "hours"
        return "" if 0 <= options.devices <= most_devices(chosen) else "devices"


def _hours(text: str) -> float:
    try:
        hours = float(text.replace(",", "."))
    except ValueError:
        hours = math.nan
    if not math.isfinite(hours):
        raise InvalidInput(
            f"Invalid number of hours: {text[:40]!r}.",
            accepted="Enter a number such as 1.5.",
            field="hours",
        )
    return hours


def device_choices(groups: list[GroupChoice]) -> int:
    """Return the largest max devices per member of the groups."""
    return max(map(most_devices, groups), default=0)


def offered_models(
    groups: Sequence[GroupChoice], devices: Iterable[DeviceOut], chosen: str
) -> list[str]:
    """Return the device models to choose from; none if there is no choice.

    ``chosen`` is always included, so that a form shows the value that it will send.
    """
    found = set(model_choices((group.models for group in groups), devices))
    return sorted(found | ({chosen} if chosen else set()))
