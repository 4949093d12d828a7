"""``carrel simulate``: replay traces, or the history of a site, under several policies."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .... import __version__
from ...config import garbage_collection
from ...config.learned_orders import load_learned_order
from ...errors import InvalidInput
from ...messages import units
from ...scheduling.model.snapshot import Period
from ...simulation.policies import registry
from ...simulation.policies.carrel_policy import CARREL, with_learned_order
from ...simulation.replay import fairness_columns
from ...simulation.replay.admission import admitted
from ...simulation.replay.experiment import Experiment, ExperimentResult, run
from ...simulation.replay.json_report import ExperimentSetup, held_back_note, report
from ...simulation.replay.page import page
from ...simulation.replay.runtime_estimates import parse_estimates
from ...simulation.workload.formats import FORMATS
from ...simulation.workload.jobs import Trace
from ...simulation.workload.nodes import ONE_POOL, parse_nodes
from ...simulation.workload.quota_file import read_quota, unused
from ...simulation.workload.reader import Selection, first_moment, last_moment, read_trace
from ..common import display
from ..common.operator_options import existing
from .group_options import TEXT_PARSERS
from .simulate_options import SimulateOptions, simulate_options

if TYPE_CHECKING:
    from ...scheduling.model.learned_order import LearnedOrder
    from ...scheduling.model.snapshot import Group
    from ...simulation.policies.policy import Schedules

_STDOUT = "-"
_BAD_SHOWN = 5
_HEADER = [
    *("POLICY", "JCT MEAN", "MEDIAN", "95%", "WAIT MEAN", "USED", "SLOWDOWN"),
    *("STOPS", "WASTED", "STRANDED"),
]


@click.command("simulate")
@simulate_options
def simulate_command(chosen: SimulateOptions) -> None:
    """Replay a trace under several policies, and compare the wait times.

    Policies decide at events, not at intervals. fifo is strict; greedy starts every job that
    fits; sjf and srtf know the durations; las is the policy of Tiresias with two queues; qssf is
    that of Helios; carrel is that of the live service, with --from-ledger also with the learned
    order of the site, if it has one. Entry points of carrel.policies add others.

    A trace of the form csv has the columns submitted_at, seconds and devices, and optionally id,
    user, tenant, limit, share, model, members, minimum and arrangement. Times are dates or
    seconds. The devices of a job with several members are those of all members together; under
    carrel it starts with as many members as fit, at least the minimum, and runs for the same time.
    The arrangement is pack (few nodes) or spread (one node for each member).

    \b
    Examples:
      carrel simulate --trace philly.csv.gz --format philly --where cluster=6214e9 \\
        --from 2017-10-01 --to "2017-10-07 23:59" --nodes 6x8 --policy fifo,las,carrel
      carrel simulate --trace venus.csv --format helios --nodes vcvGl=20x8,vcvlY=2x8 \\
        --estimates history --html venus.html
      carrel simulate --trace own.csv --nodes 4x4,2x8 --quota next-term.toml --json -
      carrel simulate --trace gangs.csv --nodes 2x8:A100@sw1,2x8:A100@sw2
      carrel simulate --from-ledger --nodes +1x4 --quota next-term.toml
      carrel simulate --from-ledger --policy carrel --learned-order philly
    """
    _check_outputs(chosen)
    garbage_collection.raise_thresholds()
    named = [registry.policy(name.strip()) for name in chosen.policy.split(",")]
    experiment, nodes = _of_ledger(chosen) if chosen.from_ledger else _of_trace(chosen)
    policies = _with_learned_orders(chosen, named)
    _report_lines(experiment.trace)
    results = [_timed(experiment, policy) for policy in policies]
    setup = _setup(chosen, nodes)
    if chosen.json_out:
        _write(chosen.json_out, json.dumps(report(experiment, results, setup), allow_nan=False))
    if chosen.html_out:
        _write(chosen.html_out, page(experiment, results, setup))
    if _STDOUT not in (chosen.json_out, chosen.html_out):
        display.table(_HEADER, [_row(each) for each in results], right=",".join(_HEADER[1:]))
        _print_fairness(results)


def _with_learned_orders(chosen: SimulateOptions, named: list[Schedules]) -> list[Schedules]:
    """Return the policies, Carrel's as the site has it, and one with the order of the options."""
    found = list(named)
    in_use = _order_in_use(chosen) if chosen.from_ledger and CARREL in found else None
    if in_use is not None:
        click.echo(f"{CARREL.name} uses the learned order {in_use.name}, as the site.", err=True)
        live = with_learned_order(CARREL.name, in_use)
        found = [live if each == CARREL else each for each in found]
    if chosen.learned_order is not None:
        order = load_learned_order(chosen.state, chosen.learned_order)
        found.append(with_learned_order(f"{CARREL.name}:{order.name}", order))
    return found


def _order_in_use(chosen: SimulateOptions) -> LearnedOrder | None:
    """Return the learned order of the site; None without a usable one, as in the service."""
    name = existing(chosen.state).learned_order
    try:
        return load_learned_order(chosen.state, name) if name else None
    except InvalidInput as error:
        click.echo(f"{error.message} {CARREL.name} is replayed without it, as the site.", err=True)
        return None


def _setup(chosen: SimulateOptions, nodes: str) -> ExperimentSetup:
    return ExperimentSetup(
        nodes=nodes,
        estimates=chosen.estimates,
        seed=chosen.seed,
        version=__version__,
        where=dict(_column(each) for each in chosen.where),
        since=chosen.since,
        until=chosen.until,
    )


def _check_outputs(chosen: SimulateOptions) -> None:
    """Check the output options, before anything is simulated."""
    if chosen.json_out == chosen.html_out == _STDOUT:
        raise click.UsageError("Only one of --json and --html can be printed.")
    for out in (chosen.json_out, chosen.html_out):
        if out and out != _STDOUT and not Path(out).absolute().parent.is_dir():
            raise InvalidInput(
                f"There is no folder {Path(out).absolute().parent} to write {out} into.",
                accepted="Give a file in an existing folder, or - for standard output.",
            )


def _of_trace(chosen: SimulateOptions) -> tuple[Experiment, str]:
    if chosen.trace is None:
        raise click.UsageError("Give a trace with --trace, or use --from-ledger.")
    if chosen.nodes is None:
        raise click.UsageError("Give the nodes with --nodes, such as 6x8.")
    layout = parse_nodes(chosen.nodes)
    trace = read_trace(
        chosen.trace, FORMATS[chosen.format], _selection(chosen), skip_bad=chosen.skip_bad
    )
    groups = _quota(chosen, layout.devices, (), trace)
    _check_periods(groups)
    pools = layout.pools()
    trace = admitted(trace, pools, groups, gangs=True)
    experiment = Experiment(
        trace=trace,
        pools=pools,
        estimator=parse_estimates(chosen.estimates, trace.jobs, chosen.seed),
        groups=groups,
        restart_cost=chosen.restart_cost,
    )
    return experiment, str(layout)


def _of_ledger(chosen: SimulateOptions) -> tuple[Experiment, str]:
    if chosen.trace or chosen.where:
        raise click.UsageError("--from-ledger cannot be combined with --trace or --where.")
    # The store needs the hub packages of Carrel.
    from ...usage.what_if.site_history import describe_site, site_devices  # noqa: PLC0415
    from .simulate_ledger import read_ledger  # noqa: PLC0415

    ledger = read_ledger(chosen.state, _selection(chosen))
    devices = site_devices(ledger.devices, chosen.nodes)
    groups = _quota(chosen, len(devices), ledger.groups, ledger.trace)
    pools = {ONE_POOL: devices}
    gangs = any(job.gang is not None for job in ledger.trace.jobs)
    trace = admitted(ledger.trace, pools, groups, gangs=gangs)
    experiment = Experiment(
        trace=trace,
        pools=pools,
        estimator=parse_estimates(chosen.estimates, trace.jobs, chosen.seed),
        groups=groups,
        restart_cost=chosen.restart_cost,
        calendar=ledger.calendar,
    )
    return experiment, describe_site(chosen.nodes)


def _quota(
    chosen: SimulateOptions, devices: int, current: tuple[Group, ...], trace: Trace
) -> tuple[Group, ...]:
    """Return the groups with the changes of the quota file, and warn about unused groups."""
    if chosen.quota is None:
        return current
    groups = read_quota(chosen.quota, devices, current, TEXT_PARSERS)
    changed = [group for group in groups if group not in current]
    for name in unused(changed, groups, {job.tenant for job in trace.jobs}):
        click.echo(f"No replayed job belongs to {name}, or to a subgroup.", err=True)
    return groups


def _check_periods(groups: Iterable[Group]) -> None:
    """Reject budgets per term: a trace has no terms."""
    for group in groups:
        if group.budget is not None and group.budget.period is Period.TERM:
            raise InvalidInput(
                f"The budget of {group.name} is by term, and a trace has no terms.",
                accepted="Set a budget per week, such as 20h/week; with --from-ledger the terms of "
                "the site are used.",
                field="quota",
            )


def _selection(chosen: SimulateOptions) -> Selection:
    whole = Selection()
    return Selection(
        where=dict(_column(each) for each in chosen.where),
        since=whole.since if chosen.since is None else first_moment(chosen.since),
        until=whole.until if chosen.until is None else last_moment(chosen.until),
    )


def _column(text: str) -> tuple[str, str]:
    column, equals, value = text.partition("=")
    if not equals:
        raise InvalidInput(
            f"--where cannot be {text!r}.",
            accepted="COLUMN=TEXT is accepted, such as cluster=6214e9.",
            field="where",
        )
    return column, value


def _report_lines(trace: Trace) -> None:
    """Print the lines that were left out on stderr, since a program may read standard output."""
    for reason, count in trace.left_out.items():
        click.echo(f"{count:,} left out: {reason}.", err=True)
    for bad in trace.bad[:_BAD_SHOWN]:
        click.echo(f"Skipped line {bad.number}: {bad.why}", err=True)
    if len(trace.bad) > _BAD_SHOWN:
        click.echo(f"… and {len(trace.bad) - _BAD_SHOWN:,} more lines.", err=True)


def _timed(experiment: Experiment, policy: Schedules) -> ExperimentResult:
    began = time.perf_counter()
    result = run(experiment, policy)
    seconds = time.perf_counter() - began
    click.echo(f"{policy.name}: {result.figures.jobs:,} jobs in {seconds:.1f} s", err=True)
    if held := held_back_note(result):
        click.echo(held, err=True)
    return result


def _write(out: str, text: str) -> None:
    if out == _STDOUT:
        click.echo(text)
        return
    try:
        Path(out).write_text(f"{text}\n", encoding="utf-8")
    except OSError as error:
        raise InvalidInput(f"{out} cannot be written: {error}.") from error


def _row(result: ExperimentResult) -> Sequence[str]:
    found = result.figures
    return [
        result.policy.name,
        *(units.duration(each) for each in (found.jct.mean, found.jct.median, found.jct.p95)),
        units.duration(found.wait.mean),
        f"{found.utilisation:.1%}",
        f"{found.slowdown:,.1f}",
        f"{found.preemptions:,}",
        units.device_hours(found.wasted),
        f"{found.fragmentation:.1%}",
    ]


def _print_fairness(results: Sequence[ExperimentResult]) -> None:
    """Print the fairness table with its legend, if there are several users or tenants."""
    columns = fairness_columns.shown([each.figures for each in results])
    if not columns:
        return
    header = ["POLICY", *(column.name.upper() for column in columns)]
    rows = [[each.policy.name, *fairness_columns.row(each.figures, columns)] for each in results]
    click.echo()
    display.table(header, rows, right=",".join(header[1:]))
    click.echo()
    for column in columns:
        click.echo(f"{column.name.upper()}: {column.meaning}")


COMMANDS: dict[str, click.Command] = {"simulate": simulate_command}
