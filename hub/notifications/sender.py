"""Send one message through Apprise, and say what became of it.

Apprise answers whether a message was accepted; the reply of the server, which decides whether a
repetition makes sense, is in the log of the attempt. That log contains addresses, so it is read
here and goes nowhere else.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.utils import parseaddr
from pathlib import Path
from typing import Final, Protocol
from urllib.parse import quote, urlencode

from ..config.notification_table import NotificationTable
from ..errors import InvalidInput, Unavailable
from ..messages.notifications import MessageText, one_line
from .address_seal import AddressSeal
from .addresses import check_address
from .records import MAIL, Channel

SECONDS: Final = 30.0
"""Time limit of one message."""
_MODES: Final = {"none": "insecure", "starttls": "starttls", "tls": "ssl"}
_SMTP_REPLY = re.compile(r"\(([245]\d\d), b?['\"](.*?)['\"][,)]", re.DOTALL)
"""How Python writes a reply of a mail server in the text of its errors."""
_HTTP_STATUS = re.compile(r"\berror=(\d{3})\b")
_LONGEST_TITLE: Final = 200
_TOO_MANY: Final = 429
_TIMEOUT_STATUS: Final = 408


@dataclass(frozen=True, slots=True, kw_only=True)
class SendResult:
    """The outcome of one attempt.

    Attributes:
        sentence: why it failed, for the owner of the channel; empty if it was accepted.
        refused: whether it was refused for good: a repetition would be refused as well.
    """

    sentence: str = ""
    refused: bool = False

    @property
    def delivered(self) -> bool:
        return not self.sentence


class Sender(Protocol):
    """Sends a message to a channel; does not raise errors of servers and networks."""

    def send(
        self, channel: Channel, text: MessageText, headers: Mapping[str, str] | None = None
    ) -> SendResult:
        """Send one message and wait for the reply, ``SECONDS`` at most."""


@dataclass(frozen=True, slots=True)
class AppriseSender:
    """Sends by the mail server of the site, and to the services that it allows."""

    table: NotificationTable
    seal: AddressSeal
    _prepared: list[bool] = field(default_factory=list)

    def send(
        self, channel: Channel, text: MessageText, headers: Mapping[str, str] | None = None
    ) -> SendResult:
        # Apprise takes a second to import, and is needed only by who uses notifications.
        import apprise  # noqa: PLC0415

        logger = logging.getLogger("apprise")
        if not self._prepared:
            # Its messages contain addresses: they are captured below, and never logged.
            logger.handlers.clear()
            logger.addHandler(logging.NullHandler())
            logger.propagate = False
            logger.setLevel(logging.DEBUG)
            # It logs the paths of webhooks.
            logging.getLogger("urllib3").setLevel(logging.WARNING)
            self._prepared.append(True)
        try:
            address = self.seal.open(channel)
            check_address(address, channel.owner, self.table)
            url = self._url(channel.kind, address, headers or {})
        except InvalidInput as error:
            return SendResult(sentence=error.message, refused=True)
        except Unavailable as error:
            return SendResult(sentence=str(error))
        except OSError as error:
            return SendResult(sentence=f"The password of the mail server cannot be read: {error}.")
        asset = apprise.AppriseAsset(app_id="Carrel", app_url="", http_redirects=False)
        # ``Apprise.add`` with a text would split it at commas, into several services.
        service = apprise.Apprise.instantiate(url, asset=asset)
        if service is None:
            return SendResult(sentence="The address of the channel is not complete.", refused=True)
        client = apprise.Apprise(service, asset=asset, log_level=logging.DEBUG)
        result = client.notify(
            title=one_line(text.title, _LONGEST_TITLE),
            body=text.body,
            body_format=apprise.NotifyFormat.TEXT,
            timeout=SECONDS,
        )
        if result:
            return SendResult()
        log = "\n".join(entry.message for each in result.results for entry in each.logs())
        return _of_mail(log) if channel.kind == MAIL else _of_service(log)

    def _url(self, kind: str, address: str, headers: Mapping[str, str]) -> str:
        if kind != MAIL:
            return address
        table = self.table
        name, sender = parseaddr(table.sender)
        options = {
            "from": f"{name} <{sender}>" if name else sender,
            "to": address,
            "mode": _MODES[table.smtp_security],
            "smtp": table.smtp,
            "format": "text",
            "+Auto-Submitted": "auto-generated",
        }
        options |= {f"+{header}": value for header, value in headers.items()}
        account = ""
        if table.smtp_user:
            password = Path(table.smtp_password_file).read_text(encoding="utf-8").strip()
            account = f"{quote(table.smtp_user, safe='')}:{quote(password, safe='')}@"
        return f"mailto://{account}{table.smtp}:{table.port}/?{urlencode(options)}"


def _of_mail(log: str) -> SendResult:
    replies = _SMTP_REPLY.findall(log)
    if not replies:
        return SendResult(sentence="The mail server does not answer.")
    code, text = replies[-1]
    said = one_line(text, 200)
    if code.startswith("5") and "authentication" not in said.lower() and code not in _OF_SITE:
        return SendResult(
            sentence=f"The mail server refused the message: {code} {said}", refused=True
        )
    return SendResult(sentence=f"The mail server did not take the message: {code} {said}")


_OF_SITE: Final = frozenset({"530", "534", "535", "538"})
"""Replies about the account of the site, which say nothing about the recipient."""


def _of_service(log: str) -> SendResult:
    found = _HTTP_STATUS.findall(log)
    if not found:
        return SendResult(sentence="The service does not answer.")
    status = int(found[-1])
    refused = 300 <= status < 500 and status not in (_TOO_MANY, _TIMEOUT_STATUS)  # noqa: PLR2004
    return SendResult(
        sentence=f"The service refused the message with status {status}."
        if refused
        else f"The service did not take the message: status {status}.",
        refused=refused,
    )
