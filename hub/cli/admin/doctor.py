"""``carrel doctor``: check this machine for missing or unsafe settings."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import asdict
from typing import NoReturn

import click

from ...config.settings import EngineKind, Settings
from ...config.state_folder import StateFolder
from ...records.diagnostics import Finding, Severity
from ...supervisor import doctor as doctors
from ..common import display
from ..common.operator_options import state_option

_MARKS = {
    Severity.FINE: "ok     ",
    Severity.NOTE: "note   ",
    Severity.WARNING: "warning",
    Severity.MISSING: "MISSING",
    Severity.UNKNOWN: "unknown",
}


@click.command()
@state_option
@click.option(
    "--engine",
    type=click.Choice([each.value for each in EngineKind]),
    help="Check this engine instead of that of the installation.",
)
@click.option(
    "--url", metavar="URL", default="", help="The public address, to check its certificate."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
def doctor(*, state: StateFolder, engine: str | None, url: str, as_json: bool) -> None:
    """Check this machine for missing or unsafe settings, and show how to fix them.

    Works before the first start, while Carrel is running, and when it does not start. Changes
    nothing. With containers it queries each engine, and runs short containers there to check the
    firewall and, for other machines, the shared folders and the network in both directions.

    The exit status is 1 if something is missing, otherwise 0: Carrel works despite warnings.
    --json prints: ok, findings (subject, verdict, what, mend).

    \b
    Examples:
      carrel doctor
      carrel doctor --engine docker
      carrel doctor --url https://jupyter.example.edu --json
    """
    settings = settings_for(state, None if engine is None else EngineKind(engine))
    report(doctors.findings(state, settings, url=url), as_json=as_json)


def settings_for(state: StateFolder, engine: EngineKind | None) -> Settings:
    """Return the settings of the installation, or of a new one, with this engine if it is given."""
    settings = Settings.load(state) if state.settings.exists() else Settings()
    return settings if engine is None else settings.changed(engine=engine)


def report(findings: Iterable[Finding], *, as_json: bool) -> NoReturn:
    """Print findings as they come, and exit with 1 if something is missing."""
    found: list[Finding] = []
    for each in findings:
        found.append(each)
        if not as_json:
            _print(each)
    healthy = doctors.healthy(tuple(found))
    if as_json:
        display.as_json({"ok": healthy, "findings": [asdict(each) for each in found]})
    sys.exit(0 if healthy else 1)


def _print(finding: Finding) -> None:
    click.echo(f"{_MARKS[finding.verdict]}  {finding.subject}: {finding.what}")
    if finding.mend:
        click.echo(f"         {finding.mend}")


COMMANDS: dict[str, click.Command] = {"doctor": doctor}
