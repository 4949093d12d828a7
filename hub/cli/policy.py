"""``carrel policy``: try a learned queue order beside the live one."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict

import click

from ..config.learned_orders import load_learned_order
from ..config.state_folder import StateFolder
from ..errors import InvalidArgument, InvalidInput
from ..messages.units import duration
from ..scheduling.model.text import plural
from ..shadow_order.records import ShadowDecision, ShadowRun
from ..shadow_order.store import ShadowStore
from ..store import open_store
from .common import display
from .common.operator_options import existing, state_option

_SHOWN = 20
json_option = click.option("--json", "as_json", is_flag=True, help="One JSON object.")


@click.group()
def policy() -> None:
    """Try a learned queue order, an experiment: the file STATE/learned-orders/NAME.json.

    \b
    Examples:
      carrel policy shadow philly
      carrel policy show
      carrel policy shadow --off
    """


@policy.command("shadow", short_help="Compare live decisions with those of a learned order.")
@click.argument("name", required=False)
@click.option("--off", is_flag=True, help="End the comparison.")
@json_option
@state_option
def shadow_command(*, name: str | None, off: bool, as_json: bool, state: StateFolder) -> None:
    """Record what the learned order NAME would have decided, from now on.

    It changes no decision. A sample of the decisions is compared: at most 5 % of a core is used.

    \b
    Examples:
      carrel policy shadow philly
      carrel policy shadow --off
    """
    if (name is None) != off:
        raise InvalidArgument(
            "Name a learned order, or give --off.",
            accepted="carrel policy shadow NAME, or carrel policy shadow --off.",
        )
    with _shadows(state) as shadows:
        if name is None:
            ended = shadows.end(now=time.time())
            said = "The comparison has ended." if ended else "No learned order was compared."
        else:
            load_learned_order(state, name)
            shadows.begin(name, now=time.time())
            said = f"Decisions are compared with those of {name}. See: carrel policy show"
        if as_json:
            display.as_json({"shadow": _fields(shadows.current())})
        else:
            click.echo(said)


@policy.command("show", short_help="Show what the learned order would have decided.")
@json_option
@state_option
def show_command(*, as_json: bool, state: StateFolder) -> None:
    """Show the learned order in use, and how the one in shadow differs from the live decisions.

    SOONER is by how much queued requests are expected to start sooner with the order in shadow, on
    average; negative for later.

    \b
    Example:
      carrel policy show --json
    """
    in_use = existing(state).learned_order
    problem = _problem(state, in_use)
    with _shadows(state) as shadows:
        run = shadows.newest()
        found = () if run is None else shadows.decisions(run, _SHOWN)
    if as_json:
        decisions = [asdict(each) for each in found]
        display.as_json(
            {
                "in_use": in_use,
                "problem": problem,
                "shadow": _fields(run),
                "decisions": decisions,
            }
        )
        return
    click.echo(f"Learned order in use: {in_use or 'none'}")
    if problem:
        click.echo(f"It is ignored: {problem}")
    if run is None:
        click.echo("None was tried in shadow. Try one with: carrel policy shadow NAME")
        return
    for line in _described(run, time.time()):
        click.echo(line)
    if found:
        click.echo()
        _print_decisions(found, time.time())


@contextmanager
def _shadows(state: StateFolder) -> Iterator[ShadowStore]:
    existing(state)
    with closing(open_store(state.database)) as store:
        yield ShadowStore(store.transactions)


def _problem(state: StateFolder, name: str) -> str:
    """Return why the learned order of the settings cannot be used; empty if it can."""
    try:
        if name:
            load_learned_order(state, name)
    except InvalidInput as error:
        return error.message
    return ""


def _fields(run: ShadowRun | None) -> dict[str, object] | None:
    return None if run is None else asdict(run)


def _described(run: ShadowRun, now: float) -> Iterator[str]:
    """Yield the lines about a run."""
    end = "" if run.until is None else f" until {display.local_time(run.until, now)}"
    yield f"In shadow: {run.name}, since {display.local_time(run.since, now)}{end}"
    if run.problem:
        yield f"Nothing is compared: {run.problem}"
    part = f" ({run.differing / run.compared:.0%})" if run.compared else ""
    yield (
        f"{plural(run.compared, 'decision')} compared; in {run.differing:,}{part} other requests "
        "would have started."
    )


def _print_decisions(found: tuple[ShadowDecision, ...], now: float) -> None:
    rows = [
        [
            display.exact_time(each.at, now),
            f"{each.queued:,}",
            ", ".join(each.started) or "none",
            ", ".join(each.would_start) or "none",
            f"{'-' if round(each.sooner) < 0 else ''}{duration(abs(each.sooner))}",
        ]
        for each in found
    ]
    header = [f"TIME ({display.zone(now)})", "QUEUED", "STARTED", "WOULD HAVE STARTED", "SOONER"]
    display.table(header, rows, right="QUEUED,SOONER")


COMMANDS: dict[str, click.Command] = {"policy": policy}
