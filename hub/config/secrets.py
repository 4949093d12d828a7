"""Create and read the secrets of an installation: tokens, passwords and keys."""

from __future__ import annotations

import contextlib
import json
import secrets
from dataclasses import asdict, dataclass, fields
from typing import Self

from ..files.private_file import write_private
from .state_folder import StateFolder


@dataclass(frozen=True, slots=True, kw_only=True)
class Secrets:
    """Tokens between the processes of one installation.

    Attributes:
        proxy_token: of the proxy's API.
        service_token: the service's token at the hub's API (an external hub service).
        hub_token: the hub's token at the service: opens sessions on behalf of people.
        crypt_key: signs the service's own form tokens.
        metrics_token: reads the service's metrics, and nothing else.
    """

    proxy_token: str
    service_token: str
    hub_token: str
    crypt_key: str
    metrics_token: str

    @classmethod
    def ensure(cls, state: StateFolder) -> Self:
        """Load the secrets and create missing ones: all at the first start, new ones later."""
        known: dict[str, str] = {}
        with contextlib.suppress(FileNotFoundError):
            known = json.loads(state.secrets.read_text())
        lacking = [f.name for f in fields(cls) if f.name not in known]
        found = cls(**known, **{name: secrets.token_hex(32) for name in lacking})
        if lacking:
            write_private(state.secrets, json.dumps(asdict(found), indent=2) + "\n")
        return found
