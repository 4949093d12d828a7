"""The table ``[notifications]`` of the site file: mail server and allowed channels."""

from __future__ import annotations

import re
from collections.abc import Mapping
from email.utils import parseaddr
from types import MappingProxyType
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

SERVICES: Mapping[str, bool] = MappingProxyType(
    {
        "discord": False,
        "gchat": False,
        "slack": False,
        "tgram": False,
        "wxteams": False,
        "form": True,
        "forms": True,
        "gotify": True,
        "gotifys": True,
        "json": True,
        "jsons": True,
        "matrix": True,
        "matrixs": True,
        "mmost": True,
        "mmosts": True,
        "nctalk": True,
        "nctalks": True,
        "ntfy": True,
        "ntfys": True,
        "rocket": True,
        "rockets": True,
        "xml": True,
        "xmls": True,
    }
)
"""Schemes of Apprise that a site may allow, and whether their address names the host.

The others have hosts of their own. Schemes that reach this machine itself (``syslog``, ``dbus``)
or take further addresses are missing on purpose.
"""
ADDRESS = re.compile(
    r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*"
    r"@(?P<domain>[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
    r"(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)*)"
)
"""An e-mail address without comments, quotes and internationalization: RFC 5321, dot-atom."""
_HOST = re.compile(r"[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?(?::\d{1,5})?")
_USER = "{user}"
_PORTS = {"none": 25, "starttls": 587, "tls": 465}


def _sender(text: str) -> str:
    if text and (not ADDRESS.fullmatch(parseaddr(text)[1]) or not text.isprintable()):
        raise ValueError("must be an e-mail address, such as Carrel <carrel@example.edu>")
    return text


def _own_address(text: str) -> str:
    if text and (_USER not in text or not ADDRESS.fullmatch(text.replace(_USER, "x"))):
        raise ValueError(f"must be an e-mail address with {_USER}, such as {_USER}@example.edu")
    return text


def _service(text: str) -> str:
    if text not in SERVICES:
        raise ValueError(f"must be one of {', '.join(SERVICES)}")
    return text


def _host(text: str) -> str:
    if not _HOST.fullmatch(text):
        raise ValueError("must be a host name in lower case, with :PORT unless any port is allowed")
    return text


def _url(text: str) -> str:
    if text and not re.fullmatch(r"https?://[^\s/?#]+(?:/[^\s?#]*)?", text):
        raise ValueError("must be the http or https address of the site")
    return text.rstrip("/")


class NotificationTable(BaseModel):
    """The table ``[notifications]``: messages to users by e-mail, webhook and chat.

    Without `smtp` no mail is sent, without `services` nothing else.

    Attributes:
        smtp: host of the mail server.
        smtp_port: its port; by default that of `smtp_security`: 25, 587 or 465.
        smtp_security: `none`, `starttls` or `tls`.
        smtp_user: the account at the mail server, if it requires one.
        smtp_password_file: a file that contains its password, readable for Carrel only.
        sender: the address in From, such as `Carrel <carrel@example.edu>`.
        own_address: the e-mail address of a user, such as `{user}@example.edu`.
        domains: domains of e-mail addresses that users may enter instead; they confirm such an
            address by a link that is sent to it.
        services: schemes of Apprise that users may enter, such as `["json", "jsons", "slack"]`.
        hosts: hosts that addresses of these services may name, such as `hooks.example.edu` (any
            port) or `127.0.0.1:9000`. Redirects to others are not followed.
        per_day: the maximum number of messages to one user in 24 hours.
        url: the public address of the site in links, with its base path, if it differs from the
            address on which Carrel listens: `https://jupyter.example.edu`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    smtp: Annotated[str, Field(pattern=r"^[A-Za-z0-9.:-]*$")] = ""
    smtp_port: Annotated[int, Field(ge=1, le=65535)] | None = None
    smtp_security: Literal["none", "starttls", "tls"] = "starttls"
    smtp_user: str = ""
    smtp_password_file: str = ""
    sender: Annotated[str, AfterValidator(_sender)] = ""
    own_address: Annotated[str, AfterValidator(_own_address)] = ""
    domains: tuple[Annotated[str, AfterValidator(_host)], ...] = ()
    services: tuple[Annotated[str, AfterValidator(_service)], ...] = ()
    hosts: tuple[Annotated[str, AfterValidator(_host)], ...] = ()
    per_day: Annotated[int, Field(ge=1, le=10_000)] = 50
    url: Annotated[str, AfterValidator(_url)] = ""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.smtp and not self.sender:
            raise ValueError("smtp is set: set sender too, the address in From")
        if self.smtp and not self.own_address and not self.domains:
            raise ValueError("smtp is set: set own_address or domains, to which mail may be sent")
        if bool(self.smtp_user) != bool(self.smtp_password_file):
            raise ValueError("smtp_user and smtp_password_file must be set together")
        if any(SERVICES[name] for name in self.services) and not self.hosts:
            raise ValueError("services name hosts: set hosts, to which messages may be sent")
        return self

    @property
    def available(self) -> bool:
        """Whether users can be notified at all."""
        return bool(self.smtp or self.services)

    @property
    def port(self) -> int:
        """The port of the mail server."""
        return self.smtp_port or _PORTS[self.smtp_security]

    def mail_of(self, user: str) -> str:
        """Return the e-mail address of a user that the site knows; empty if it knows none."""
        address = self.own_address.replace(_USER, user) if self.smtp else ""
        return address if ADDRESS.fullmatch(address) else ""
