"""Replay a history twice, on the site and on the changed site, and compare waits and utilization.

Both replays have the same submissions and run times, and Carrel's policy with the learned order of
the site, if it has one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...scheduling.model.learned_order import LearnedOrder
from ...scheduling.model.snapshot import Device, Group
from ...scheduling.model.text import plural
from ...schemas.usage import WhatIfOut, WhatIfRow, WhatIfSide
from ...simulation.policies.carrel_policy import CarrelPolicy
from ...simulation.replay.admission import admitted
from ...simulation.replay.experiment import Experiment, replayed
from ...simulation.replay.metrics import figures
from ...simulation.replay.runtime_estimates import parse_estimates
from ...simulation.workload.job_run import Run
from ...simulation.workload.jobs import Trace
from ...simulation.workload.nodes import ONE_POOL
from ..aggregation import nearest_rank
from .order import WhatIfOrder

ESTIMATES = "history"
"""Run times are expected from earlier jobs, as far as the replay has reached."""


def compare(order: WhatIfOrder) -> WhatIfOut:
    """Replay the history on both sites.

    Raises:
        InvalidInput: no job is left, or one can never start.
    """
    whole = Trace(name="the ledger", jobs=order.jobs)
    now = _admitted(whole, order.devices, order.groups)
    both = _admitted(now, order.changed_devices, order.changed_groups)
    sides = (
        _replay(both, order, order.devices, order.groups),
        _replay(both, order, order.changed_devices, order.changed_groups),
    )
    return WhatIfOut(
        requests=len(both.jobs),
        since=both.jobs[0].submitted_at,
        until=both.jobs[-1].submitted_at,
        devices=len(order.devices),
        changed_devices=len(order.changed_devices),
        total=_row("", *sides),
        by_group=_by_group(*sides),
        notes=[
            *order.notes,
            *_notes(len(whole.jobs), len(now.jobs), len(both.jobs)),
            *_order_notes(order.learned_order),
        ],
    )


def _admitted(trace: Trace, devices: Sequence[Device], groups: Sequence[Group]) -> Trace:
    gangs = any(job.gang is not None for job in trace.jobs)
    return admitted(trace, {ONE_POOL: devices}, groups, gangs=gangs)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Replay:
    """Runs that ended; of all groups also the utilization, and the number that never started."""

    runs: Sequence[Run]
    utilization: float | None = None
    never_started: int = 0


def _replay(
    trace: Trace, order: WhatIfOrder, devices: Sequence[Device], groups: Sequence[Group]
) -> _Replay:
    outcomes = replayed(
        Experiment(
            trace=trace,
            pools={ONE_POOL: devices},
            estimator=parse_estimates(ESTIMATES, trace.jobs, 0),
            groups=groups,
            calendar=order.calendar,
        ),
        CarrelPolicy(learned_order=order.learned_order),
    )
    found = figures(outcomes)
    runs = [run for outcome in outcomes for run in outcome.runs]
    return _Replay(runs=runs, utilization=found.utilisation, never_started=found.held_back)


def _by_group(now: _Replay, changed: _Replay) -> list[WhatIfRow]:
    names = sorted({run.job.tenant for run in (*now.runs, *changed.runs)})
    return [_row(name, _of_group(now, name), _of_group(changed, name)) for name in names]


def _of_group(replay: _Replay, name: str) -> _Replay:
    return _Replay(runs=[run for run in replay.runs if run.job.tenant == name])


def _row(name: str, now: _Replay, changed: _Replay) -> WhatIfRow:
    return WhatIfRow(name=name, now=_side(now), changed=_side(changed))


def _side(replay: _Replay) -> WhatIfSide:
    waits = sorted(run.spans[0][0] - run.job.submitted_at for run in replay.runs)
    return WhatIfSide(
        requests=len(waits),
        median_wait_seconds=nearest_rank(waits, 50) if waits else None,
        ninetieth_wait_seconds=nearest_rank(waits, 90) if waits else None,
        utilization=replay.utilization,
        never_started=replay.never_started,
    )


def _notes(whole: int, now: int, both: int) -> list[str]:
    found = [
        f"It rests on {plural(both, 'request')} of the ledger, with the same submissions and run "
        "times in both replays. Users would submit differently on another site.",
    ]
    if whole > now:
        found.append(
            f"{plural(whole - now, 'request')} would be refused on the site as it is now, and "
            "are left out."
        )
    if now > both:
        found.append(
            f"{plural(now - both, 'request')} would be refused on the changed site, and are left "
            "out of both replays."
        )
    return found


def _order_notes(learned: LearnedOrder | None) -> list[str]:
    if learned is None:
        return []
    return [f"Both replays use the learned order {learned.name}, as the queue does."]
