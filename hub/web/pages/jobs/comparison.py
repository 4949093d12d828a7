"""The page of two runs side by side, and the outputs of notebooks that it shows."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response

from ....comparison.schemas import (
    ABSOLUTE,
    MOST_RELATIVE,
    PARTS,
    RELATIVE,
    ComparisonIn,
    ComparisonOut,
    Part,
    RunIn,
    ToleranceIn,
)
from ....comparison.sentences import summary_sentence, text_sentence
from ....errors import CarrelError, InvalidInput, NotFound
from ...dependencies.callers import Carrel, RequestId
from ...dependencies.context import WebContext
from ...dependencies.visitors import Follower, Guest, html
from ...html.cell_output import SANDBOXED, content
from ...html.frame_style import theme_of
from ...security.access import Visitor

RunId = Annotated[str, Query(max_length=64)]
Number = Annotated[int, Path(ge=0, le=10**6)]

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonForm:
    """The fields of the form, as they were given."""

    a: str = ""
    b: str = ""
    tolerance: str = ""
    ignore: tuple[Part, ...] = ()

    def wanted(self) -> ComparisonIn:
        """Return what is to be compared. Raises InvalidInput."""
        return ComparisonIn(
            a=RunIn(request=self.a),
            b=RunIn(request=self.b),
            tolerance=ToleranceIn(relative=self._relative(), absolute=ABSOLUTE),
            ignore=list(self.ignore),
        )

    def _relative(self) -> float:
        try:
            found = float(self.tolerance or RELATIVE)
        except ValueError:
            found = -1
        if not isfinite(found) or not 0 <= found <= MOST_RELATIVE:
            raise InvalidInput(
                f"The tolerance {self.tolerance[:40]!r} is not accepted.",
                accepted=f"A number from 0 to {MOST_RELATIVE:.0f}, such as 1e-6 or 0.05.",
                field="tolerance",
            )
        return found


@router.get("/compare")
def compare(
    *,
    web: Carrel,
    visitor: Guest,
    a: RunId = "",
    b: RunId = "",
    tolerance: Annotated[str, Query(max_length=40)] = "",
    ignore: Annotated[list[str] | None, Query(max_length=10)] = None,
) -> Response:
    """Compare two jobs; without both ids, show the form."""
    ignored = tuple(part for part in PARTS if part in (ignore or ()))
    form = ComparisonForm(a=a.strip(), b=b.strip(), tolerance=tolerance.strip(), ignore=ignored)
    if not (form.a and form.b):
        return _page(web, visitor, form)
    try:
        found = web.comparisons.compare(visitor.identity, form.wanted())
    except CarrelError as error:
        return _page(web, visitor, form, error=error)
    return _page(web, visitor, form, found=found)


@router.get("/requests/{request_id}/cells/{cell}/outputs/{number}")
def cell_output(
    *,
    web: Carrel,
    visitor: Follower,
    request: Request,
    request_id: RequestId,
    cell: Number,
    number: Number,
) -> Response:
    """Return an image or HTML output of the executed notebook, without scripts.

    ``cell``: its number among all cells but papermill's own, from 1; ``number``: of the output in
    the cell, from 0.
    """
    who = visitor.identity
    shown = web.requests.request(who, request_id)
    if not shown.ended:
        raise NotFound(f"{request_id} has not ended: it is {shown.state}.")
    epoch = shown.lease.epoch if shown.lease is not None else 0
    cells = web.notebook_outputs.outputs(
        request_id, epoch, lambda: web.requests.output(who, request_id)
    )
    outputs = cells[cell - 1] if 0 < cell <= len(cells) else ()
    output = outputs[number] if number < len(outputs) else None
    found = content(output, theme_of(request))
    if found is None:
        raise NotFound(f"{request_id} has no image or HTML output {number} in cell {cell}.")
    return Response(
        found.data,
        media_type=found.mime,
        headers={**SANDBOXED, "Cache-Control": "private, max-age=3600"},
    )


def _page(
    web: WebContext,
    visitor: Visitor,
    form: ComparisonForm,
    *,
    found: ComparisonOut | None = None,
    error: CarrelError | None = None,
) -> Response:
    page = web.render_for(
        visitor,
        "jobs/comparison.html",
        form=form,
        found=found,
        error=error,
        parts=PARTS,
        default=RELATIVE,
        sentence=found and summary_sentence(found.summary, equal=found.equal),
        text_sentence=text_sentence,
    )
    return html(page, status=error.http_status) if error else html(page)
