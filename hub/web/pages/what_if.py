"""The page that replays the ledger with other devices or quotas, for administrators."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Query
from starlette.responses import Response

from ...config.base_url import SERVICE_PREFIX
from ...errors import CarrelError, InvalidInput, NothingToReplay
from ...files.csv_table import csv_of
from ...messages import what_if as what_if_messages
from ...records.identity import require_admin
from ...usage.what_if.service import DEFAULT_DAYS, SiteChange
from ..dependencies.callers import Carrel
from ..dependencies.visitors import Guest, html
from ..html.downloads import attachment

router = APIRouter(include_in_schema=False)
FIELD_MOST = 200


class WhatIfForm:
    """The fields of the form, as they were given."""

    def __init__(
        self,
        devices: Annotated[str, Query(max_length=FIELD_MOST)] = "",
        group: Annotated[str, Query(max_length=64)] = "",
        most: Annotated[str, Query(max_length=20)] = "",
        days: Annotated[str, Query(max_length=20)] = "",
    ) -> None:
        self.devices, self.group = devices.strip(), group
        self.most, self.days = most.strip(), days.strip()

    def __bool__(self) -> bool:
        return bool(self.devices or self.group or self.most)

    def query(self) -> SiteChange:
        """Return what is to be tried. Raises InvalidInput."""
        if bool(self.group) != bool(self.most):
            raise InvalidInput(
                "The quota is not complete.", accepted="Choose a group and its max quota."
            )
        try:
            days = float(self.days or DEFAULT_DAYS)
        except ValueError:
            days = 0.0
        return SiteChange(
            devices=self.devices,
            quotas=(f"{self.group}={self.most}",) if self.group else (),
            days=days,
        )

    def address(self, page: str) -> str:
        fields = {name: value for name, value in vars(self).items() if value}
        return f"{SERVICE_PREFIX}report/what-if{page}?{urlencode(fields)}"


Form = Annotated[WhatIfForm, Depends()]


@router.get("/report/what-if")
def what_if(web: Carrel, visitor: Guest, form: Form) -> Response:
    """Show the form, and the panel that fetches the result."""
    require_admin(visitor.identity)
    page = web.render_for(
        visitor,
        "admin/what_if.html",
        form=form,
        groups=sorted(group.name for group in web.context.store.groups()),
        days=DEFAULT_DAYS,
        result=form.address("/result") if form else "",
    )
    return html(page)


@router.get("/report/what-if/result")
def what_if_result(web: Carrel, visitor: Guest, form: Form) -> Response:
    """Replay, and show the result: a part of the page. Blocks a thread up to two minutes."""
    require_admin(visitor.identity)
    result = "admin/what_if_result.html"
    try:
        found = web.what_if.replay(visitor.identity, form.query())
    except NothingToReplay as empty:
        return html(web.render_for(visitor, result, error=None, empty=empty))
    except CarrelError as error:
        # htmx shows only answers without an error.
        return html(web.render_for(visitor, result, error=error, empty=None))
    page = web.render_for(
        visitor,
        result,
        error=None,
        empty=None,
        found=found,
        summary=what_if_messages.summary(found),
        head=what_if_messages.HEAD,
        rows=what_if_messages.rows(found),
        csv_url=form.address("/csv"),
    )
    return html(page)


@router.get("/report/what-if/csv")
def what_if_csv(web: Carrel, visitor: Guest, form: Form) -> Response:
    """Replay, and download the result as CSV."""
    found = web.what_if.replay(visitor.identity, form.query())
    return Response(
        csv_of(what_if_messages.csv_rows(found)),
        media_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": attachment("what-if.csv")},
    )
