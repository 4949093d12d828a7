"""Check the address of a channel against the rules of the site, and shorten it for display.

A webhook is called by the service itself, from inside its network: the host of an address must be
one that the site allows, redirects are not followed, and Apprise's options are not accepted, since
they would change timeouts, certificates and recipients.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from urllib.parse import SplitResult, urlsplit

from ..config.notification_table import ADDRESS, SERVICES, NotificationTable
from ..errors import InvalidInput
from ..schemas.names import described, hidden_in
from ..schemas.notifications.bodies import LONGEST_ADDRESS
from .records import MAIL

_LOCAL_LENGTH: Final = 64
_MAIL_LENGTH: Final = 254
_WEB: Final = frozenset({"http", "https"})


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedAddress:
    """An address that the site allows.

    Attributes:
        kind: ``MAIL`` or the scheme.
        confirmed: whether messages may be sent without a confirmation of its owner.
    """

    kind: str
    address: str
    confirmed: bool


def check_address(text: str, user: str, table: NotificationTable) -> CheckedAddress:
    """Check what a user entered; without text it is the address that the site knows.

    Raises:
        InvalidInput: it is malformed or not allowed, with what is accepted.
    """
    address = text.strip() or table.mail_of(user)
    if not address:
        raise _invalid("An address is missing.", table, user)
    if hidden := hidden_in(address):
        raise _invalid(f"The address contains the character {described(hidden)}.", table, user)
    if len(address) > LONGEST_ADDRESS:
        raise _invalid(f"The address has {len(address)} characters.", table, user)
    if "://" in address:
        return _service(address, table, user)
    return _mail(address, table, user)


def offer(table: NotificationTable, user: str) -> str:
    """Say which addresses the site accepts, as one or two sentences."""
    parts = []
    own = table.mail_of(user)
    if own:
        parts.append(f"Your e-mail address, {own}.")
    if table.smtp and table.domains:
        parts.append(f"An e-mail address at {_or(table.domains)}.")
    if table.services:
        schemes = _or([f"{name}://" for name in table.services])
        hosts = f", at the hosts {', '.join(table.hosts)}" if table.hosts else ""
        parts.append(f"An address of Apprise that begins with {schemes}{hosts}.")
    return " ".join(parts) or "This site sends no notifications."


def shortened(kind: str, address: str) -> str:
    """Return as much of an address as its owner needs to recognize it, and no secret."""
    if kind == MAIL:
        local, _, domain = address.partition("@")
        return f"{local[:2]}…@{domain}"
    host = urlsplit(address).hostname or ""
    return f"{kind}://{host}/…" if SERVICES.get(kind, False) else f"{kind}://…"


def _mail(address: str, table: NotificationTable, user: str) -> CheckedAddress:
    if not table.smtp:
        raise _invalid("This site sends no e-mail.", table, user)
    match = ADDRESS.fullmatch(address)
    local = address.partition("@")[0]
    if match is None or len(local) > _LOCAL_LENGTH or len(address) > _MAIL_LENGTH:
        raise _invalid(f"{address[:80]!r} is not an e-mail address.", table, user)
    if address == table.mail_of(user):
        return CheckedAddress(kind=MAIL, address=address, confirmed=True)
    domain = match["domain"].lower()
    if domain not in table.domains:
        raise _invalid(f"E-mail to {domain} is not allowed.", table, user)
    return CheckedAddress(kind=MAIL, address=address, confirmed=False)


def _service(address: str, table: NotificationTable, user: str) -> CheckedAddress:
    # An error does not quote the address, which may contain a password.
    try:
        parts = urlsplit(address)
        _ = parts.port
    except ValueError:
        raise _invalid("The address is not a URL.", table, user) from None
    scheme = parts.scheme.lower()
    if scheme in _WEB and "jsons" in table.services:
        raise _invalid(
            "The address is that of a web page: for a webhook, write jsons instead of https.",
            table,
            user,
        )
    if scheme not in table.services:
        raise _invalid(f"{scheme[:20]}:// is not allowed.", table, user)
    if "," in address or ";" in address or address.count("://") > 1:
        # Programs that read lists of addresses would find further ones, whose hosts are unchecked.
        raise _invalid(
            "An address is one URL, without commas and semicolons: write %2C and %3B.", table, user
        )
    if parts.query or parts.fragment or not address.isascii() or " " in address:
        raise _invalid("An address has no options after ? or #, and no spaces.", table, user)
    if SERVICES[scheme]:
        _check_host(parts, table, user)
    elif not parts.netloc:
        raise _invalid("The address is not complete.", table, user)
    return CheckedAddress(kind=scheme, address=address, confirmed=True)


def _check_host(parts: SplitResult, table: NotificationTable, user: str) -> None:
    """Require a host of the list; a host without a port in the list is allowed on any port."""
    host = (parts.hostname or "").lower()
    named = f"{host}:{parts.port}" if parts.port else host
    plain = parts.netloc.rpartition("@")[2].lower()
    if plain != named or not {host, named} & set(table.hosts):
        raise _invalid(f"Messages to the host {host[:80]!r} are not allowed.", table, user)


def _invalid(sentence: str, table: NotificationTable, user: str) -> InvalidInput:
    return InvalidInput(sentence, accepted=f"Accepted: {offer(table, user)}", field="address")


def _or(names: tuple[str, ...] | list[str]) -> str:
    *most, last = names
    return f"{', '.join(most)} or {last}" if most else last
