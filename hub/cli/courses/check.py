"""``carrel course check``: run the visible tests on the user's own work."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import click

from ....courses.workspace import folder as workspace_folder
from ...client import Client
from ...errors import InvalidInput, NotFound
from ...schemas.checks import CheckOut
from ...schemas.courses import SubmitIn
from ..common import display
from ..common.client_command import ClientCommand, json_option, site_option
from ..common.terminal import plain
from .official_checks import check_officially, show_official_check
from .selection import assignment_argument, course_option, working

_EVERY = 1.0


@click.command("check", cls=ClientCommand)
@assignment_argument
@click.argument("folder", required=False, type=click.Path(path_type=Path))
@course_option
@click.option("--watch", is_flag=True, help="Wait until it has ended, and show the result.")
@click.option("--last", is_flag=True, help="Show the newest check of the last day instead.")
@click.option(
    "--official",
    is_flag=True,
    help="Run the hidden tests too, if your teacher allows it: verdict and points only.",
)
@json_option
@site_option
def check_command(
    *,
    assignment: str,
    folder: Path | None,
    course: str,
    watch: bool,
    last: bool,
    official: bool,
    as_json: bool,
    site: str | None,
) -> None:
    """Run the visible tests on FOLDER, or ./ASSIGNMENT, as grading will run them.

    Uses the same sandbox and image, so that a test that passes here passes there. The result does
    not count, nothing is submitted, and only you see it. Grading may have further tests. With
    --watch the exit status is 1 if a test does not pass.

    With --official the hidden tests run too, as often on one day as your teacher allows. You get a
    verdict and points; your teacher sees that you have run them.

    \b
    Examples:
      carrel course check ps1 --watch
      carrel course check ps1 --last
      carrel course check ps1 --official --watch
    """
    where = folder or Path(assignment)
    mark = workspace_folder.fetch_record_of(where)
    known = mark.course if mark and mark.assignment == assignment else ""
    with Client.from_environment(site) as client:
        name = working(client, course or known, assignment)
        if official:
            body = None if last else _body(where)
            checked = check_officially(client, name, assignment, body, watch=watch, quiet=as_json)
            if as_json:
                display.as_json(checked)
            else:
                show_official_check(client, checked)
            if watch and checked.outcome != "passed":
                sys.exit(1)
            return
        found = (
            _newest(client, name, assignment)
            if last
            else client.check(name, assignment, _body(where))
        )
        if watch and not found.ended:
            if not as_json:
                click.echo(f"Checking {assignment} of {name} ({found.request}) …")
            found = _ended(client, found)
    if as_json:
        display.as_json(found)
    else:
        _show(found)
    if watch and not found.passed:
        sys.exit(1)


def _body(folder: Path) -> SubmitIn:
    content = workspace_folder.files_to_submit(folder)
    if not content.files:
        raise InvalidInput(
            f"There are no files in {folder}.", accepted="Give the folder with your work."
        )
    return SubmitIn(files=content.sent)


def _newest(client: Client, course: str, assignment: str) -> CheckOut:
    found = client.checks(course, assignment)
    if not found:
        raise NotFound(
            f"You have no check of {assignment} in the last day.",
            accepted=f"carrel course check {assignment}",
        )
    return found[0]


def _ended(client: Client, check: CheckOut) -> CheckOut:
    while not check.ended:
        time.sleep(_EVERY)
        for each in client.checks(check.course, check.assignment):
            if each.request == check.request:
                check = each
    return check


def _show(check: CheckOut) -> None:
    click.echo(f"Check of {check.assignment} ({check.request}): {plain(check.sentence)}")
    if not check.ended:
        click.echo(f"Result: carrel course check {check.assignment} --last")
        return
    if check.cells:
        several = len({cell.notebook for cell in check.cells}) > 1
        rows = [
            [
                f"{cell.notebook}/{cell.cell}" if several else cell.cell,
                cell.word,
                " ".join(cell.sentence.split()),
            ]
            for cell in check.cells
        ]
        display.table(["CELL", "RESULT", "WHY"], rows)
    for note in check.notes:
        click.echo(plain(note))
    if check.passed is not None:
        click.echo("This result does not count. Grading may have hidden tests.")


CHECKING_COMMANDS = (check_command,)
