"""Checks of ``carrel doctor`` on this machine for any engine: disk, clock, ports, address.

The engine provides its own checks (``hub.interfaces.host``).
"""

from __future__ import annotations

import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from ...courses.sandbox.local import doctor
from ...images.docker_cli import Docker
from .. import plugins
from ..config.settings import LOCALHOST, EngineKind, Settings
from ..config.site import SiteFile
from ..config.state_folder import StateFolder
from ..errors import CarrelError, ImageFailed
from ..messages import units
from ..records.diagnostics import Finding, Severity
from . import lock, log_heads, tcp_ports

_GIB: Final = 1 << 30
_FEW_BYTES: Final = 5 * _GIB
_TOO_FEW_BYTES: Final = _GIB
_SECONDS: Final = 5.0
_DAY: Final = 86400.0
_SOON_DAYS: Final = 14
_HTTPS: Final = 443


def findings(state: StateFolder, settings: Settings, *, url: str = "") -> Iterator[Finding]:
    """Run the checks and yield their findings.

    Args:
        url: the public address, if a web server in front of Carrel serves https.
    """
    yield _site_file(state)
    yield _disk(state)
    yield _clock()
    yield from _ports(state, settings)
    yield _address(settings, url)
    if state.database.exists():
        yield from log_heads.findings(state, settings, now=time.time())
    yield from _mail_server(state)
    if settings.engine is EngineKind.DOCKER:
        yield _builder()
    try:
        host_setup = plugins.load_host_setup(state, settings)
        yield from host_setup.findings() if host_setup is not None else (_local(), doctor.finding())
        yield from plugins.device_findings(state, settings)
    except CarrelError as error:
        yield Finding(
            subject="engine", verdict=Severity.MISSING, what=error.message, mend=error.accepted
        )


def healthy(found: tuple[Finding, ...]) -> bool:
    return all(finding.verdict is not Severity.MISSING for finding in found)


def _local() -> Finding:
    return Finding(
        subject="engine",
        verdict=Severity.WARNING,
        what="Sessions and jobs are processes of one account, and not isolated from each other.",
        mend=f"For users who do not trust each other: carrel up --engine {EngineKind.DOCKER}.",
    )


def _builder() -> Finding:
    """Check BuildKit; optional, since images may also come from a registry."""
    try:
        program = Docker().program
    except ImageFailed as error:
        return Finding(
            subject="BuildKit",
            verdict=Severity.WARNING,
            what=f"Images cannot be built here. {error.message}",
            mend=error.accepted,
        )
    what = f"{program} builds images without storing secrets in their layers."
    return Finding(subject="BuildKit", verdict=Severity.FINE, what=what)


def _site_file(state: StateFolder) -> Finding:
    try:
        SiteFile.load(state)
    except CarrelError as error:
        return Finding(
            subject="carrel.toml", verdict=Severity.MISSING, what=error.message, mend=error.accepted
        )
    what = f"{state.site_file} is valid." if state.site_file.exists() else "There is no such file."
    return Finding(subject="carrel.toml", verdict=Severity.FINE, what=what)


def _mail_server(state: StateFolder) -> Iterator[Finding]:
    """Check that the mail server of notifications answers, where the site has one."""
    try:
        table = SiteFile.load(state).notifications
    except CarrelError:
        return
    if not table.smtp:
        return
    mend = "Start it, or correct smtp and smtp_port below [notifications] in carrel.toml."
    where = f"The mail server {table.smtp}, port {table.port},"
    try:
        with socket.create_connection((table.smtp, table.port), _SECONDS):
            pass
        if table.smtp_password_file:
            mend = "Correct smtp_password_file below [notifications] in carrel.toml."
            where = "The password of the mail server"
            Path(table.smtp_password_file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        yield Finding(
            subject="mail server",
            verdict=Severity.MISSING,
            what=f"{where} cannot be used: {error}.",
            mend=mend,
        )
        return
    what = f"The mail server {table.smtp} answers; to try it: carrel notify test."
    yield Finding(subject="mail server", verdict=Severity.FINE, what=what)


def _disk(state: StateFolder) -> Finding:
    """Check the free space of the nearest existing folder, also before the first start."""
    folder = next(path for path in (state.root, *state.root.parents) if path.exists())
    free = shutil.disk_usage(folder).free
    what = f"{units.size(free)} are free for {state.root}."
    mend = "Free some space, or move the state folder, which holds outputs, logs and homes."
    if free < _TOO_FEW_BYTES:
        return Finding(subject="disk", verdict=Severity.MISSING, what=what, mend=mend)
    if free < _FEW_BYTES:
        return Finding(subject="disk", verdict=Severity.WARNING, what=what, mend=mend)
    return Finding(subject="disk", verdict=Severity.FINE, what=what)


def _clock() -> Finding:
    """Check time synchronization: leases, charges and reservations use this machine's clock."""
    try:
        synchronized = subprocess.run(
            ["timedatectl", "show", "--property=NTPSynchronized", "--value"],
            check=True,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
        ).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return Finding(
            subject="clock",
            verdict=Severity.UNKNOWN,
            what="Time synchronization cannot be checked: timedatectl is not available.",
            mend="Run a time service, such as chrony.",
        )
    if synchronized == "yes":
        return Finding(subject="clock", verdict=Severity.FINE, what="The clock is synchronized.")
    return Finding(
        subject="clock",
        verdict=Severity.WARNING,
        what="The clock of this machine is not synchronized.",
        mend="timedatectl set-ntp true, or install chrony.",
    )


def _ports(state: StateFolder, settings: Settings) -> Iterator[Finding]:
    """Check that the ports are free; a running Carrel uses its own."""
    if state.run.is_dir() and lock.holder(state) is not None:
        what = "Carrel is running and uses its ports."
        yield Finding(subject="ports", verdict=Severity.FINE, what=what)
        return
    wanted = [(settings.ip, settings.port, "people connect to")]
    for internal in tcp_ports.INTERNAL:
        ip = settings.internal_ip if internal.reached else LOCALHOST
        wanted.append((ip, getattr(settings, internal.field), f"{internal.title} listens on"))
    for ip, port, use in wanted:
        if port and tcp_ports.has_address(ip) and not tcp_ports.is_free(ip, port):
            yield Finding(
                subject="ports",
                verdict=Severity.MISSING,
                what=f"Port {port}, which {use}, is taken by {tcp_ports.user_of(port)}.",
                mend="Stop that program, or choose another one: carrel up --port PORT.",
            )
            return
    yield Finding(
        subject="ports", verdict=Severity.FINE, what="The ports that Carrel uses are free."
    )


def _address(settings: Settings, url: str) -> Finding:
    """Check https: without it, passwords cross the network in clear text."""
    parts = urlsplit(url or settings.url)
    if parts.scheme == "https" and parts.hostname:
        return _certificate(parts.hostname, parts.port or _HTTPS)
    if settings.ip in (LOCALHOST, "localhost", "::1") and not url:
        return Finding(
            subject="certificate",
            verdict=Severity.FINE,
            what=f"Carrel listens only on {settings.ip}, which needs no certificate. "
            "To check a public address, name it with --url.",
        )
    return Finding(
        subject="certificate",
        verdict=Severity.WARNING,
        what=f"{url or settings.url} does not use https: passwords cross the network unencrypted.",
        mend="Put a web server with a certificate in front: docs/how-to/run-a-site.md.",
    )


def _certificate(host: str, port: int) -> Finding:
    try:
        with (
            socket.create_connection((host, port), _SECONDS) as plain,
            ssl.create_default_context().wrap_socket(plain, server_hostname=host) as secured,
        ):
            until = str((secured.getpeercert() or {}).get("notAfter", ""))
    except ssl.SSLCertVerificationError as error:
        return Finding(
            subject="certificate",
            verdict=Severity.MISSING,
            what=f"Browsers refuse the certificate of {host}: {error.verify_message}.",
            mend="Renew it, and let the web server send the intermediate certificates.",
        )
    except OSError as error:
        return Finding(
            subject="certificate",
            verdict=Severity.MISSING,
            what=f"{host} does not answer on port {port}: {error}.",
            mend="Start the web server in front of Carrel, or name another address with --url.",
        )
    days = int((ssl.cert_time_to_seconds(until) - time.time()) // _DAY)
    if days < _SOON_DAYS:
        return Finding(
            subject="certificate",
            verdict=Severity.WARNING,
            what=f"The certificate of {host} expires in {units.count(days, 'day')}.",
            mend="Renew it, or set up automatic renewal.",
        )
    return Finding(
        subject="certificate",
        verdict=Severity.FINE,
        what=f"The certificate of {host} is valid for {units.count(days, 'day')} more.",
    )
