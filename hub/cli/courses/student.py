"""The commands of ``carrel course`` for students."""

from __future__ import annotations

import time
from pathlib import Path

import click

from ....courses.workspace import folder as workspace_folder
from ...client import Client
from ...errors import Conflict, InvalidInput
from ...messages import units
from ...schemas.courses import AssignmentOut, ReceiptOut, SubmitIn
from ..common import display
from ..common.client_command import ClientCommand, json_option, site_option
from ..common.notes import confirmed, note
from ..common.proof_file import write_proof
from ..common.terminal import plain
from .selection import assignment_argument, course_option, due_text, working


@click.command("assignments", cls=ClientCommand)
@course_option
@json_option
@site_option
def assignments_command(*, course: str, as_json: bool, site: str | None) -> None:
    """List the assignments of a course with due dates and your state.

    \b
    Example:
      carrel course assignments
    """
    with Client.from_environment(site) as client:
        name = working(client, course)
        found = client.assignments(name)
    empty = f"{name} has no assignment yet."
    if display.listed(found, empty=empty, as_json=as_json):
        return
    header = ["ASSIGNMENT", "STATE", "DUE", "EXTENSION", "LATE RULE"]
    display.table(header, (_row(each) for each in found))


def _row(assignment: AssignmentOut) -> list[str]:
    state = assignment.state
    if assignment.submitted is not None:
        state += f", {assignment.submitted} submitted"
    elif assignment.fetched_version and assignment.fetched_version < assignment.version:
        state += ", a newer version is available"
    due = due_text(assignment.due, assignment.zone)
    return [assignment.name, state, due, assignment.extension, assignment.late]


@click.command("fetch", cls=ClientCommand)
@assignment_argument
@course_option
@click.option(
    "--to",
    "target",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Target folder; default: ./ASSIGNMENT.",
)
@json_option
@site_option
def fetch_command(
    *, assignment: str, course: str, target: Path | None, as_json: bool, site: str | None
) -> None:
    """Fetch an assignment into ./ASSIGNMENT, or update that folder to a newer version.

    Your work is never overwritten: notebooks are merged cell by cell, and cells that changed on
    both sides are kept twice.

    \b
    Examples:
      carrel course fetch ps1
      carrel course fetch ps1 --to ~/cs101/ps1
    """
    folder = target or Path(assignment)
    with Client.from_environment(site) as client:
        name = working(client, course, assignment)
        made, notes = workspace_folder.fetch_into(
            folder, lambda version: client.fetch_assignment(name, assignment, version=version)
        )
    if as_json:
        fetched = {"folder": str(folder), "version": made.version, "notes": list(notes)}
        display.as_json({"course": name, "assignment": assignment, **fetched})
        return
    click.echo(f"Fetched {assignment} of {name}, version {made.version}, into {folder}.")
    for each in notes:
        click.echo(plain(each))


@click.command("submit", cls=ClientCommand)
@assignment_argument
@click.argument("folder", required=False, type=click.Path(path_type=Path))
@course_option
@click.option("--incomplete", is_flag=True, help="Submit without a notebook of the assignment.")
@json_option
@site_option
def submit_command(
    *,
    assignment: str,
    folder: Path | None,
    course: str,
    incomplete: bool,
    as_json: bool,
    site: str | None,
) -> None:
    """Submit FOLDER, or ./ASSIGNMENT, as often as you like until the due date.

    The receipt has the time at which the site had stored all files, and a SHA-256 checksum of the
    output of `sha256sum` for your files, sorted by name.

    \b
    Examples:
      carrel course submit ps1
      carrel course submit ps1 ~/cs101/ps1
    """
    where = folder or Path(assignment)
    content = workspace_folder.files_to_submit(where)
    if not content.files:
        raise InvalidInput(
            f"There are no files in {where}.", accepted="Give the folder with your work."
        )
    mark = workspace_folder.fetch_record_of(where)
    version = mark.version if mark and mark.assignment == assignment else 0
    with Client.from_environment(site) as client:
        known = mark.course if mark and version else ""
        name = working(client, course or known, assignment)
        body = SubmitIn(files=content.sent, version=version, incomplete=incomplete)
        receipt = _submitted(client, name, assignment, body)
    if content.left_out:
        left = ", ".join(plain(each) for each in content.left_out[:5])
        note(f"Left out because they are not regular files: {left}.")
    if as_json:
        display.as_json(receipt)
        return
    _receipt(receipt)


def _submitted(client: Client, course: str, assignment: str, body: SubmitIn) -> ReceiptOut:
    """Submit; ask before files that lack a notebook replace what was submitted before."""
    try:
        return client.submit_assignment(course, assignment, body)
    except Conflict as error:
        if error.field != "incomplete":
            raise
        if not confirmed(f"{plain(error.message)} Submit without?"):
            error.accepted = f"{error.accepted} (--incomplete)"
            raise
    return client.submit_assignment(
        course, assignment, body.model_copy(update={"incomplete": True})
    )


def _receipt(receipt: ReceiptOut) -> None:
    now = time.time()
    moment = f"{display.exact_time(receipt.at, now)} ({display.zone(now)})"
    click.echo(f"Submitted {receipt.assignment} of {receipt.course}, number {receipt.number}.")
    click.echo(f"At:      {moment}. {receipt.sentence}")
    click.echo(f"SHA-256: {receipt.sha256}")
    for file in receipt.files:
        click.echo(f"         {plain(file.name)} ({units.size(file.size)})")
    for name in receipt.missing:
        note(f"{plain(name)} of the release is missing.")


@click.command("receipts", cls=ClientCommand)
@assignment_argument
@course_option
@click.option(
    "--person", default="", help="For teachers and graders: the submissions of one student."
)
@json_option
@site_option
def receipts_command(
    *, assignment: str, course: str, person: str, as_json: bool, site: str | None
) -> None:
    """List the submissions: time, SHA-256, and which one is graded.

    \b
    Example:
      carrel course receipts ps1
    """
    with Client.from_environment(site) as client:
        found = client.receipts(working(client, course, assignment), assignment, person=person)
    empty = f"There are no submissions of {assignment}."
    if display.listed(found, empty=empty, as_json=as_json):
        return
    now = time.time()
    display.table(
        ["ID", "STUDENT", "NUMBER", f"AT ({display.zone(now)})", "SIZE", "STANDING", "SHA-256"],
        (
            [
                *(str(each.id), each.person, str(each.number)),
                display.exact_time(each.at, now),
                units.size(each.size),
                each.standing + (", graded" if each.counts else ""),
                each.sha256,
            ]
            for each in found
        ),
        right="ID,NUMBER,SIZE",
    )


@click.command("proof", cls=ClientCommand)
@assignment_argument
@course_option
@click.option(
    "-o",
    "--output",
    "target",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Default: ./ASSIGNMENT.proof.json.",
)
@json_option
@site_option
def proof_command(
    *, assignment: str, course: str, target: Path | None, as_json: bool, site: str | None
) -> None:
    """Write a proof that your submissions, and the feedback on them, are in the site's log.

    The file contains the time, and the SHA-256 of each submitted file. `carrel verify` checks it
    with the public key of the site, which `carrel site-key -o site.pem` writes, and needs no site.

    \b
    Example:
      carrel course proof ps1 -o ps1.proof.json
    """
    with Client.from_environment(site) as client:
        name = working(client, course, assignment)
        document = client.coursework_proof(name, assignment)
    write_proof(target or Path(f"{assignment}.proof.json"), document, as_json=as_json)


STUDENTS_COMMANDS = (
    *(assignments_command, fetch_command, submit_command, receipts_command, proof_command),
)
