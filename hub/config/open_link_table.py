"""The table ``[open_links]`` of the site file: addresses from which links may open material."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict


def _prefix(text: str) -> str:
    """Check a prefix. It ends where a step of the path ends, so that it covers no other owner."""
    example = "such as https://github.com/example-university/"
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise ValueError(f"must be an address, {example}") from None
    if parts.scheme not in ("https", "http") or not parts.hostname or not text.endswith("/"):
        raise ValueError(f"must begin with https:// or http:// and end with /, {example}")
    named = parts.hostname if port is None else f"{parts.hostname}:{port}"
    if parts.netloc.lower() != named or parts.query or parts.fragment:
        raise ValueError(f"must have no user, query or fragment, {example}")
    if not text.isascii() or "%" in text or "\\" in text or " " in text:
        raise ValueError(f"must have plain characters only, {example}")
    if any(step in (".", "..", "") for step in parts.path.split("/")[1:-1]):
        raise ValueError(f"must not contain empty steps, . and .., {example}")
    return f"{parts.scheme}://{named}{parts.path}"


class OpenLinkTable(BaseModel):
    """The table ``[open_links]``: links that open a session with a repository or a notebook.

    Attributes:
        allowed: prefixes of the addresses of repositories and notebooks, such as
            `["https://github.com/example-university/"]`. Each ends with `/`. Without one, links
            open nothing.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    allowed: tuple[Annotated[str, AfterValidator(_prefix)], ...] = ()
