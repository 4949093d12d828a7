"""The service's client: what the command line, the widgets and people's programs use."""

from __future__ import annotations

from . import describing, values
from .answers import LogPart, OutputFile
from .blocking import Client
from .credentials import Credentials, CredentialsFile, credentials_here, public_site, session_home
from .rest import LIVE_STATES, AsyncClient
from .signin import login, sign_in_with_token
from .site import Site

__all__ = [
    "LIVE_STATES",
    "AsyncClient",
    "Client",
    "Credentials",
    "CredentialsFile",
    "LogPart",
    "OutputFile",
    "Site",
    "credentials_here",
    "describing",
    "login",
    "public_site",
    "session_home",
    "sign_in_with_token",
    "values",
]
