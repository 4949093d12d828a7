"""Pages of the site's documentation as text, for the resources of the MCP server."""

from __future__ import annotations

from html.parser import HTMLParser
from types import MappingProxyType
from typing import Final

import httpx

from ..client import SiteUrl
from ..errors import NotFound, Unavailable

PAGES: Final = MappingProxyType(
    {
        "programs": "how-to/programs.html",
        "submit-jobs": "how-to/submit-jobs.html",
        "notebook-jobs": "how-to/notebook-jobs.html",
        "sweeps": "how-to/sweeps.html",
        "images": "how-to/images.html",
        "solve-errors": "how-to/solve-errors.html",
        "retries": "explanation/retries.html",
        "states": "explanation/states.html",
    }
)
"""The pages by the name in their address ``carrel://docs/NAME``."""
LONGEST: Final = 100_000
"""Characters of a page."""
_BLOCKS = frozenset({"p", "li", "tr", "pre", "h1", "h2", "h3", "h4", "div", "dt", "dd", "br"})


async def page(site: SiteUrl, name: str) -> str:
    """Return the text of a page.

    Raises:
        NotFound: there is no such page, or the site has not built its documentation.
        Unavailable: the site does not answer.
    """
    if name not in PAGES:
        raise NotFound(f"There is no page {name[:40]!r}.", accepted=f"One of: {', '.join(PAGES)}.")
    try:
        async with httpx.AsyncClient(timeout=10, trust_env=site.trusts_environment) as http:
            answer = await http.get(f"{site.service}/help/{PAGES[name]}")
    except httpx.TransportError as error:
        raise Unavailable(f"The documentation of {site.base} cannot be read now.") from error
    if not answer.is_success:
        raise NotFound(f"The documentation of {site.base} has no page {name}.")
    text = _Article()
    text.feed(answer.text)
    return text.text()[:LONGEST]


class _Article(HTMLParser):
    """Collects the text of the article of a page."""

    def __init__(self) -> None:
        super().__init__()
        self._depth = 0
        self._parts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "article":
            self._depth += 1
        if self._depth and tag in _BLOCKS:
            self._parts.append("\n")

    def handle_endtag(self, tag: str) -> None:
        if tag == "article":
            self._depth = max(0, self._depth - 1)

    def handle_data(self, data: str) -> None:
        if self._depth:
            self._parts.append(data)

    def text(self) -> str:
        lines = (line.rstrip() for line in "".join(self._parts).splitlines())
        kept: list[str] = []
        for line in lines:
            if line or (kept and kept[-1]):
                kept.append(line)
        return "\n".join(kept).strip() + "\n"
