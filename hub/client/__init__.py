"""The service's client: what the command line, the widgets and people's programs use."""

from __future__ import annotations

from .credentials import Credentials, CredentialsFile
from .rest import LIVE_STATES, Client, LogPart, OutputFile
from .signin import login, sign_in_with_token
from .site import Site

__all__ = [
    "LIVE_STATES",
    "Client",
    "Credentials",
    "CredentialsFile",
    "LogPart",
    "OutputFile",
    "Site",
    "login",
    "sign_in_with_token",
]
