"""The graph of a pipeline on the page of one of its jobs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ....messages.requests import state_name
from ....schemas import PipelineOut
from ....schemas.requests import ExpectedEndOut
from ...html.layered_graph import BOX_HEIGHT, BOX_WIDTH, Arrow, layout

_FITS: Final = 17
"""Characters of a name that fit into a box; most are not wide."""
_CONDITIONS = {"ok": "", "any": " (however it ends)", "resumes": " (which it resumes)"}


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineBox:
    """A job in the graph, and in the list that says the same.

    Attributes:
        here: whether the page is about it.
        fitting: its name, cut to the width of the box.
        after: names of the jobs that it comes after, with the condition.
    """

    id: str
    name: str
    fitting: str
    state: str
    state_name: str
    here: bool
    x: int
    y: int
    after: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineArrow:
    """An arrow; ``kind`` is ``ok``, ``any`` or ``resumes``."""

    kind: str
    line: str
    head: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineView:
    """The graph.

    Attributes:
        kinds: of its arrows that need an explanation.
        cut: how many jobs are shown, if there are more; 0 otherwise.
    """

    width: int
    height: int
    box_width: int
    box_height: int
    boxes: Sequence[PipelineBox]
    arrows: Sequence[PipelineArrow]
    kinds: Sequence[str]
    cut: int
    expected_end: ExpectedEndOut | None = None


def pipeline_view(found: PipelineOut, request_id: str) -> PipelineView | None:
    """Return the graph of a pipeline; None if the job is connected with no other one."""
    if len(found.jobs) < 2:  # noqa: PLR2004  # ends of an arrow
        return None
    arrows = [Arrow(link.first, link.then, link.kind) for link in found.links]
    placed = layout([job.id for job in found.jobs], arrows)
    uses = Counter(job.name for job in found.jobs)
    # A job and the one that resumes it have the same name.
    told = {
        job.id: job.name if uses[job.name] == 1 else f"{job.name} ({job.id})" for job in found.jobs
    }
    boxes = [
        PipelineBox(
            id=job.id,
            name=job.name,
            fitting=job.name if len(job.name) <= _FITS else f"{job.name[: _FITS - 1]}…",
            state=job.state,
            state_name=state_name(job.state),
            here=job.id == request_id,
            x=placed.boxes[job.id][0],
            y=placed.boxes[job.id][1],
            after=[
                f"{told[each.first]}{_CONDITIONS[each.kind]}"
                for each in arrows
                if each.then == job.id
            ],
        )
        for job in found.jobs
    ]
    drawn = [
        PipelineArrow(kind=arrow.kind, line=line, head=head)
        for arrow, (line, head) in zip(arrows, placed.paths, strict=True)
    ]
    return PipelineView(
        width=placed.width,
        height=placed.height,
        box_width=BOX_WIDTH,
        box_height=BOX_HEIGHT,
        boxes=boxes,
        arrows=drawn,
        kinds=sorted({arrow.kind for arrow in arrows} - {"ok"}),
        cut=len(boxes) if found.cut else 0,
        expected_end=found.expected_end,
    )
