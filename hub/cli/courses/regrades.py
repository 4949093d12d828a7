"""``carrel course regrades``: regrade requests, listed and answered."""

from __future__ import annotations

import time

import click

from ...client import Client
from ...errors import InvalidInput
from ...schemas.grading import RegradeIn, RegradeOut, RegradeReplyIn
from ..common import display
from ..common.client_command import ClientCommand, json_option, site_option
from ..common.terminal import plain
from .selection import course_option, in_question


@click.command("regrades", cls=ClientCommand)
@click.argument("regrade", type=click.IntRange(1), required=False)
@course_option
@click.option("--all", "closed", is_flag=True, help="List closed requests too.")
@click.option("--answer", metavar="TEXT", help="Add a message to request REGRADE.")
@click.option("--close", is_flag=True, help="Close request REGRADE.")
@click.option("--ask", metavar="ASSIGNMENT", help="Open a request about ASSIGNMENT (students).")
@click.option("--cell", default="", help="With --ask: the id of the cell; default: all of it.")
@click.option("--why", default="", help="With --ask: your reason.")
@json_option
@site_option
def regrades_command(
    *,
    regrade: int | None,
    course: str,
    closed: bool,
    answer: str | None,
    close: bool,
    ask: str | None,
    cell: str,
    why: str,
    as_json: bool,
    site: str | None,
) -> None:
    """List regrade requests, show one with its thread, ask, or answer.

    Students see their own, teachers and graders those of the course.

    \b
    Examples:
      carrel course regrades
      carrel course regrades 3
      carrel course regrades 3 --answer "True: 3 points." --close
      carrel course regrades --ask ps1 --cell essay --why "I did say why, in line 3."
    """
    if (answer is not None or close) and regrade is None:
        raise InvalidInput(
            "--answer and --close need the number of a request.", accepted="See the list."
        )
    with Client.from_environment(site) as client:
        if ask is not None:
            found = _asked(client, in_question(client, course, ask).name, ask, cell, why)
        elif regrade is not None and (answer is not None or close):
            body = RegradeReplyIn(text=answer or "", close=close)
            found = client.answer_regrade(regrade, body)
        else:
            listed = client.regrades(in_question(client, course).name)
            if regrade is None:
                _list([each for each in listed if closed or each.closed_at is None], as_json)
                return
            found = _the_one(listed, regrade)
    if as_json:
        display.as_json(found)
        return
    _show(found)


def _asked(client: Client, course: str, assignment: str, cell: str, why: str) -> RegradeOut:
    notebook = ""
    if cell:
        mine = client.my_grade(course, assignment)
        cells = mine.grade.cells if mine.grade else []
        notebook = next((each.notebook for each in cells if each.cell == cell), "")
    body = RegradeIn(notebook=notebook, cell=cell, text=why)
    return client.ask_for_regrade(course, assignment, body)


def _the_one(listed: list[RegradeOut], regrade: int) -> RegradeOut:
    for each in listed:
        if each.id == regrade:
            return each
    raise InvalidInput(
        f"There is no regrade request {regrade} in this course.", accepted="See the list."
    )


def _list(found: list[RegradeOut], as_json: bool) -> None:
    if as_json:
        display.as_json({"regrades": [each.model_dump(mode="json") for each in found]})
        return
    if not found:
        click.echo("There are no open regrade requests.")
        return
    now = time.time()
    rows = [
        [
            *(str(each.id), each.person, each.assignment, each.cell or "all"),
            _state(each),
            display.local_time(each.messages[-1].at, now),
            " ".join(each.messages[-1].text.split())[:60],
        ]
        for each in found
    ]
    last = f"LAST ({display.zone(now)})"
    display.table(["ID", "STUDENT", "ASSIGNMENT", "CELL", "STATE", last, "MESSAGE"], rows)


def _state(each: RegradeOut) -> str:
    if each.closed_at is not None:
        return "closed"
    return "to answer" if each.messages[-1].author == each.person else "answered"


def _show(found: RegradeOut) -> None:
    about = f"{found.cell} of {found.assignment}" if found.cell else found.assignment
    click.echo(f"Request {found.id} of {found.person} about {about}, {_state(found)}.")
    now = time.time()
    for message in found.messages:
        click.echo(f"\n{message.author}, {display.local_time(message.at, now)}:")
        for line in message.text.splitlines():
            click.echo(f"  {plain(line)}")


REGRADE_COMMANDS = (regrades_command,)
