"""``carrel course``: courses, for teachers and administrators."""

from __future__ import annotations

from pathlib import Path

import click

from ...client import Client
from ...errors import InvalidInput
from ...messages import units
from ...schemas import parsers
from ...schemas.admin import ConsequencesOut, PasswordOut
from ...schemas.courses import CloneIn, CourseIn, CourseOut, NewAccountsOut
from ..common import display
from ..common.client_command import ClientCommand, ListOptions, json_option, site_option
from ..common.notes import confirmed, note
from ..common.terminal import plain
from .check import CHECKING_COMMANDS
from .grading import GRADING_COMMANDS
from .leaderboard import LEADERBOARD_COMMANDS
from .official_checks import official_checks_command
from .prefix import prefix_command
from .regrades import REGRADE_COMMANDS
from .rehearsal import rehearse_command
from .student import STUDENTS_COMMANDS
from .teacher import TEACHING_COMMANDS, say

ROSTER_HELP = "CSV file of the class, with a column student, and optionally name, section, role."
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.group("course", cls=ListOptions)
def course_command() -> None:
    """Courses: assignments, rosters, submissions.

    A course is a group with a class, assignments and submissions. Name it with --course unless
    only one course is possible.

    \b
    As a student:
      carrel course assignments
      carrel course fetch ps1
      carrel course check ps1 --watch
      carrel course submit ps1
    As a teacher:
      carrel course release ps1 --due "2027-02-01 18:00 Europe/Berlin" --late "24h:-10%"
      carrel course extend ps1 student2 48h
      carrel course grade ps1 --watch
    As an administrator:
      carrel course create cs101 --teacher grace --students roster.csv --guaranteed 8 --max 20
    """


# -- courses ----------------------------------------------------------------------------------


@course_command.command("create", cls=ClientCommand)
@click.argument("name")
@click.option("--title", default="", help="Title, shown to people.")
@click.option("--teacher", "teachers", metavar="NAME", multiple=True, help="May be repeated.")
@click.option("--students", metavar="FILE", type=_FILE, help=ROSTER_HELP)
@click.option("--image", default="", help="Image for its work; pinned until the end of the term.")
@click.option("--parent", metavar="GROUP", help="Parent group, whose limits also apply.")
@click.option("--guaranteed", type=click.IntRange(0), metavar="N", help="Guaranteed quota.")
@click.option("--max", "most", type=click.IntRange(0), metavar="N", help="Max quota.")
@click.option("--per-student", type=click.IntRange(0), metavar="N", help="Max devices per member.")
@click.option("--budget", metavar="HOURS/PERIOD", help="Device-hours, such as 300h/term.")
@click.option("--dry-run", is_flag=True, help="Only preview the effect.")
@json_option
@site_option
def create_command(
    *,
    name: str,
    title: str,
    teachers: tuple[str, ...],
    students: Path | None,
    image: str,
    parent: str | None,
    guaranteed: int | None,
    most: int | None,
    per_student: int | None,
    budget: str | None,
    dry_run: bool,
    as_json: bool,
    site: str | None,
) -> None:
    """Create a course: its group with a quota, its teachers, its class (administrators).

    An existing group of that name is used, and keeps omitted values. Members who are not on the
    roster stay, and are listed.

    \b
    Examples:
      carrel course create cs101 --teacher grace --students roster.csv --image datascience \\
          --guaranteed 8 --max 20 --budget 300h/term
      carrel course create cs101 --students roster.csv --dry-run
    """
    body = CourseIn(
        name=name,
        title=title,
        teachers=list(teachers),
        students=_table(students) if students else "",
        image=image,
        parent=parent,
        guaranteed=guaranteed,
        max_devices=most,
        max_devices_per_user=per_student,
        budget=parsers.budget(budget) if budget else None,
    )
    with Client.from_environment(site) as client:
        if dry_run:
            _print_preview(client.preview_course(body), as_json=as_json)
            return
        made = client.create_course(body)
    _print_created(made, as_json=as_json)


@course_command.command("clone", cls=ClientCommand)
@click.argument("course")
@click.argument("name")
@click.option("--title", default="", help="Title, shown to people.")
@click.option("--teacher", "teachers", metavar="NAME", multiple=True, help="May be repeated.")
@json_option
@site_option
def clone_command(
    *,
    course: str,
    name: str,
    title: str,
    teachers: tuple[str, ...],
    as_json: bool,
    site: str | None,
) -> None:
    """Create the course NAME with the quota, image and assignments of COURSE (administrators).

    People are not copied, and the assignments are hidden until they are released again.

    \b
    Example:
      carrel course clone cs101 cs101-summer --teacher grace
    """
    with Client.from_environment(site) as client:
        body = CloneIn(name=name, title=title, teachers=list(teachers))
        made = client.clone_course(course, body)
    _print_created(made, as_json=as_json)


@course_command.command("list", cls=ClientCommand)
@json_option
@site_option
def list_command(*, as_json: bool, site: str | None) -> None:
    """List your courses.

    \b
    Example:
      carrel course list
    """
    with Client.from_environment(site) as client:
        found = client.courses()
    empty = "You are not in a course. Administrators create one: carrel course create NAME"
    if display.listed(found, empty=empty, as_json=as_json):
        return
    display.table(
        ["COURSE", "TITLE", "ROLE", "STUDENTS", "ASSIGNMENTS", ""],
        (
            [
                *(each.name, each.title, each.role, str(each.students), str(each.assignments)),
                "archived" if each.archived_at is not None else "",
            ]
            for each in found
        ),
        right="STUDENTS,ASSIGNMENTS",
    )


@course_command.command("show", cls=ClientCommand)
@click.argument("course")
@json_option
@site_option
def show_command(*, course: str, as_json: bool, site: str | None) -> None:
    """Show a course.

    \b
    Example:
      carrel course show cs101
    """
    with Client.from_environment(site) as client:
        found = client.course(course)
    if as_json:
        display.as_json(found)
        return
    facts = [
        ("Course", found.name),
        ("Title", found.title),
        ("You are", found.role),
        ("Teachers", ", ".join(found.teachers) or "none"),
        ("Students", str(found.students)),
        ("Assignments", str(found.assignments)),
        ("Image", found.image),
        ("Data", "in $CARREL_COURSE_DATA, for its sessions, jobs and grading"),
        ("Archived", "yes, read-only" if found.archived_at is not None else ""),
    ]
    for name, value in facts:
        if value:
            click.echo(f"{name + ':':12} {plain(value)}")


@course_command.command("archive", cls=ClientCommand)
@click.argument("course")
@click.option("--undo", is_flag=True, help="Restore it.")
@json_option
@site_option
def archive_command(*, course: str, undo: bool, as_json: bool, site: str | None) -> None:
    """Archive a course: it becomes read-only; nothing is deleted (teachers).

    \b
    Example:
      carrel course archive cs101
    """
    with Client.from_environment(site) as client:
        found = client.archive_course(course, undo=undo)
    if as_json:
        display.as_json(found)
        return
    click.echo(f"{course} is restored." if undo else f"{course} is archived and read-only.")


@course_command.command("roster", cls=ClientCommand)
@click.argument("course")
@click.argument("file", required=False, type=_FILE)
@click.option("--dry-run", is_flag=True, help="Only preview the effect.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
@site_option
def roster_command(
    *, course: str, file: Path | None, dry_run: bool, yes: bool, as_json: bool, site: str | None
) -> None:
    """Show the class, or apply the roster FILE after a preview (teachers).

    FILE is a CSV file of the whole class, with a column student and optionally name, section and
    role. Students who are not listed leave the course; their submissions are kept.

    \b
    Examples:
      carrel course roster cs101
      carrel course roster cs101 roster.csv
    """
    with Client.from_environment(site) as client:
        if file is None:
            _show_class(client, course, as_json=as_json)
            return
        table = _table(file)
        shown = client.set_roster(course, table, dry_run=True)
        if not as_json:
            say(shown)
        if shown.changes and not dry_run:
            if not (yes or confirmed("Apply the roster?")):
                raise InvalidInput("The roster was not applied.", accepted="Add --yes in scripts.")
            shown = client.set_roster(course, table)
    if as_json:
        display.as_json(shown)
    elif shown.changes:
        click.echo("The roster is applied." if shown.saved else "Nothing was changed.")


@course_command.command("accounts", cls=ClientCommand)
@click.argument("course")
@click.option("--create", is_flag=True, help="Create them, and print their passwords once.")
@json_option
@site_option
def accounts_command(*, course: str, create: bool, as_json: bool, site: str | None) -> None:
    """List the members of a course without an account, or create their accounts (teachers).

    For sites whose accounts are Carrel's own. With --create, one line for each new account is
    printed: its name and its random password, separated by a comma.

    \b
    Examples:
      carrel course accounts cs101
      carrel course accounts cs101 --create > passwords.csv
    """
    with Client.from_environment(site) as client:
        if not create:
            missing = client.course_members(course).without_account
            if as_json:
                display.as_json(missing)
            else:
                click.echo("\n".join(missing) or f"Every member of {course} has an account.")
            return
        created: list[PasswordOut] = []
        while (found := client.create_accounts(course)).created:
            created.extend(found.created)
            if not as_json:
                for each in found.created:
                    click.echo(f"{each.name},{each.password}")
    if as_json:
        display.as_json(NewAccountsOut(created=created, remaining=found.remaining))
    elif found.remaining:
        note(f"{units.count(found.remaining, 'member')} could not get an account.")
    elif not created:
        note(f"Every member of {course} has an account.")


def _show_class(client: Client, course: str, *, as_json: bool) -> None:
    found = client.course_members(course)
    if as_json:
        display.as_json(found)
        return
    rows = [
        [each.person, each.full_name, each.section, "left" if each.left_at else each.role]
        for each in found.members
    ]
    if rows:
        display.table(["NAME", "FULL NAME", "SECTION", "ROLE"], rows)
    else:
        click.echo(f"{course} has no students yet. Add them: carrel course roster {course} FILE")
    click.echo(f"Teachers: {', '.join(found.teachers) or 'none'}.")


def _table(file: Path) -> str:
    try:
        return file.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(
            f"{file} cannot be read: {error}.", accepted="Give a CSV file in UTF-8."
        ) from error


def _print_preview(shown: ConsequencesOut, *, as_json: bool) -> None:
    if as_json:
        display.as_json(shown)
        return
    say(shown)
    click.echo("Nothing was created.")


def _print_created(course: CourseOut, *, as_json: bool) -> None:
    if as_json:
        display.as_json(course)
        return
    click.echo(
        f"Created the course {course.name}: {course.students} students, "
        f"taught by {', '.join(course.teachers) or 'no teachers yet'}, image {course.image}."
    )
    for each in course.notes:
        note(f"Warning: {plain(each)}")


for _command in (
    *TEACHING_COMMANDS,
    prefix_command,
    rehearse_command,
    official_checks_command,
    *LEADERBOARD_COMMANDS,
    *GRADING_COMMANDS,
    *STUDENTS_COMMANDS,
    *CHECKING_COMMANDS,
    *REGRADE_COMMANDS,
):
    course_command.add_command(_command)


COMMANDS: dict[str, click.Command] = {"course": course_command}
