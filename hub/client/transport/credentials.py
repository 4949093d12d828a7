"""The stored tokens of the command line, by site.

``$XDG_CONFIG_HOME/carrel/credentials.json`` (``~/.config/…`` by default), readable by its owner
only: ``{"default": SITE, "sites": {SITE: {"user": …, "token": …, "expires_at": …}}}``.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

from ...errors import Forbidden, InvalidInput
from ...files.private_file import write_private
from .site_url import SiteUrl


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """A token for one site.

    Attributes:
        url: the site's base URL.
        user: the owner of the token.
        expires_at: seconds since the epoch; None if unknown.
    """

    url: str
    user: str
    token: str
    expires_at: float | None = None


def current_credentials(url: str | None = None) -> Credentials:
    """Return the credentials of the current user.

    1. ``CARREL_TOKEN`` with ``url``, ``CARREL_URL`` or the default site
    2. inside a session: ``CARREL_URL`` and ``JUPYTERHUB_API_TOKEN``
    3. elsewhere: the credentials that ``carrel login`` stored for ``url`` or the default site

    Raises:
        Forbidden: not signed in; the message names the command to sign in.
    """
    here = os.environ.get("CARREL_URL")
    if token := os.environ.get("CARREL_TOKEN"):
        address = url or here or CredentialsFile.of_current_user().find().url
        return Credentials(url=address, user="", token=token)
    token = os.environ.get("JUPYTERHUB_API_TOKEN")
    if here and token and _is_session_of(here, url):
        return Credentials(url=here, user="", token=token)
    return CredentialsFile.of_current_user().find(url or here)


def session_home(url: str | None = None) -> Path | None:
    """Return the home folder, which jobs see too; None outside of a session of that site."""
    here, token = os.environ.get("CARREL_URL"), os.environ.get("JUPYTERHUB_API_TOKEN")
    return Path.home().resolve() if here and token and _is_session_of(here, url) else None


def public_site(site: SiteUrl) -> SiteUrl:
    """Return the address of the site for browsers.

    A session in a container reaches the site at another address.
    """
    here, public = os.environ.get("CARREL_URL"), os.environ.get("CARREL_PUBLIC_URL")
    return SiteUrl.at(public) if here and public and SiteUrl.at(here) == site else site


def _is_session_of(here: str, url: str | None) -> bool:
    return not url or SiteUrl.at(url) in (SiteUrl.at(here), public_site(SiteUrl.at(here)))


@dataclass(frozen=True, slots=True, kw_only=True)
class CredentialsFile:
    """The file of stored sites; the site of the last sign-in is the default."""

    path: Path

    @classmethod
    def of_current_user(cls) -> Self:
        home = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
        return cls(path=Path(home) / "carrel" / "credentials.json")

    def find(self, url: str | None = None) -> Credentials:
        """Return the credentials of a site, or of the default one.

        Raises:
            Forbidden: not signed in there.
        """
        default, sites = self._read()
        site = SiteUrl.at(url).base if url else default
        if site and site in sites:
            return sites[site]
        signed_in = ", ".join(sorted(sites))
        raise Forbidden(
            f"You are not signed in to {site}." if site else "You are not signed in.",
            accepted=f"Sign in with: carrel login {site or 'URL'}"
            + (f" (signed in to: {signed_in})." if signed_in else ""),
        )

    def add(self, credentials: Credentials) -> None:
        """Store credentials and make their site the default."""
        _, sites = self._read()
        self._write(credentials.url, sites | {credentials.url: credentials})

    def remove(self, url: str) -> None:
        """Remove a site, if it is stored; another one becomes the default."""
        default, sites = self._read()
        sites.pop(url, None)
        self._write(default if default in sites else next(iter(sites), ""), sites)

    def _read(self) -> tuple[str, dict[str, Credentials]]:
        try:
            stored = json.loads(self.path.read_text())
            sites = {url: Credentials(url=url, **site) for url, site in stored["sites"].items()}
            return str(stored["default"]), sites
        except FileNotFoundError:
            return "", {}
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise InvalidInput(
                f"{self.path} cannot be read: {error}.",
                accepted="Remove it and sign in again with: carrel login URL",
            ) from error

    def _write(self, default: str, sites: dict[str, Credentials]) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        entries = {
            url: {name: value for name, value in asdict(site).items() if name != "url"}
            for url, site in sites.items()
        }
        content = json.dumps({"default": default, "sites": entries}, indent=2)
        write_private(self.path, content + "\n")
