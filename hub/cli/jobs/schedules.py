"""``carrel schedule``: jobs that the service submits at the times of a cron expression."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Unpack

import click

from ...client import Client
from ...errors import InvalidArgument
from ...messages import units
from ...schemas.schedules import ScheduleOut
from ..common import display
from ..common.client_command import AddByDefault, ClientCommand, json_option, site_option
from .submit_options import (
    SubmitOptions,
    built_fields,
    built_job,
    job_options,
    notebook_fields,
    notebook_options,
)

CRON_HELP = (
    "Minute, hour, day of month, month, weekday: '0 6 * * 1-5' is 06:00 from Monday to Friday."
)
ZONE_HELP = "Such as Europe/Berlin."
schedule_argument = click.argument("schedule_id", metavar="SCHEDULE")


@click.group("schedule", cls=AddByDefault)
def schedule_command() -> None:
    """Schedules: the service submits a job at the times of a cron expression, also while your
    session is stopped. `add` may be omitted.

    \b
    Examples:
      carrel schedule report.ipynb --cron "0 6 * * 1-5" --zone Europe/Berlin
      carrel schedule list
      carrel schedule pause c-7k2m4qpz
    """


@schedule_command.command("add", cls=ClientCommand, short_help="Create a schedule.")
@click.argument("path", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--cron", required=True, metavar="EXPRESSION", help=CRON_HELP)
@click.option("--zone", default="UTC", show_default=True, metavar="ZONE", help=ZONE_HELP)
@notebook_options
@job_options
@json_option
@site_option
def add_schedule(
    *,
    path: Path,
    cron: str,
    zone: str,
    parameters: tuple[tuple[str, str], ...],
    raw: tuple[tuple[str, str], ...],
    results: tuple[tuple[str, str], ...],
    output: str,
    kernel: str,
    as_json: bool,
    site: str | None,
    **common: Unpack[SubmitOptions],
) -> None:
    """Submit a notebook or a Python script as a job at every time of --cron.

    The options are those of `carrel submit`. The file and uploads are stored now: changes of the
    file need a new schedule. The jobs have the label schedule=SCHEDULE.

    \b
    Examples:
      carrel schedule add report.ipynb --cron "0 6 * * 1-5" --zone Europe/Berlin -p days 1
      carrel schedule add train.py --cron "30 2 * * 6" --devices 1 --time 8h
      carrel ps --all --label schedule=c-7k2m4qpz
    """
    if common["wait_for_end"] or common["follow"]:
        raise InvalidArgument(
            "A schedule has no end to wait for.", accepted="Omit --wait and --follow."
        )
    what = notebook_fields(path, parameters, raw, results=results, output=output, kernel=kernel)
    fields = built_fields(what, path.parent, common, needs_files=False, site=site)
    with Client.from_environment(site) as client:
        made = client.create_schedule(built_job(client, fields, common), cron=cron, zone=zone)
    if as_json:
        display.as_json(made)
        return
    click.echo(created_sentence(made))


@schedule_command.command("list", cls=ClientCommand, short_help="List your schedules.")
@json_option
@site_option
def list_schedules(*, as_json: bool, site: str | None) -> None:
    """List your schedules with the next time and the last result.

    \b
    Examples:
      carrel schedule list
      carrel schedule list --json | jq -r .id
    """
    with Client.from_environment(site) as client:
        found = client.schedules()
    empty = "You have no schedules. Create one with: carrel schedule add FILE --cron EXPRESSION"
    if display.listed(found, empty=empty, as_json=as_json):
        return
    now = time.time()
    rows = [
        [
            each.id,
            each.what,
            f"{each.cron} {each.zone}",
            next_time(each, now),
            last_result(each, now),
        ]
        for each in found
    ]
    display.table(["ID", "WHAT", "TIMES", "NEXT", "LAST"], rows)


@schedule_command.command("pause", cls=ClientCommand, short_help="Pause a schedule.")
@schedule_argument
@json_option
@site_option
def pause_schedule(*, schedule_id: str, as_json: bool, site: str | None) -> None:
    """Submit no jobs of this schedule until it is resumed.

    \b
    Example:
      carrel schedule pause c-7k2m4qpz
    """
    _set_state(schedule_id, "paused", as_json, site)


@schedule_command.command("resume", cls=ClientCommand, short_help="Resume a paused schedule.")
@schedule_argument
@json_option
@site_option
def resume_schedule(*, schedule_id: str, as_json: bool, site: str | None) -> None:
    """Resume a schedule at its next time; times that passed meanwhile get no job.

    \b
    Example:
      carrel schedule resume c-7k2m4qpz
    """
    _set_state(schedule_id, "active", as_json, site)


@schedule_command.command("run", cls=ClientCommand, short_help="Submit the job now.")
@schedule_argument
@json_option
@site_option
def run_schedule(*, schedule_id: str, as_json: bool, site: str | None) -> None:
    """Submit the job of a schedule now; its times do not change.

    \b
    Example:
      carrel schedule run c-7k2m4qpz
    """
    with Client.from_environment(site) as client:
        request = client.run_schedule(schedule_id)
    if as_json:
        display.as_json(request)
    else:
        click.echo(f"Submitted {request.id}: {display.place(request)}.")


@schedule_command.command("remove", cls=ClientCommand, short_help="Remove a schedule.")
@schedule_argument
@json_option
@site_option
def remove_schedule(*, schedule_id: str, as_json: bool, site: str | None) -> None:
    """Remove a schedule; its jobs stay.

    \b
    Example:
      carrel schedule remove c-7k2m4qpz
    """
    with Client.from_environment(site) as client:
        client.remove_schedule(schedule_id)
    if as_json:
        display.as_json({"removed": schedule_id})
    else:
        click.echo(f"Removed the schedule {schedule_id}.")


def _set_state(schedule_id: str, state: str, as_json: bool, site: str | None) -> None:
    with Client.from_environment(site) as client:
        changed = client.change_schedule(schedule_id, state=state)
    if as_json:
        display.as_json(changed)
    else:
        click.echo(f"{changed.id} is {changed.state}. {_next(changed, time.time())}".rstrip())


def created_sentence(schedule: ScheduleOut) -> str:
    return f"Created the schedule {schedule.id}. {_next(schedule, time.time())}"


def next_time(schedule: ScheduleOut, now: float) -> str:
    return display.local_time(schedule.next_at, now) or "paused"


def _next(schedule: ScheduleOut, now: float) -> str:
    if schedule.next_at is None:
        return ""
    times = [display.local_time(each, now) for each in schedule.upcoming or [schedule.next_at]]
    verb = "times are" if len(times) > 1 else "time is"
    return f"Its next {verb} {', '.join(times)} ({display.zone(now)})."


def last_result(schedule: ScheduleOut, now: float) -> str:
    if schedule.last_due is None:
        return ""
    result = f"refused: {schedule.last_error}" if schedule.last_error else schedule.last_request
    missed = f" ({units.count(schedule.missed, 'time')} missed)" if schedule.missed else ""
    return f"{display.local_time(schedule.last_due, now)} {result}{missed}"


COMMANDS: dict[str, click.Command] = {"schedule": schedule_command}
