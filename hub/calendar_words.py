"""The words for what is reserved: for pages, commands and widgets."""

from __future__ import annotations

from .messages.requests import devices
from .messages.timed_text import AroundAMoment
from .schemas.calendar import ReservationOut


def reserved_words(reserved: ReservationOut) -> AroundAMoment:
    """``8 devices are reserved for cs101 from`` … ``(Tue 10:00-12:00 Europe/Berlin): the lab``."""
    verb = "is" if reserved.devices == 1 else "are"
    since = "until" if reserved.running else "from"
    why = f": {reserved.why}" if reserved.why else ""
    return AroundAMoment(
        before=f"{devices(reserved.devices).capitalize()} {verb} reserved for {reserved.group} "
        f"{since} ",
        at=reserved.ends_at if reserved.running else reserved.starts_at,
        after=f" ({reserved.when}){why}",
    )
