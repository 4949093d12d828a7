"""Derive the address of a site from the URL of any of its pages."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from typing import Self
from urllib.parse import SplitResult, urlsplit, urlunsplit

import httpx

from ...errors import InvalidInput

ACCEPTED = (
    "Use an address such as http://HOST:8000, https://HOST/ or https://HOST/jupyter/hub/home."
)
_BELOW_BASE = re.compile(r"/(?:hub|services|user)(?:/|$)")
"""Paths of JupyterHub below its base URL."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteUrl:
    """The address of a site.

    Attributes:
        base: JupyterHub's base URL with a trailing slash (``https://host/jupyter/``).
    """

    base: str

    @classmethod
    def at(cls, url: str) -> Self:
        """Parse the base URL, or any URL below it (``…/hub/home``, ``…/user/anna/lab``).

        Without a scheme, ``http`` is assumed for this machine and ``https`` for any other.

        Raises:
            InvalidInput: the text is not a web address.
        """
        parts = _web_address(url.strip())
        if parts is None:
            raise InvalidInput(f"Invalid address: {url[:200]!r}.", accepted=ACCEPTED)
        below = _BELOW_BASE.search(parts.path)
        path = parts.path[: below.start()] if below else parts.path
        return cls(base=urlunsplit((parts.scheme, parts.netloc, path.rstrip("/") + "/", "", "")))

    @property
    def service(self) -> str:
        """URL of the Carrel service, without a trailing slash."""
        return self.base + "services/carrel"

    @property
    def hub(self) -> str:
        return self.base + "hub"

    @property
    def trusts_environment(self) -> bool:
        """Whether to use a proxy from the environment; False for addresses of this machine."""
        return not is_loopback(urlsplit(self.base).hostname or "")


def _web_address(text: str) -> SplitResult | None:
    try:
        if "://" not in text:
            host = urlsplit(f"//{text}").hostname or ""
            text = f"{'http' if is_loopback(host) else 'https'}://{text}"
        parts = urlsplit(text)
        complete = parts.hostname and (parts.port is None or parts.port > 0)
        httpx.URL(text)
        (parts.hostname or "").encode("idna")
    except (ValueError, httpx.InvalidURL):  # an invalid port, unbalanced brackets, an empty label
        return None
    return parts if complete and parts.scheme in {"http", "https"} else None


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
