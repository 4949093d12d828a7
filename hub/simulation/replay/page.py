"""Experiment report as one self-contained HTML page, without scripts, in light and dark mode."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape

from ...messages import units
from ..workload.job_run import Run
from . import fairness_columns
from .experiment import Experiment, ExperimentResult
from .json_report import ExperimentSetup, held_back_note
from .metrics import completion
from .svg import (
    PlotLine,
    bars_plot,
    count_axis,
    days_axis,
    lines_plot,
    percent_axis,
    seconds_axis,
    span,
)

Interval = tuple[float, float, float]
"""Start, end, and amount."""

_POINTS = 160
_EVERY = 20
"""Number of points between two marks."""
_MARKED = (0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
_STYLE = """
:root{color-scheme:light dark;--s0:#1a1a1a;--s1:#0b63a5;--s2:#b3420a;--s3:#0a7a52;--s4:#7a3f9d;
--s5:#8a6d00;--s6:#a8244f;--s7:#4a5a66;--grid:#d5d9dd;--paper:#fff;--ink:#1a1a1a}
@media (prefers-color-scheme:dark){:root{--s0:#f2f2f2;--s1:#6cb6f0;--s2:#f39a66;--s3:#5fd0a5;
--s4:#c99be8;--s5:#e6c84f;--s6:#f58bab;--s7:#aebbc6;--grid:#3a4047;--paper:#15181b;--ink:#e8e8e8}}
body{margin:2rem auto;max-width:64rem;padding:0 1rem;background:var(--paper);color:var(--ink);
font:16px/1.5 system-ui,sans-serif}
h1{font-size:1.6rem;overflow-wrap:anywhere}h2{font-size:1.2rem;margin-top:2.5rem}
.scroll{overflow-x:auto}
table{border-collapse:collapse;font-size:.875rem;font-variant-numeric:tabular-nums}
caption{text-align:left;padding-bottom:.5rem}
th,td{padding:.3rem .5rem;text-align:right;border-bottom:1px solid var(--grid);white-space:nowrap}
thead th{white-space:normal;vertical-align:bottom}th:first-child{text-align:left}
figure{margin:1.5rem 0}figcaption,dt{font-weight:600}
.scroll svg{display:block;width:100%;min-width:40rem;height:auto}
svg text{fill:var(--ink);font-size:12px}
.end{text-anchor:end}.middle{text-anchor:middle}
.grid{stroke:var(--grid);fill:none}.ink{stroke:var(--ink)}
.fill{fill:var(--ink)}.hatch{fill:url(#hatch);stroke:var(--ink)}
.line{fill:none;stroke-width:2}.line .mark{stroke-dasharray:none;fill:var(--paper)}
.legend{list-style:none;padding:0;display:flex;flex-wrap:wrap;gap:.2rem 1.4rem}
.legend svg{vertical-align:middle}
""" + "".join(f".s{number}{{stroke:var(--s{number})}}" for number in range(8))


def page(
    experiment: Experiment, results: Sequence[ExperimentResult], setup: ExperimentSetup
) -> str:
    """Render the page."""
    name = escape(experiment.trace.name)
    parts = [
        f"<h1>{name}, {len(experiment.trace.jobs):,} jobs on {escape(setup.nodes)}</h1>",
        _conditions(experiment, setup),
        "<h2>Metrics</h2>",
        _table(results),
        *(f"<p>{escape(note)}</p>" for note in map(held_back_note, results) if note),
        *_fairness(results),
        "<h2>Completion time</h2>",
        bars_plot(
            title="Mean (filled) and 95th percentile (hatched)",
            about="Bars of the mean and the 95th percentile of the completion time of each "
            "policy; the table above has the same numbers.",
            rows=[(r.policy.name, r.figures.jct.mean, r.figures.jct.p95) for r in results],
        ),
        _distribution(results),
        "<h2>Over time</h2>",
        *_over_time(results),
        "<h2>Policies</h2>",
        _terms((result.policy.name, result.policy.source) for result in results),
    ]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>Simulation of {name}</title><style>{_STYLE}</style></head>"
        f"<body><main>{''.join(parts)}</main></body></html>"
    )


def _conditions(experiment: Experiment, setup: ExperimentSetup) -> str:
    trace = experiment.trace
    lines = [
        *_selection(setup),
        f"Estimates: {setup.estimates}, seed {setup.seed}. A job that was stopped repeats "
        f"{experiment.restart_cost:g} s of its work. Carrel {setup.version}.",
        *(f"{count:,} lines left out: {reason}." for reason, count in trace.left_out.items()),
    ]
    if trace.bad:
        lines.append(f"{len(trace.bad):,} malformed lines were skipped.")
    return "".join(f"<p>{escape(line)}</p>" for line in lines)


def _selection(setup: ExperimentSetup) -> Iterator[str]:
    """Yield a sentence about the part of the trace that was used; none for the whole trace."""
    conditions = [f"{column} is {text}" for column, text in setup.where.items()]
    if setup.since is not None:
        conditions.append(f"submitted from {setup.since}")
    if setup.until is not None:
        conditions.append(f"submitted up to {setup.until}")
    if conditions:
        yield f"Jobs of the trace: {', '.join(conditions)}."


def _table(results: Sequence[ExperimentResult]) -> str:
    header = (
        *("policy", "completion, mean", "median", "95 %", "99 %", "wait, mean", "95 %"),
        *("slowdown", "devices in use", "stops", "lost work", "idle while jobs wait"),
    )
    return _grid(
        "Metrics",
        "Completion time from submission to end, and the wait time within it.",
        header,
        [(result.policy.name, *_cells(result)) for result in results],
    )


def _fairness(results: Sequence[ExperimentResult]) -> Iterator[str]:
    """Yield the fairness section; nothing if no policy has a fairness metric."""
    columns = fairness_columns.shown([result.figures for result in results])
    if not columns:
        return
    yield "<h2>Fairness</h2>"
    yield _grid(
        "Fairness",
        "The worst user or tenant. Less is better in every column.",
        ("policy", *(column.name for column in columns)),
        [(each.policy.name, *fairness_columns.row(each.figures, columns)) for each in results],
    )
    yield _terms((column.name, column.meaning) for column in columns)


def _grid(name: str, caption: str, header: Iterable[str], rows: Iterable[tuple[str, ...]]) -> str:
    """Render a table whose rows start with their names; it scrolls if it is too wide."""
    heads = "".join(f'<th scope="col">{escape(each)}</th>' for each in header)
    lines = "".join(
        f'<tr><th scope="row">{escape(first)}</th>'
        + "".join(f"<td>{escape(cell)}</td>" for cell in cells)
        + "</tr>"
        for first, *cells in rows
    )
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{name}"><table>'
        f"<caption>{caption}</caption>"
        f"<thead><tr>{heads}</tr></thead><tbody>{lines}</tbody></table></div>"
    )


def _cells(result: ExperimentResult) -> Iterable[str]:
    found = result.figures
    yield from (span(x) for x in (found.jct.mean, found.jct.median, found.jct.p95, found.jct.p99))
    yield from (span(found.wait.mean), span(found.wait.p95))
    yield f"{found.slowdown:,.1f}"
    yield f"{found.utilisation:.1%}"
    yield f"{found.preemptions:,}"
    yield units.device_hours(found.wasted)
    yield f"{found.fragmentation:.1%}"


def _distribution(results: Sequence[ExperimentResult]) -> str:
    lines = []
    longest = 1.0
    for result in results:
        times = sorted(completion(run) for run in _runs(result))
        longest = max(longest, times[-1])
        shares = [number / _POINTS for number in range(1, _POINTS + 1)]
        lines.append(
            PlotLine(
                name=result.policy.name,
                points=[(_quantile(times, share), share) for share in shares],
                marks=[(_quantile(times, share), share) for share in _MARKED],
            )
        )
    return lines_plot(
        title="Share of the jobs that ended within a time after their submission",
        about="Lines of the cumulative distribution of completion times, one for each policy.",
        across=seconds_axis("time from submission to end (logarithmic)", longest),
        up=percent_axis("share of jobs"),
        lines=lines,
    )


def _quantile(ordered: Sequence[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def _over_time(results: Sequence[ExperimentResult]) -> Iterator[str]:
    """Yield plots of queued jobs and of devices in use, with all policies on one time axis."""
    runs = [run for result in results for run in _runs(result)]
    began = min(run.job.submitted_at for run in runs)
    ended = max(run.job.submitted_at + completion(run) for run in runs)
    waiting = [(r.policy.name, _level(_waits(r), began, ended)) for r in results]
    held = [(r.policy.name, _level(_holds(r), began, ended)) for r in results]
    for title, levels in (("Jobs waiting", waiting), ("Devices in use", held)):
        most = max(y for _, points in levels for _, y in points)
        yield lines_plot(
            title=title,
            about=f"{title} under each policy over time, one line for each.",
            across=days_axis(began, ended),
            up=count_axis(title.lower(), most),
            lines=[
                PlotLine(name=name, points=points, marks=points[_EVERY // 2 :: _EVERY])
                for name, points in levels
            ],
        )


def _waits(result: ExperimentResult) -> Iterator[Interval]:
    for run in _runs(result):
        at = run.job.submitted_at
        for start, end in run.spans:
            yield (at, start, 1.0)
            at = end


def _holds(result: ExperimentResult) -> Iterator[Interval]:
    for run in _runs(result):
        for (start, end), held in zip(run.spans, run.sizes, strict=True):
            yield (start, end, held)


def _level(intervals: Iterable[Interval], began: float, ended: float) -> list[tuple[float, float]]:
    """Return the average amount in equal parts of the time, as points."""
    width = (ended - began) / _POINTS or 1.0
    amounts = [0.0] * _POINTS
    for start, end, size in intervals:
        last = min(int((end - began) / width), _POINTS - 1)
        for number in range(int((start - began) / width), last + 1):
            edge = began + number * width
            inside = min(end, edge + width) - max(start, edge)
            amounts[number] += max(0.0, inside) * size
    return [(began + (n + 0.5) * width, amount / width) for n, amount in enumerate(amounts)]


def _runs(result: ExperimentResult) -> list[Run]:
    return [run for outcome in result.outcomes for run in outcome.runs]


def _terms(terms: Iterable[tuple[str, str]]) -> str:
    """Render names with their descriptions."""
    rows = "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in terms)
    return f"<dl>{rows}</dl>"
