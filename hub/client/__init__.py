"""Client of the Carrel REST API, for the command line, widgets and users' programs."""

from __future__ import annotations

from ..schemas import parsers
from . import job_builder
from .async_client import LIVE_STATES, AsyncClient
from .login import login, sign_in_with_token
from .sync_client import Client
from .transport.credentials import (
    Credentials,
    CredentialsFile,
    current_credentials,
    public_site,
    session_home,
)
from .transport.downloads import LogPart, OutputFile
from .transport.site_url import SiteUrl

__all__ = [
    "LIVE_STATES",
    "AsyncClient",
    "Client",
    "Credentials",
    "CredentialsFile",
    "LogPart",
    "OutputFile",
    "SiteUrl",
    "current_credentials",
    "job_builder",
    "login",
    "parsers",
    "public_site",
    "session_home",
    "sign_in_with_token",
]
