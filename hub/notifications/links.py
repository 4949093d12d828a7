"""Signed links in messages: they act for one channel, without a sign-in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

from ..errors import NotFound
from ..schemas.notifications.events import NotificationEvent

_STOP: Final = "notification-stop"
_CONFIRM: Final = "notification-confirm"


class LinkSigner(Protocol):
    """Signs values of one purpose; implemented by the signer of cookies."""

    def wrap(self, purpose: str, value: str) -> str: ...
    def unwrap(self, purpose: str, wrapped: str) -> str | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageLinks:
    """Addresses for messages.

    Attributes:
        base: public address of the service, without a slash at its end.
    """

    base: str
    signer: LinkSigner

    @property
    def settings(self) -> str:
        return f"{self.base}/notifications"

    def page(self, path: str) -> str:
        """Return the address of a page of the service."""
        return f"{self.base}/{path}"

    def stop(self, channel: str, event: NotificationEvent | None) -> str:
        """Return the address that stops messages of a channel: about one event, or all."""
        value = f"{channel}~{event or ''}"
        return f"{self.base}/notifications/stop/{self.signer.wrap(_STOP, value)}"

    def confirm(self, channel: str) -> str:
        return f"{self.base}/notifications/confirm/{self.signer.wrap(_CONFIRM, channel)}"

    def read_stop(self, code: str) -> tuple[str, NotificationEvent | None]:
        """Return channel and event of a link. Raises NotFound if it was not made here."""
        channel, _, event = self._read(_STOP, code).partition("~")
        return channel, NotificationEvent(event) if event else None

    def read_confirm(self, code: str) -> str:
        """Return the channel of a link. Raises NotFound if it was not made here."""
        return self._read(_CONFIRM, code)

    def _read(self, purpose: str, code: str) -> str:
        found = self.signer.unwrap(purpose, code)
        if found is None:
            raise NotFound(
                "This link is not valid.",
                accepted="Copy the whole link of the message, or sign in and change your "
                "notifications.",
            )
        return found
