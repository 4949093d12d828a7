"""Tickets: what a user has confirmed to open, signed for that user.

A link to JupyterLab itself could otherwise open material in a running session unasked.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Final, Protocol

from ..errors import NotFound
from .material import Material, check_allowed

_PURPOSE: Final = "open-link"


class TicketSigner(Protocol):
    """Signs values of one purpose; implemented by the signer of cookies."""

    def wrap(self, purpose: str, value: str) -> str: ...
    def unwrap(self, purpose: str, wrapped: str) -> str | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenLinks:
    """Checks material against the site's rules, and issues and reads tickets.

    Attributes:
        allowed: prefixes of the addresses that the site allows.
        base: public address of the service, without a slash at its end.
    """

    allowed: Sequence[str]
    signer: TicketSigner
    base: str

    def check(self, material: Material) -> None:
        """Raise Forbidden or NotFound if the site does not allow the address."""
        check_allowed(material, self.allowed)

    def issue(self, user: str, material: Material) -> str:
        """Return the ticket of a user for material that the user has confirmed."""
        self.check(material)
        value = json.dumps([user, *asdict(material).values()], ensure_ascii=False)
        encoded = base64.urlsafe_b64encode(value.encode()).decode().rstrip("=")
        return self.signer.wrap(_PURPOSE, encoded)

    def read(self, user: str, ticket: str) -> Material:
        """Return the material of a ticket. The rules of the site may have changed since.

        Raises:
            NotFound: it was not issued here for this user.
            Forbidden: the site does not allow the address any more.
        """
        value = self.signer.unwrap(_PURPOSE, ticket)
        owner, *fields = json.loads(base64.urlsafe_b64decode(f"{value}==")) if value else ("",)
        if not fields or owner != user:
            raise NotFound(
                "This address opens nothing for you.",
                accepted="Open the link again, and confirm what it opens.",
            )
        url, branch, path = fields
        material = Material(url=url, branch=branch, path=path)
        self.check(material)
        return material
