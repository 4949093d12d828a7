"""``carrel course rehearse``."""

from __future__ import annotations

import sys
import time

import click

from ...client import Client
from ...errors import NotFound
from ...messages import units
from ...schemas.coursework.rehearsals import (
    RehearsalIn,
    RehearsalOut,
    RehearsalScheduleIn,
    RehearsedFindingOut,
)
from ...schemas.schedules import ScheduleOut
from ..common import display
from ..common.client_command import ClientCommand, json_option, site_option
from ..common.terminal import plain
from ..jobs.schedules import CRON_HELP, ZONE_HELP, created_sentence, last_result, next_time

_EVERY = 1.0


@click.command("rehearse", cls=ClientCommand)
@click.argument("course")
@click.option(
    "--image",
    default="",
    metavar="NAME|DIGEST",
    help="Candidate image; by default the newest build of the course's image.",
)
@click.option("--assignment", default="", help="Only this one; by default all released ones.")
@click.option("--wait", is_flag=True, help="Wait for the result; exit status 1 if any breaks.")
@click.option("--last", is_flag=True, help="Show the newest rehearsal instead of starting one.")
@click.option("--cron", metavar="EXPRESSION", help=f"Rehearse at set times. {CRON_HELP}")
@click.option("--zone", metavar="ZONE", help=f"Time zone of --cron. {ZONE_HELP} [default: UTC]")
@click.option("--schedules", is_flag=True, help="List the schedules of the course's rehearsals.")
@json_option
@site_option
def rehearse_command(
    *,
    course: str,
    image: str,
    assignment: str,
    wait: bool,
    last: bool,
    cron: str | None,
    zone: str | None,
    schedules: bool,
    as_json: bool,
    site: str | None,
) -> None:
    """Run every solution and hand-out of COURSE on an image, before term (teachers).

    A solution must get full points from all tests. A hand-out must run without errors other than
    those of unsolved cells, and must not get full points. The jobs run on idle capacity; no
    submission, grade or gradebook changes. The table shows what breaks, and whether it was already
    broken on the course's present image.

    With --cron, a schedule of yours starts it at these times; all teachers of the course pause,
    resume and remove it with `carrel schedule`.

    \b
    Examples:
      carrel course rehearse cs101 --wait
      carrel course rehearse cs101 --image datascience@sha256:3f2a91c04b7d --wait
      carrel course rehearse cs101 --last
      carrel course rehearse cs101 --cron "0 3 * * *" --zone Europe/Berlin
      carrel course rehearse cs101 --schedules
    """
    if last and (image or assignment):
        raise click.UsageError("--last shows the newest rehearsal: omit --image and --assignment.")
    if zone is not None and cron is None:
        raise click.UsageError("--zone needs --cron.")
    if cron is not None and (wait or last):
        raise click.UsageError("--cron starts no rehearsal now: omit --wait and --last.")
    if schedules and (image or assignment or wait or last or cron is not None):
        raise click.UsageError("--schedules lists schedules: omit the other options.")
    with Client.from_environment(site) as client:
        if schedules:
            _show_schedules(course, client.rehearsal_schedules(course), as_json=as_json)
        elif cron is not None:
            fields = {"image": image, "assignment": assignment, "cron": cron, "zone": zone or "UTC"}
            _add_schedule(client, course, RehearsalScheduleIn(**fields), as_json=as_json)
        else:
            found = (
                _newest(client, course)
                if last
                else client.rehearse(course, RehearsalIn(image=image, assignment=assignment))
            )
            _show_one(client, found, wait=wait, as_json=as_json)


def _show_one(client: Client, found: RehearsalOut, *, wait: bool, as_json: bool) -> None:
    """Print a rehearsal; with ``wait`` its result, and exit with 1 if anything breaks."""
    if wait and not found.ended:
        if not as_json:
            click.echo(f"Rehearsing {found.course} ({found.id}) …")
        found = _ended(client, found)
    if as_json:
        display.as_json(found)
    else:
        _show(found)
    if wait and not found.works:
        sys.exit(1)


def _add_schedule(client: Client, course: str, body: RehearsalScheduleIn, *, as_json: bool) -> None:
    made = client.schedule_rehearsals(course, body)
    if as_json:
        display.as_json(made)
    else:
        click.echo(created_sentence(made))


def _show_schedules(course: str, found: list[ScheduleOut], *, as_json: bool) -> None:
    empty = f"{course} is not rehearsed at set times: carrel course rehearse {course} --cron TIMES"
    if display.listed(found, empty=empty, as_json=as_json):
        return
    now = time.time()
    rows = [
        [
            each.id,
            each.what,
            each.owner,
            f"{each.cron} {each.zone}",
            next_time(each, now),
            last_result(each, now),
            each.paused_why,
        ]
        for each in found
    ]
    display.table(["ID", "WHAT", "OWNER", "TIMES", "NEXT", "LAST", "PAUSED BECAUSE"], rows)


def _newest(client: Client, course: str) -> RehearsalOut:
    found = client.rehearsals(course)
    if not found:
        raise NotFound(
            f"{course} has not been rehearsed yet.", accepted=f"carrel course rehearse {course}"
        )
    return found[0]


def _ended(client: Client, rehearsal: RehearsalOut) -> RehearsalOut:
    while not rehearsal.ended:
        time.sleep(_EVERY)
        rehearsal = client.rehearsal(rehearsal.course, rehearsal.id)
    return rehearsal


def _show(found: RehearsalOut) -> None:
    where = f" on {units.short_reference(found.image)}" if found.image else ""
    click.echo(f"Rehearsal of {found.course}{where} ({found.id}): {plain(found.sentence)}")
    rows = []
    for each in found.assignments:
        if not each.findings:
            rows.append([each.assignment, each.state, "", "", each.why, ""])
        for finding in each.findings:
            cell = finding.cell or "whole notebook"
            place = f"{finding.notebook}: {cell}" if finding.notebook else cell
            row = [each.assignment, each.state, finding.part, place, finding.error]
            rows.append([*row, _before(finding)])
    display.table(["ASSIGNMENT", "STATE", "PART", "CELL", "ERROR", "PRESENT IMAGE"], rows)
    if not found.ended:
        click.echo(f"Result: carrel course rehearse {found.course} --last --wait")


def _before(finding: RehearsedFindingOut) -> str:
    if finding.already is None:
        return ""
    return "already broken" if finding.already else "works"
