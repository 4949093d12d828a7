"""Programs of the account: what each has used, a new one, revocation, and approval of jobs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf

from fastapi import APIRouter
from starlette.responses import RedirectResponse, Response

from ...config.base_url import SERVICE_PREFIX
from ...errors import CarrelError, InvalidInput
from ...schemas.base import LARGEST
from ...schemas.programs.bodies import LONGEST_DAYS, ApprovalOut, NewProgramOut, ProgramIn
from ..dependencies.callers import Carrel
from ..dependencies.context import WebContext
from ..dependencies.redirects import SEE_OTHER
from ..dependencies.visitors import Form, Guest, html
from ..forms.fields import no_action
from ..security.access import Visitor

PROGRAMS = f"{SERVICE_PREFIX}programs"
_LONGEST = 64

router = APIRouter(include_in_schema=False, prefix="/programs")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramForm:
    """The fields of a new program as entered, so that they can be shown again with an error."""

    name: str = ""
    hours: str = "5"
    approve_hours: str = "1"
    days: str = "30"
    reads: str = ""

    @classmethod
    def filled(cls, fields: Mapping[str, str]) -> ProgramForm:
        names = ("name", "hours", "approve_hours", "days", "reads")
        return cls(**{name: fields.get(name, "").strip()[:_LONGEST] for name in names})

    def body(self) -> ProgramIn:
        """Return the body of the request. Raises InvalidInput with the field."""
        if not self.name:
            raise InvalidInput("The name is missing.", accepted="Such as tuner.", field="name")
        hours = _number(self.hours, "hours")
        if not hours:
            raise InvalidInput(
                "The budget is 0.", accepted="Device-hours above 0, such as 5.", field="hours"
            )
        days = _number(self.days, "days")
        if not (days.is_integer() and 1 <= days <= LONGEST_DAYS):
            raise InvalidInput(
                f"{self.days} is not a number of days.",
                accepted=f"1 to {LONGEST_DAYS}.",
                field="days",
            )
        approve = _number(self.approve_hours, "approve_hours") if self.approve_hours else None
        return ProgramIn(
            name=self.name[:40],
            device_seconds=hours * 3600,
            approve_above=None if approve is None else approve * 3600,
            days=int(days),
            reads_owner=self.reads == "yes",
        )


@router.get("")
def programs(web: Carrel, visitor: Guest) -> Response:
    return _page(web, visitor)


@router.post("")
def change_programs(web: Carrel, visitor: Guest, fields: Form) -> Response:
    """Create or revoke a program, or approve or refuse a job, depending on the button."""
    who, name = visitor.identity, fields.get("id", "")[:_LONGEST]
    form = ProgramForm.filled(fields)
    try:
        match fields.get("do", ""):
            case "create":
                # Shown in the answer, not after a redirect: the token is not stored.
                return _page(web, visitor, made=web.programs.add(who, form.body()))
            case "revoke":
                web.programs.revoke(who, name)
            case "approve":
                web.programs.approve(who, name)
            case "refuse":
                web.termination.cancel(who, name, "not approved")
            case _:
                raise no_action()
    except CarrelError as error:
        return _page(web, visitor, error=error, form=form if error.field else None)
    return RedirectResponse(PROGRAMS, SEE_OTHER)


def _page(
    web: WebContext,
    visitor: Visitor,
    *,
    made: NewProgramOut | None = None,
    error: CarrelError | None = None,
    form: ProgramForm | None = None,
) -> Response:
    who = visitor.identity
    own = web.programs.of(who)
    others = [each for each in web.programs.all(who) if each.owner != who.name] if who.admin else []
    approvals = [
        ApprovalOut(request=web.requests.request(who, name), cancelled_at=at)
        for name, at in web.programs.unapproved(who).items()
    ]
    page = web.render_for(
        visitor,
        "account/programs.html",
        programs=own,
        others=others,
        approvals=approvals,
        allowed=web.programs.allowed_groups(who),
        made=made,
        error=error,
        form=form or ProgramForm(),
        opened=form is not None,
    )
    return html(page, error.http_status if error else 200)


def _number(text: str, field: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = inf
    if not 0 <= number <= LARGEST / 3600:
        raise InvalidInput(
            f"{text!r} is not a number.", accepted="A number from 0 on, such as 1.5.", field=field
        )
    return number
