"""The options of ``carrel simulate``, as one value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path

import click

from ...config.state_folder import StateFolder
from ...simulation.workload.formats import FORMATS
from ..common.operator_options import state_option


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulateOptions:
    """The options as given."""

    trace: Path | None
    format: str
    where: tuple[str, ...]
    since: str | None
    until: str | None
    skip_bad: bool
    from_ledger: bool
    state: StateFolder
    nodes: str | None
    policy: str
    learned_order: str | None
    estimates: str
    seed: int
    quota: Path | None
    restart_cost: float
    json_out: str | None
    html_out: str | None


_FILE = click.Path(path_type=Path)
_OPTIONS = (
    click.option(
        "--trace", type=_FILE, metavar="FILE", help="Jobs to replay; may be compressed with gzip."
    ),
    click.option(
        "--format",
        type=click.Choice([*FORMATS]),
        default="csv",
        show_default=True,
        help="Format of the trace.",
    ),
    click.option(
        "--where",
        multiple=True,
        metavar="COLUMN=TEXT",
        help="Only lines with this value in that column.",
    ),
    click.option("--from", "since", metavar="TIME", help="Only jobs submitted then or later."),
    click.option(
        "--to",
        "until",
        metavar="TIME",
        help="Only jobs submitted then or earlier; a day counts to its end.",
    ),
    click.option("--skip-bad", is_flag=True, help="Leave malformed lines out, and count them."),
    click.option(
        "--from-ledger",
        is_flag=True,
        help="Replay this site's own history instead of a trace, with its quotas, budgets and "
        "reservations.",
    ),
    state_option,
    click.option(
        "--nodes",
        metavar="NODES",
        help="Six nodes of eight devices: 6x8. Own nodes for each tenant: a=20x8,b=2x8. With "
        "model and network switch: 2x8:A100@sw1,2x8:A100@sw2. With --from-ledger, one more node: "
        "+1x4.",
    ),
    click.option(
        "--policy",
        default="fifo,carrel",
        show_default=True,
        metavar="NAMES",
        help="Policies to compare: fifo, greedy, sjf, srtf, las, qssf, carrel.",
    ),
    click.option(
        "--learned-order",
        metavar="NAME",
        help="Add carrel with the learned order STATE/learned-orders/NAME.json, as carrel:NAME.",
    ),
    click.option(
        "--estimates",
        default="lognormal:1.0",
        show_default=True,
        metavar="HOW",
        help="Runtime estimates for qssf and carrel: oracle, lognormal:SIGMA or history.",
    ),
    click.option(
        "--seed", type=int, default=0, show_default=True, help="Seed of the random errors."
    ),
    click.option(
        "--quota", type=_FILE, metavar="FILE", help="Groups, quotas and budgets, as TOML."
    ),
    click.option(
        "--restart-cost",
        type=click.FloatRange(min=0),
        default=0.0,
        show_default=True,
        metavar="SECONDS",
        help="Work that a job repeats after each stop.",
    ),
    click.option("--json", "json_out", metavar="OUT", help="Write the results; - prints them."),
    click.option("--html", "html_out", metavar="OUT", help="Write a page with plots; - prints it."),
)


def simulate_options(command: Callable[[SimulateOptions], None]) -> Callable[..., None]:
    """Pass all options to the command as one value."""

    @wraps(command)
    def chosen(**options: object) -> None:
        command(SimulateOptions(**options))  # type: ignore[arg-type]  # click made them as declared above

    decorated: Callable[..., None] = chosen
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return decorated
