"""Read and check what a link opens: a repository or notebook at an address that the site allows.

Only the service's own rules are applied here; nothing is fetched. The address is compared in the
form in which it is fetched: without user, query, fragment, escapes and steps such as ``..``, so
that a prefix covers what it seems to.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote, urlsplit

from ..errors import Forbidden, InvalidInput, NotFound
from ..schemas.names import described, hidden_in

NOTEBOOK: Final = ".ipynb"
LONGEST_ADDRESS: Final = 400
LONGEST_BRANCH: Final = 150
LONGEST_PATH: Final = 300
"""Limits in bytes of UTF-8: all three, signed, fit into the address of a session."""

_FORGE_PAGE = re.compile(r"(https?://[^/]+(?:/[^/]+){2,}?)(/-)?/(?:blob|tree)/([^/]+)(?:/(.+))?")
"""The page of a file or folder at GitHub or GitLab; a branch with a slash must be given itself."""
_BRANCH_FORBIDS = re.compile(r"[\s~^:?*\[\\\x00-\x1f\x7f]|\.\.|@\{|//|^[-/.]|/\.|[/.]$|\.lock(/|$)")
"""Rules of git check-ref-format; a leading hyphen would be an option of git."""
_ADDRESS = re.compile(r"/[A-Za-z0-9._~/+@-]*")
_EXAMPLE = "Such as https://github.com/example-university/course."
_DEFAULT_PORTS = {"https": 443, "http": 80}


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """What a link opens.

    Attributes:
        url: of a repository, or of one notebook.
        branch: a branch or tag; empty for the default branch, and for a notebook.
        path: the file or folder to show, below the repository; empty for its top folder.
    """

    url: str
    branch: str = ""
    path: str = ""

    @property
    def is_notebook(self) -> bool:
        """Whether the address is that of one file, not of a repository."""
        return self.url.endswith(NOTEBOOK)


def read_material(url: str, branch: str, path: str) -> Material:
    """Return what a link names, in the form in which it is compared and fetched.

    The address of a file's or folder's page at GitHub and GitLab names repository, branch and path.

    Raises:
        InvalidInput: with the field that is wrong and what is accepted.
    """
    url, branch, path = url.strip(), branch.strip(), path.strip()
    if page := _FORGE_PAGE.fullmatch(url):
        # GitLab redirects the address without .git.
        url = f"{page[1]}.git" if page[2] else page[1]
        branch, path = branch or unquote(page[3]), path or unquote(page[4] or "")
    material = Material(url=_address(url), branch=_branch(branch), path=_path(path))
    if material.is_notebook and (branch or path):
        raise InvalidInput(
            "The address of a notebook has no branch and no path.",
            accepted="Link to its repository to name a branch.",
            field="branch" if branch else "path",
        )
    return material


def check_allowed(material: Material, allowed: Sequence[str]) -> None:
    """Require an address below one of the prefixes of the site.

    Raises:
        Forbidden: no prefix covers it.
        NotFound: the site allows no address at all.
    """
    if not allowed:
        raise NotFound(
            "Links that open material are not set up at this site.",
            accepted="An administrator lists the addresses that links may name: allowed below "
            "[open_links] in carrel.toml.",
        )
    if not any(f"{material.url}/".startswith(prefix) for prefix in allowed):
        raise Forbidden(
            f"This site does not open {material.url}.",
            accepted=f"Accepted: addresses that begin with {', '.join(allowed)}. Its "
            "administrator can allow others.",
            field="url",
        )


def _address(url: str) -> str:
    """Return an address of http or https with lower-case host, without its default port."""
    _plain(url, "address", LONGEST_ADDRESS, "url")
    if not url:
        raise InvalidInput(
            "The address of a repository or notebook is missing.", accepted=_EXAMPLE, field="url"
        )
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise _bad_address(url, "is not an address") from None
    if parts.scheme not in _DEFAULT_PORTS or not host:
        raise _bad_address(url, "does not begin with https:// or http://")
    named = host if port is None else f"{host}:{port}"
    if parts.netloc.lower() != named:
        raise _bad_address(url, "contains a user or an invalid host")
    if parts.query or parts.fragment or "?" in url or "#" in url:
        raise _bad_address(url, "has a part after ? or #")
    path = parts.path.rstrip("/")
    if not _ADDRESS.fullmatch(path) or {"", ".", ".."} & set(path.split("/")[1:]):
        raise _bad_address(url, "has a path with other characters than letters, digits and ._~+@-")
    if port == _DEFAULT_PORTS[parts.scheme]:
        named = host
    return f"{parts.scheme}://{named}{path}"


def _bad_address(url: str, why: str) -> InvalidInput:
    return InvalidInput(f"The address {url[:200]!r} {why}.", accepted=_EXAMPLE, field="url")


def _branch(branch: str) -> str:
    _plain(branch, "branch", LONGEST_BRANCH, "branch")
    if _BRANCH_FORBIDS.search(branch):
        raise InvalidInput(
            f"{branch[:80]!r} is not the name of a branch or tag.",
            accepted="A name such as main, or none for the default branch.",
            field="branch",
        )
    return branch


def _path(path: str) -> str:
    _plain(path, "path", LONGEST_PATH, "path")
    steps = [step for step in path.split("/") if step]
    if path.startswith("/") or "\\" in path or {".", ".."} & set(steps):
        raise InvalidInput(
            f"The path {path[:200]!r} is outside of the repository.",
            accepted="A path below its top folder, such as week1/train.ipynb.",
            field="path",
        )
    return "/".join(steps)


def _plain(text: str, what: str, most: int, field: str) -> None:
    if hidden := hidden_in(text):
        raise InvalidInput(f"The {what} contains the character {described(hidden)}.", field=field)
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > most:
        raise InvalidInput(
            f"The {what} has {size} bytes.", accepted=f"At most {most} bytes.", field=field
        )
