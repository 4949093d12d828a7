"""The page that compares forecasts of run times and waits with their outcomes."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from ...forecasts.outcomes import WEEKS, forecast_history
from ..dependencies.callers import Carrel
from ..dependencies.context import in_one_transaction
from ..dependencies.visitors import Guest, html

router = APIRouter(include_in_schema=False)


@router.get("/forecasts")
@in_one_transaction
def forecasts(web: Carrel, visitor: Guest) -> Response:
    """Show sums over all users, which every user may see."""
    found = forecast_history(web.context.store, web.clock())
    return html(web.render_for(visitor, "usage/forecasts.html", found=found, most_weeks=WEEKS))
