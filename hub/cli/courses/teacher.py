"""``carrel course release``, ``extend``, ``count`` and ``outage``."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import click

from ....courses.deadlines import rules as due
from ....courses.releases.messages import sentences
from ....courses.workspace import folder as workspace_folder
from ...client import Client
from ...messages import units
from ...schemas import parsers
from ...schemas.admin import ConsequencesOut
from ...schemas.courses import (
    ExtensionIn,
    ExtensionOut,
    OutageIn,
    OutageOut,
    ReleasedOut,
    ReleaseIn,
)
from ..common import display
from ..common.client_command import ClientCommand, json_option, site_option
from ..common.notes import note
from ..common.terminal import plain
from .selection import assignment_argument, course_option, due_text, grading, teaching


@click.command("release", cls=ClientCommand)
@assignment_argument
@course_option
@click.option(
    "--from", "source", metavar="DIR", type=click.Path(path_type=Path), help="Folder of its files."
)
@click.option("--due", metavar="WHEN", help=f"Such as {due.DUE_HELP!r}; '' for no due date.")
@click.option("--late", metavar="RULE", help=f"Late rule: {due.LATE_HELP}.")
@click.option("--devices", type=click.IntRange(0), help="Devices for grading one submission.")
@click.option("--time", "span", metavar="SPAN", help="Time limit for grading one submission: 10m.")
@click.option("--ungraded", is_flag=True, help="Release it although no cell has points.")
@json_option
@site_option
def release_command(
    *,
    assignment: str,
    course: str,
    source: Path | None,
    due: str | None,
    late: str | None,
    devices: int | None,
    span: str | None,
    ungraded: bool,
    as_json: bool,
    site: str | None,
) -> None:
    """Release an assignment, or a new version of it (teachers).

    The files are those of --from, else of ./source/ASSIGNMENT or ./ASSIGNMENT, in nbgrader's
    layout: students get them without solutions and hidden tests. Without any of these folders the
    files are kept, and only the given options change.

    \b
    Examples:
      carrel course release ps1 --due "2027-02-01 18:00 Europe/Berlin" --late "24h:-10%" --time 10m
      carrel course release ps1 --due "2027-02-03 18:00 Europe/Berlin"
    """
    folder = source or next(
        (each for each in (Path("source", assignment), Path(assignment)) if each.is_dir()), None
    )
    content = workspace_folder.files_to_submit(folder) if folder is not None else None
    named = {
        "files": content.sent if content else None,
        "due": due,
        "late": late,
        "devices": devices,
        "seconds": parsers.seconds(span) if span else None,
        "ungraded": ungraded or None,
    }
    body = ReleaseIn.model_validate({k: v for k, v in named.items() if v is not None})
    with Client.from_environment(site) as client:
        made = client.release(teaching(client, course), assignment, body)
    _left_out(content.left_out if content else ())
    if as_json:
        display.as_json(made)
        return
    _released(made)


@click.command("withdraw", cls=ClientCommand)
@assignment_argument
@course_option
@json_option
@site_option
def withdraw_command(*, assignment: str, course: str, as_json: bool, site: str | None) -> None:
    """Hide an assignment from students (teachers).

    Its files and submissions are kept. `carrel course release` shows it again.

    \b
    Example:
      carrel course withdraw ps1
    """
    with Client.from_environment(site) as client:
        where = teaching(client, course)
        client.withdraw_assignment(where, assignment)
    if as_json:
        display.as_json({"course": where, "assignment": assignment, "state": "not released"})
        return
    click.echo(f"Students no longer see {assignment} of {where}.")


def _released(made: ReleasedOut) -> None:
    click.echo(f"Released {made.assignment} of {made.course}, version {made.version}.")
    click.echo(f"Files: {', '.join(plain(file.name) for file in made.files)}.")
    late = "" if made.due is None else f" {made.late_rule}"
    click.echo(f"Due: {due_text(made.due, made.zone)}.{late}")
    for sentence in sentences(made.report):
        click.echo(plain(sentence))
    for warning in made.warnings:
        note(f"Warning: {plain(warning)}")


@click.command("extend", cls=ClientCommand)
@assignment_argument
@click.argument("whom", required=False)
@click.argument("span", required=False)
@course_option
@click.option("--section", is_flag=True, help="WHOM is a section, not a student.")
@click.option("--why", default="", help="Reason, recorded in the audit log.")
@click.option("--undo", is_flag=True, help="Revoke the extensions of WHOM.")
@json_option
@site_option
def extend_command(
    *,
    assignment: str,
    whom: str | None,
    span: str | None,
    course: str,
    section: bool,
    why: str,
    undo: bool,
    as_json: bool,
    site: str | None,
) -> None:
    """Grant WHOM an extension for an assignment, or list extensions (teachers).

    Extensions add up. To change one, revoke it and grant another.

    \b
    Examples:
      carrel course extend ps1 student2 48h
      carrel course extend ps1 blue 24h --section --why "The lab was closed."
      carrel course extend ps1
      carrel course extend ps1 student2 --undo
    """
    if whom is None and (undo or section or why):
        raise click.UsageError("Name a student or section: carrel course extend ASSIGNMENT WHOM …")
    if whom is not None and undo is (span is not None):
        raise click.UsageError("Give the extension, such as 48h, or revoke it with --undo.")
    with Client.from_environment(site) as client:
        name = grading(client, course, assignment)
        if whom is None:
            _show_extensions(client.extensions(name, assignment), assignment, as_json=as_json)
            return
        recipient = {"section" if section else "person": whom}
        if span is None:
            consequences = client.revoke_extensions(name, assignment, **recipient)
        else:
            given = {**recipient, "seconds": parsers.seconds(span), "why": why}
            consequences = client.grant_extension(
                name, assignment, ExtensionIn.model_validate(given)
            )
    _done(consequences, as_json=as_json)


def _show_extensions(found: Sequence[ExtensionOut], assignment: str, *, as_json: bool) -> None:
    empty = f"There are no extensions for {assignment}."
    if display.listed(found, empty=empty, as_json=as_json):
        return
    now = time.time()
    rows = [
        [
            f"section {each.section}" if each.section else each.person,
            units.duration(each.seconds),
            display.local_time(each.given_at, now),
            *(each.given_by, " ".join(each.why.split())),
        ]
        for each in found
    ]
    display.table(["FOR", "EXTENSION", f"GRANTED ({display.zone(now)})", "BY", "WHY"], rows)


@click.command("count", cls=ClientCommand)
@click.argument("submission", type=click.IntRange(1))
@click.option("--undo", is_flag=True, help="Apply the late rule again.")
@json_option
@site_option
def count_command(*, submission: int, undo: bool, as_json: bool, site: str | None) -> None:
    """Let a submission count, regardless of its time (teachers).

    SUBMISSION is its ID from `carrel course receipts`.

    \b
    Example:
      carrel course count 17
    """
    with Client.from_environment(site) as client:
        receipt = client.select_submission(submission, undo=undo)
    if as_json:
        display.as_json(receipt)
        return
    click.echo(f"{receipt.person}, {receipt.assignment}, {receipt.number}: {receipt.sentence}")


@click.command("outage", cls=ClientCommand)
@click.argument("begin", required=False)
@click.argument("end", required=False)
@click.option("--course", default="", help="Only for this course.")
@click.option("--why", default="", help="What happened; shown to the courses.")
@json_option
@site_option
def outage_command(
    *,
    begin: str | None,
    end: str | None,
    course: str,
    why: str,
    as_json: bool,
    site: str | None,
) -> None:
    """Record an outage (administrators), or list outages.

    Assignments due from BEGIN to END, or within a day after, are due later by its length.

    \b
    Examples:
      carrel course outage "2027-02-01 15:00 Europe/Berlin" "2027-02-01 18:00 Europe/Berlin"
      carrel course outage
    """
    if begin is None:
        if why:
            raise click.UsageError("Give the start and the end of the outage.")
        with Client.from_environment(site) as client:
            _show_outages(client.outages(), course, as_json=as_json)
        return
    if end is None:
        raise click.UsageError("Give the end of the outage as well.")
    begins_at, ends_at = due.read_due(begin)[0], due.read_due(end)[0]
    body = OutageIn(starts_at=begins_at, ends_at=ends_at, course=course, why=why)
    with Client.from_environment(site) as client:
        consequences = client.record_outage(body)
    _done(consequences, as_json=as_json)


def _show_outages(outages: Sequence[OutageOut], course: str, *, as_json: bool) -> None:
    found = [each for each in outages if not course or each.course in ("", course)]
    empty = "No outage is recorded."
    if display.listed(found, empty=empty, as_json=as_json):
        return
    now = time.time()
    rows = [
        [
            display.local_time(each.starts_at, now),
            display.local_time(each.ends_at, now),
            *(each.course or "all", each.recorded_by, " ".join(each.why.split())),
        ]
        for each in found
    ]
    zone = display.zone(now)
    display.table([f"FROM ({zone})", f"TO ({zone})", "COURSE", "BY", "WHY"], rows)


def say(consequences: ConsequencesOut) -> None:
    for sentence in consequences.sentences:
        click.echo(plain(sentence))


def _done(consequences: ConsequencesOut, *, as_json: bool) -> None:
    if as_json:
        display.as_json(consequences)
    else:
        say(consequences)


def _left_out(names: Sequence[str]) -> None:
    if names:
        shown = ", ".join(plain(name) for name in names[:5])
        note(f"Left out because they are not regular files: {shown}.")


TEACHING_COMMANDS = (
    release_command,
    withdraw_command,
    extend_command,
    count_command,
    outage_command,
)
