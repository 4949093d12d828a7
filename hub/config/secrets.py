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
    """The secrets shared by the processes of one installation.

    Attributes:
        proxy_token: authenticates JupyterHub at the API of the proxy.
        service_token: authenticates the service at JupyterHub's API, as an external hub service.
        hub_token: authenticates JupyterHub at the service; it opens sessions on behalf of users.
        crypt_key: signs the form tokens of the service.
        metrics_token: grants access to the metrics of the service, and nothing else.
    """

    proxy_token: str
    service_token: str
    hub_token: str
    crypt_key: str
    metrics_token: str

    @classmethod
    def ensure(cls, state: StateFolder) -> Self:
        """Load the secrets and create missing ones: all at the first start, added ones later."""
        known: dict[str, str] = {}
        with contextlib.suppress(FileNotFoundError):
            known = json.loads(state.secrets.read_text())
        missing = [f.name for f in fields(cls) if f.name not in known]
        found = cls(**known, **{name: secrets.token_hex(32) for name in missing})
        if missing:
            write_private(state.secrets, json.dumps(asdict(found), indent=2) + "\n")
        return found
