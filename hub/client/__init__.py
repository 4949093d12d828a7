"""The service's client: what the command line, the widgets and people's programs use."""

from __future__ import annotations

from ..schemas import parsers as values
from . import job_builder as describing
from .async_client import LIVE_STATES, AsyncClient
from .login import login, sign_in_with_token
from .sync_client import Client
from .transport.credentials import (
    Credentials,
    CredentialsFile,
    credentials_here,
    public_site,
    session_home,
)
from .transport.downloads import LogPart, OutputFile
from .transport.site_url import Site

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
