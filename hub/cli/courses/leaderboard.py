"""``carrel course leaderboard`` and ``submit-weights``."""

from __future__ import annotations

import base64
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final, get_args

import click

from ....courses.files.bundle import MAX_FILE_BYTES
from ....courses.workspace import folder as workspace_folder
from ...client import Client
from ...errors import TooLarge
from ...messages import units
from ...schemas.courses import FileIn
from ...schemas.coursework.leaderboards import (
    MOST_SCORED_PER_DAY,
    Counts,
    LeaderboardEntryOut,
    LeaderboardIn,
    LeaderboardRowOut,
    LeaderboardRuleOut,
    Metric,
    WeightsIn,
)
from ..common import display
from ..common.client_command import ClientCommand, json_option, site_option
from ..common.terminal import plain
from .selection import GRADERS, assignment_argument, course_option, in_question, working

_REPEATED: Final = "The same file was submitted again since."
_EVERY: Final = 1.0
_LONGEST_PAUSE: Final = 10.0
"""Seconds between two reads with ``--watch``, which become longer: a class may wait at once."""


@click.command("leaderboard", cls=ClientCommand)
@assignment_argument
@course_option
@click.option("--metric", type=click.Choice(get_args(Metric)), help="What is scored.")
@click.option(
    "--per-day",
    type=click.IntRange(1, MOST_SCORED_PER_DAY),
    metavar="N",
    help=f"Submissions of each student a day, 1 to {MOST_SCORED_PER_DAY}.",
)
@click.option(
    "--from",
    "source",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Folder with leaderboard.py; else ./ASSIGNMENT-leaderboard.",
)
@click.option(
    "--public",
    type=click.IntRange(1, 99),
    metavar="PERCENT",
    help="Part of the hidden examples for the public score; 50.",
)
@click.option(
    "--counts", type=click.Choice(get_args(Counts)), help="Which submission counts; the best."
)
@click.option(
    "--private-after-due/--private-hidden",
    default=None,
    help="Show students the private scores after the due date, or never.",
)
@click.option("--off", is_flag=True, help="Take no further submissions; the table stays.")
@click.option(
    "--again", is_flag=True, help="Score what a fault of the system or of the files left."
)
@json_option
@site_option
def leaderboard_command(
    *,
    assignment: str,
    course: str,
    metric: Metric | None,
    per_day: int | None,
    source: Path | None,
    public: int | None,
    counts: Counts | None,
    private_after_due: bool | None,
    off: bool,
    again: bool,
    as_json: bool,
    site: str | None,
) -> None:
    """Open a leaderboard of weights (teachers), or show it.

    Students submit weights as safetensors, so that no code of theirs runs. leaderboard.py in the
    folder has architecture(), which returns a torch.nn.Module, and hidden_data(), which returns
    inputs and targets. It runs in the grading sandbox; students never get the folder.

    \b
    Examples:
      carrel course leaderboard ps4 --metric accuracy --per-day 5
      carrel course leaderboard ps4
      carrel course leaderboard ps4 --off
      carrel course leaderboard ps4 --again
    """
    changes = {
        "metric": metric,
        "per_day": per_day,
        "public_percent": public,
        "counts": counts,
        "private_after_due": private_after_due,
    }
    given = {name: value for name, value in changes.items() if value is not None}
    if off and (given or source or again):
        raise click.UsageError("--off cannot be combined with other options that change it.")
    with Client.from_environment(site) as client:
        found = in_question(client, course, assignment)
        name = found.name
        if off:
            client.close_leaderboard(name, assignment)
        elif given or source:
            rule = client.leaderboard_log(name, assignment).rule
            if not rule.per_day and per_day is None:
                raise click.UsageError("A leaderboard needs --per-day.")
            client.open_leaderboard(name, assignment, _body(rule, given, assignment, source))
        if again:
            client.score_leaderboard_again(name, assignment)
        if found.role in GRADERS:
            log = client.leaderboard_log(name, assignment)
            if as_json:
                display.as_json(log)
                return
            _show(log.rule, log.rows, log.entries)
            if log.unscored:
                click.echo(
                    f"\nA fault left {units.count(log.unscored, 'submission')} without score: "
                    f"{log.failure}\nCorrect the files if it is theirs; then: "
                    f"carrel course leaderboard {assignment} --again"
                )
        else:
            board = client.leaderboard(name, assignment)
            if as_json:
                display.as_json(board)
                return
            _show(board.rule, board.rows, board.mine)
            if board.rule.per_day and board.past_due:
                click.echo(f"{assignment} was due: it takes no further submissions of yours.")
            elif board.rule.per_day:
                next_day = display.local_time(board.next_at, time.time())
                left = f"{board.left} of {board.rule.per_day}"
                click.echo(f"Left today: {left}. Next day: {next_day}.")


def _body(
    rule: LeaderboardRuleOut, given: Mapping[str, object], assignment: str, source: Path | None
) -> LeaderboardIn:
    """Return the rule with the changes, and with the files of the folder if there is one."""
    folder = source or Path(f"{assignment}-leaderboard")
    read = source is not None or folder.is_dir()
    files = workspace_folder.files_to_submit(folder).sent if read else []
    kept = rule.model_dump(include=set(LeaderboardIn.model_fields)) if rule.opened else {}
    return LeaderboardIn.model_validate({**kept, **given, "files": files})


def _show(
    rule: LeaderboardRuleOut, rows: list[LeaderboardRowOut], entries: list[LeaderboardEntryOut]
) -> None:
    if not rule.opened:
        click.echo(f"{rule.assignment} has no leaderboard.")
        return
    click.echo(f"{rule.assignment}: {rule_text(rule)}")
    if rows:
        private = any(row.private is not None for row in rows)
        cells = [
            [
                f"{row.rank}{'*' if row.own else ''}",
                row.pseudonym,
                *([row.person] if row.person else []),
                f"{row.public:g}",
                *(["" if row.private is None else f"{row.private:g}"] if private else []),
                str(row.submissions),
            ]
            for row in rows
        ]
        people = ["STUDENT"] if any(row.person for row in rows) else []
        heads = ["RANK", "NAME", *people, "PUBLIC", *(["PRIVATE"] if private else [])]
        display.table([*heads, "SUBMISSIONS"], cells)
        if any(row.own for row in rows):
            click.echo("* you")
    if entries:
        click.echo()
        now = time.time()
        display.table(
            ["SENT", *(["STUDENT"] if entries[0].person else []), "RESULT", "VERDICT"],
            [
                [
                    display.local_time(each.sent_at, now),
                    *([each.person] if each.person else []),
                    each.outcome or "not evaluated",
                    " ".join([*each.sentence.split(), *([_REPEATED] if each.repeated else [])]),
                ]
                for each in entries
            ],
        )


def rule_text(rule: LeaderboardRuleOut) -> str:
    """Return the rule of a leaderboard as sentences."""
    order = "lower" if rule.lower_is_better else "higher"
    limit = (
        f"{units.count(rule.per_day, 'submission')} a day for each student"
        if rule.per_day
        else "no further submissions"
    )
    shown = "shown after the due date" if rule.private_after_due else "for teachers only"
    return (
        f"{rule.metric}, {order} is better; {limit}; the {rule.counts} one counts. "
        f"{rule.public_percent} % of the hidden examples are public; the private score is {shown}."
    )


@click.command("submit-weights", cls=ClientCommand)
@assignment_argument
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@course_option
@click.option("--watch", is_flag=True, help="Wait until it is evaluated.")
@json_option
@site_option
def submit_weights_command(
    *, assignment: str, file: Path, course: str, watch: bool, as_json: bool, site: str | None
) -> None:
    """Submit weights to the leaderboard of an assignment.

    FILE is written by safetensors.torch.save_file(model.state_dict(), FILE). With --watch the exit
    status is 1 if it has no score.

    \b
    Examples:
      carrel course submit-weights ps4 weights.safetensors --watch
    """
    if file.stat().st_size > MAX_FILE_BYTES:
        raise TooLarge(
            f"{file} has {file.stat().st_size:,} bytes.",
            accepted=f"Weights of up to {MAX_FILE_BYTES >> 20} MiB.",
        )
    content = base64.b64encode(file.read_bytes()).decode()
    with Client.from_environment(site) as client:
        name = working(client, course, assignment)
        body = WeightsIn(file=FileIn(name=file.name, content=content))
        sent = client.submit_weights(name, assignment, body)
        pause = _EVERY
        while watch and not sent.outcome:
            time.sleep(pause)
            pause = min(_LONGEST_PAUSE, 1.5 * pause)
            mine = client.leaderboard(name, assignment).mine
            sent = next(each for each in mine if each.id == sent.id)
    if as_json:
        display.as_json(sent)
    else:
        click.echo(f"{sent.id}: {plain(sent.sentence)}")
        if not sent.outcome:
            click.echo(f"Result: carrel course leaderboard {assignment}")
    if watch and sent.outcome != "scored":
        sys.exit(1)


LEADERBOARD_COMMANDS = (leaderboard_command, submit_weights_command)
