"""How good Carrel's decisions are: ``python -m tests.benchmarks.policies``.

Three real traces under Carrel's policy and under published ones, in the same run. Only `sjf` and
`srtf` know how long a job will run; `qssf` and `carrel` are told a guess: the truth times a
log-normal error, in several draws, or what history says. Who is stopped does 60 s again.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from carrel.hub.simulation.replay.metrics import ReplayMetrics

from . import report
from .plays import (
    DRAWN,
    HISTORY,
    KNOWN,
    QSSF_PASSING,
    TOLD,
    UNGUARANTEED,
    UNPROMISED,
    Comparison,
    Play,
    Take,
    play_all,
    plays_of,
)

ESTIMATES: Mapping[str, str] = MappingProxyType({DRAWN: "log-normal", HISTORY: "history"})
CARREL = "carrel"
UNKNOWING = ("fifo", "greedy", "las", "qssf")
"""Those that do not know how long a job will run."""
BASELINES = (*UNKNOWING, "sjf", "srtf")

WITHOUT: Mapping[str, str] = MappingProxyType(
    {UNGUARANTEED: "equal shares and no guarantee", UNPROMISED: "no quotas"}
)
"""Philly without a part of what Carrel promises there, to see what that part costs."""

LAS_GOLDENS = (56_353.0, 58_989.0)
QSSF_GOLDEN = (30_990.0 + 31_803.0) / 2
NEAR_LAS, NEAR_QSSF = 5.0, 10.0
"""Mean completion time of S1 in other simulators, and how many percent ours may be away from it."""
GOLDEN_LAS = Play(trace="s1", policy="las", restart_cost=0.0)
"""Stopping costs nothing in the others."""
OF_FIFO, OF_LAS = 0.333, 0.625
"""Carrel's mean completion time on S1 to theirs: a third, and 1 to 1.6."""


def mean(found: ReplayMetrics) -> float:
    return found.jct.mean


def high(found: ReplayMetrics) -> float:
    return found.jct.p95


COMPLETION: Mapping[str, Take] = MappingProxyType(
    {
        "mean completion": mean,
        "median": lambda found: found.jct.median,
        "95th percentile": high,
        "99th percentile": lambda found: found.jct.p99,
    }
)


def mean_alone(found: ReplayMetrics) -> float:
    assert found.jct_alone is not None, "measured where all tenants have guarantees"
    return found.jct_alone.mean


def worst_user(found: ReplayMetrics) -> float:
    """Mean slowdown of the user or tenant that fares worst."""
    assert found.users is not None, "measured where the trace knows users"
    return found.users.worst


def worst_share(found: ReplayMetrics) -> float:
    """Finish-time fairness of the tenant to whom sharing did worst."""
    assert found.finish_time is not None, "measured where tenants share a pool"
    return found.finish_time.worst


def lacked(found: ReplayMetrics) -> float:
    """Device-hours."""
    assert found.below_guarantee is not None, "measured where there are guarantees"
    return found.below_guarantee / 3600


def lacked_alone(found: ReplayMetrics) -> float:
    assert found.below_alone is not None, "measured where there are guarantees"
    return found.below_alone / 3600


Columns = Mapping[str, tuple[Take, str]]
"""What a table of all policies shows, and how it is written."""
COLUMNS: Columns = MappingProxyType(
    {
        **{what: (take, "{:,.0f} s") for what, take in COMPLETION.items()},
        "slowdown": (lambda found: found.slowdown, "{:,.1f}"),
        "idle while requests wait": (lambda found: found.fragmentation * 100, "{:.1f} %"),
        "stops": (lambda found: found.preemptions, "{:,.0f}"),
    }
)


def beside(
    comparison: Comparison, what: str, peer: str, estimates: str, times: float | None
) -> report.Row:
    """Carrel's completion time and a peer's; only reported where nothing is asked of it."""
    take = COMPLETION[what]
    theirs = comparison.of(take, peer, estimates)
    return comparison.row(
        f"{what}, {ESTIMATES[estimates]}, beside {peer}",
        comparison.of(take, CARREL, estimates),
        "s",
        report.Beside(peer=theirs)
        if times is None
        else report.NotWorseThan(peer=theirs, times=times),
    )


def week_rows(week: Comparison) -> Iterator[report.Row]:
    las = mean(week.found[GOLDEN_LAS])
    off = min(abs(las / golden - 1) for golden in LAS_GOLDENS) * 100
    yield week.row("las, off the nearer golden", off, "%", report.AtMost(limit=NEAR_LAS))
    off = abs(week.of(mean, "qssf", DRAWN) / QSSF_GOLDEN - 1) * 100
    yield week.row("qssf, off the golden", off, "%", report.AtMost(limit=NEAR_QSSF))
    for estimates in ESTIMATES:
        yield beside(week, "mean completion", "fifo", estimates, OF_FIFO)
        yield beside(week, "mean completion", "las", estimates, OF_LAS)
        yield beside(week, "95th percentile", "las", estimates, 1.0)


def philly_rows(philly: Comparison) -> Iterator[report.Row]:
    for estimates, words in ESTIMATES.items():
        for peer in UNKNOWING:
            yield beside(philly, "mean completion", peer, estimates, 1.0)
        for peer in UNKNOWING:
            yield philly.row(
                f"mean completion, each cluster alone, {words}, beside {peer}",
                philly.of(mean_alone, CARREL, estimates),
                "s",
                report.Beside(peer=philly.of(mean_alone, peer, estimates)),
            )
        for peer in UNKNOWING:
            theirs = philly.of(worst_share, peer, estimates)
            yield philly.row(
                f"worst finish-time fairness, {words}, beside {peer}",
                philly.of(worst_share, CARREL, estimates),
                "",
                report.NotWorseThan(peer=theirs, times=1.0),
            )
        yield philly.row(
            f"device-hours below a guarantee, {words}",
            philly.of(lacked, CARREL, estimates),
            "h",
            report.AtMost(limit=0.0),
        )
    for trace, words in WITHOUT.items():
        yield philly.row(
            f"mean completion, {ESTIMATES[DRAWN]}, {words}, beside qssf",
            philly.of(mean, CARREL, DRAWN, trace),
            "s",
            report.Beside(peer=philly.of(mean, "qssf", DRAWN)),
        )


def helios_rows(helios: Comparison) -> Iterator[report.Row]:
    for estimates in ESTIMATES:
        yield beside(helios, "mean completion", "fifo", estimates, 1.0)
        for peer in (*BASELINES[1:], QSSF_PASSING.name):
            yield beside(helios, "mean completion", peer, estimates, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One trace, who is compared on it, and what is asked of Carrel.

    Attributes:
        drawn_on: other traces on which Carrel is played, told guesses with drawn errors.
    """

    title: str
    policies: tuple[str, ...]
    rows: Callable[[Comparison], Iterator[report.Row]]
    more: tuple[Play, ...] = ()
    drawn_on: tuple[str, ...] = ()
    columns: Columns = field(default_factory=dict)


PARTS: Mapping[str, Part] = MappingProxyType(
    {
        "s1": Part(title="S1", policies=(*BASELINES, CARREL), rows=week_rows, more=(GOLDEN_LAS,)),
        "philly": Part(
            title="Philly",
            policies=(*UNKNOWING, CARREL),
            rows=philly_rows,
            drawn_on=tuple(WITHOUT),
            columns={
                "worst fairness": (worst_share, "{:,.2f}"),
                "below guarantees": (lacked, "{:,.0f} h"),
                "the same, each alone": (lacked_alone, "{:,.0f} h"),
                "mean completion, each alone": (mean_alone, "{:,.0f} s"),
            },
        ),
        "helios": Part(
            title="Helios",
            policies=(*BASELINES, QSSF_PASSING.name, CARREL),
            rows=helios_rows,
            columns={"slowdown of the worst user": (worst_user, "{:,.1f}")},
        ),
    }
)


def plays(name: str, seeds: range) -> Iterator[Play]:
    """All runs of one part."""
    yield from PARTS[name].more
    for trace in PARTS[name].drawn_on:
        yield from plays_of(trace, CARREL, DRAWN, seeds)
    for policy in PARTS[name].policies:
        for estimates in ESTIMATES:
            yield from plays_of(name, policy, estimates, seeds)


def losses(comparison: Comparison, told: Sequence[report.Row]) -> Iterator[report.Row]:
    """Where Carrel is worse than one that knows no more, beyond what the rows above say."""
    known = {row.name for row in told}
    for estimates in ESTIMATES:
        for what in COMPLETION:
            for peer in UNKNOWING:
                row = beside(comparison, what, peer, estimates, None)
                if row.name not in known and (row.ratio or 0.0) > 1:
                    yield row


def figures_table(comparison: Comparison) -> str:
    """All policies on one trace; where there are several draws, their mean."""
    columns = {**COLUMNS, **PARTS[comparison.trace].columns}
    lines = [
        f"| {comparison.title} | {' | '.join(columns)} |",
        f"| --- |{' ---: |' * len(columns)}",
    ]
    for policy in PARTS[comparison.trace].policies:
        for estimates in ESTIMATES if policy in TOLD else (KNOWN,):
            told = f", {ESTIMATES[estimates]}" if policy in TOLD else ""
            cells = (
                form.format(comparison.of(take, policy, estimates))
                for take, form in columns.values()
            )
            lines.append(f"| {policy}{told} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> int:
    options = report.parser(__doc__ or "")
    options.add_argument(
        "--only", action="append", choices=[*PARTS], help="one trace; may be given again (all)"
    )
    options.add_argument("--seeds", type=int, default=10, help="draws of the errors (10)")
    options.add_argument(
        "--first-seed", type=int, default=0, help="of them (0); another one for other draws"
    )
    chosen = options.parse_args()
    names: Sequence[str] = chosen.only or [*PARTS]
    seeds = range(chosen.first_seed, chosen.first_seed + chosen.seeds)
    again = report.command_line(__spec__.name, *sys.argv[1:])
    found = play_all(play for name in names for play in plays(name, seeds))
    rows: list[report.Row] = []
    tables: list[str] = []
    for name in names:
        part = PARTS[name]
        comparison = Comparison(trace=name, title=part.title, found=found, seeds=seeds, again=again)
        asked = [*part.rows(comparison)]
        rows += [*asked, *losses(comparison, asked)]
        tables += [figures_table(comparison)]
    status = report.finish(rows, as_json=chosen.json)
    if not chosen.json:
        print("", "\n\n".join(tables), sep="\n")
    return status


if __name__ == "__main__":
    sys.exit(main())
