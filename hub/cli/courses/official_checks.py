"""``carrel course official-checks``, and the official form of ``carrel course check``."""

from __future__ import annotations

import time

import click

from ...client import Client
from ...errors import NotFound
from ...messages import units
from ...schemas.courses import SubmitIn
from ...schemas.coursework.official_checks import (
    MOST_PER_DAY,
    OfficialCheckLogOut,
    OfficialCheckOut,
    OfficialCheckRuleIn,
)
from ..common import display
from ..common.client_command import ClientCommand, json_option, site_option
from ..common.terminal import plain
from .selection import assignment_argument, course_option, grading, teaching

_EVERY = 1.0


@click.command("official-checks", cls=ClientCommand)
@assignment_argument
@course_option
@click.option(
    "--per-day",
    type=click.IntRange(1, MOST_PER_DAY),
    metavar="N",
    help=f"Allow each student N runs a day, 1 to {MOST_PER_DAY}.",
)
@click.option("--names-cells", is_flag=True, help="With --per-day: name the tests in the result.")
@click.option("--off", is_flag=True, help="Allow no further runs; the log stays.")
@json_option
@site_option
def official_checks_command(
    *,
    assignment: str,
    course: str,
    per_day: int | None,
    names_cells: bool,
    off: bool,
    as_json: bool,
    site: str | None,
) -> None:
    """Let students run the hidden tests N times a day, or show the log (teachers).

    A student gets a verdict and the points, and with --names-cells the names of the tests; never a
    test or what it printed. The runs use idle capacity, in your name. Without options, the rule and
    all checks are listed; --json has their signed receipts.

    \b
    Examples:
      carrel course official-checks ps1 --per-day 3
      carrel course official-checks ps1
      carrel course official-checks ps1 --off
    """
    if off and (per_day is not None or names_cells):
        raise click.UsageError("--off cannot be combined with --per-day or --names-cells.")
    if names_cells and per_day is None:
        raise click.UsageError("--names-cells needs --per-day.")
    with Client.from_environment(site) as client:
        if per_day is not None:
            name = teaching(client, course)
            body = OfficialCheckRuleIn(per_day=per_day, names_cells=names_cells)
            client.allow_official_checks(name, assignment, body)
        elif off:
            name = teaching(client, course)
            client.forbid_official_checks(name, assignment)
        else:
            name = grading(client, course, assignment)
        found = client.official_check_log(name, assignment)
    if as_json:
        display.as_json(found)
    else:
        _show_log(found)


def _show_log(found: OfficialCheckLogOut) -> None:
    rule = found.rule
    if rule.per_day:
        named = "names the tests" if rule.names_cells else "does not name tests"
        runs = units.count(rule.per_day, "official check")
        click.echo(f"{rule.assignment}: {runs} a day for each student. The result {named}.")
    else:
        click.echo(f"Official checks of {rule.assignment} are not allowed.")
    if found.checks:
        now = time.time()
        rows = [
            [
                display.local_time(each.asked_at, now),
                each.person,
                str(each.version),
                each.outcome or "not ended",
                "" if each.points is None else f"{each.points:g} of {each.max_points:g}",
                each.sha256[:12],
                each.id,
            ]
            for each in found.checks
        ]
        heads = ["ASKED", "STUDENT", "VERSION", "RESULT", "POINTS", "FILES", "REQUEST"]
        display.table(heads, rows)


def check_officially(
    client: Client, course: str, assignment: str, body: SubmitIn | None, *, watch: bool, quiet: bool
) -> OfficialCheckOut:
    """Start an official check, or with no files show the newest one; wait with ``watch``."""
    if body is not None:
        found = client.official_check(course, assignment, body)
    else:
        checks = client.official_checks(course, assignment).checks
        if not checks:
            raise NotFound(
                f"You have no official check of {assignment}.",
                accepted=f"carrel course check {assignment} --official",
            )
        found = checks[0]
    if watch and not found.ended and not quiet:
        click.echo(f"Official check of {assignment} of {course} ({found.id}) …")
    while watch and not found.ended:
        time.sleep(_EVERY)
        checks = client.official_checks(course, assignment).checks
        found = next(each for each in checks if each.id == found.id)
    return found


def show_official_check(client: Client, found: OfficialCheckOut) -> None:
    click.echo(f"Official check of {found.assignment} ({found.id}): {plain(found.sentence)}")
    if found.cells:
        rows = [
            [f"{c.notebook}/{c.cell}", "passed" if c.passed else "not passed"] for c in found.cells
        ]
        display.table(["CELL", "RESULT"], rows)
    if not found.ended:
        click.echo(f"Result: carrel course check {found.assignment} --official --last")
    rule = client.official_checks(found.course, found.assignment)
    if rule.per_day:
        again = display.local_time(rule.next_at, time.time())
        click.echo(f"Official checks left today: {rule.left} of {rule.per_day}. Next day: {again}.")
