"""The OpenAPI description, with the bodies that routes parse themselves."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from ...comparison.schemas import ComparisonIn
from ...provenance.rerun import RerunIn
from ...schemas import (
    ChangeIn,
    ErrorOut,
    EventsIn,
    ExtendIn,
    JobIn,
    JoinIn,
    KernelsIn,
    OpenSessionIn,
    QuotesIn,
    SessionIn,
    StartedIn,
    StopIn,
)
from ...schemas.admin import DrainIn, GroupIn, PeopleImportIn, PersonIn, PersonRolesIn, QuarantineIn
from ...schemas.announcements import AnnouncementIn
from ...schemas.calendar import ReservationIn, TermIn
from ...schemas.courses import (
    CloneIn,
    CourseIn,
    ExtensionIn,
    OutageIn,
    PrefixIn,
    ReleaseIn,
    RosterIn,
    SubmitIn,
)
from ...schemas.coursework.leaderboards import LeaderboardIn, WeightsIn
from ...schemas.coursework.official_checks import OfficialCheckRuleIn
from ...schemas.coursework.rehearsals import RehearsalIn, RehearsalScheduleIn
from ...schemas.errors import PROBLEM_TYPE
from ...schemas.gallery import GalleryForkIn, GalleryPublishIn, GalleryRunIn
from ...schemas.grading import (
    FeedbackIn,
    GradeIn,
    ManualPointsIn,
    RegradeIn,
    RegradeReplyIn,
    VerdictIn,
)
from ...schemas.images import PinIn
from ...schemas.notifications.bodies import ChannelEventsIn, ChannelIn, DeliveryTestIn
from ...schemas.programs.bodies import ProgramIn
from ...schemas.resume import HaltIn, ResumeIn
from ...schemas.schedules import ScheduleChangeIn, ScheduleIn, ScheduleRunIn
from ...schemas.secrets.bodies import SecretIn
from .examples import ANSWER_EXAMPLES, BODY_EXAMPLES, problem_example

_BODIES: tuple[type[BaseModel], ...] = (
    AnnouncementIn,
    ChangeIn,
    ChannelEventsIn,
    ChannelIn,
    CloneIn,
    ComparisonIn,
    CourseIn,
    DeliveryTestIn,
    DrainIn,
    EventsIn,
    ExtendIn,
    ExtensionIn,
    FeedbackIn,
    ManualPointsIn,
    RegradeIn,
    RegradeReplyIn,
    GalleryForkIn,
    GalleryPublishIn,
    GalleryRunIn,
    GradeIn,
    GroupIn,
    HaltIn,
    JobIn,
    JoinIn,
    KernelsIn,
    LeaderboardIn,
    OfficialCheckRuleIn,
    OpenSessionIn,
    OutageIn,
    PeopleImportIn,
    PersonIn,
    PersonRolesIn,
    PinIn,
    PrefixIn,
    ProgramIn,
    QuarantineIn,
    QuotesIn,
    RehearsalIn,
    RehearsalScheduleIn,
    ReleaseIn,
    ReservationIn,
    RerunIn,
    ResumeIn,
    RosterIn,
    ScheduleChangeIn,
    ScheduleIn,
    ScheduleRunIn,
    SecretIn,
    SessionIn,
    StartedIn,
    StopIn,
    SubmitIn,
    TermIn,
    VerdictIn,
    WeightsIn,
)
_REF = "#/components/schemas/{model}"

ABOUT = """
Notebook sessions and batch notebook jobs on one shared pool of devices.

**Authentication.** Browsers sign in through JupyterHub. Scripts send a JupyterHub token,
`Authorization: token …`, with the scopes `access:services!service=carrel` and
`custom:carrel:read` (to read) or `custom:carrel:submit` (to change). The token of a *program* has a
budget of its own: it may submit, read and cancel the jobs of that program only. A call of a browser
that changes something also needs the form token of the page, in `X-Carrel-CSRF`.

**Times** are seconds since the epoch (UTC), durations are seconds.

**Errors** are `application/problem+json` (RFC 9457). `code` is stable and meant for programs,
`detail` is a sentence for people, and `accepted` may say which values are accepted.
`request_id` is the id of the call, as in the header `X-Request-ID` of every answer; a
well-formed id that you send is kept.

**Versions.** Objects that administrators and teachers edit are answered with an `ETag`. A change
that sends it as `If-Match` is refused with 412 (`changed_meanwhile`) if the object has changed
since; `detail` says by whom. Without `If-Match` the last change wins.

**Limits.** A user who makes too many calls gets 429 with the seconds to wait in `Retry-After`. The
refused call had no effect. Follow an event stream instead of polling.

**Authorization.** Objects that you may not see are answered with 404, as if they did not exist.
Teachers see the requests of the groups they teach, administrators all requests.

**Terms.** A *request* is a session, a kernel, a job or a grading run. It waits in one queue
until it is granted a *lease* on named *devices*, and ends with a *cause*.
"""


_PROBLEMS = {
    400: "A value is malformed; the answer names it and what is accepted.",
    401: "Not signed in.",
    403: "Signed in, but not permitted; or a cross-site call.",
    404: "It does not exist, or you may not see it.",
    409: "Refused, or not possible in the current state.",
    412: "The object has changed since the version in `If-Match`.",
    413: "The body, or a part of it, is too large.",
    429: "Too many calls: wait for the seconds in `Retry-After`.",
    503: "A required service does not answer; try again.",
}
_SECURITY = {
    "token": {
        "type": "apiKey",
        "in": "header",
        "name": "Authorization",
        "description": "`token …`, with a token of JupyterHub.",
    },
    "cookie": {
        "type": "apiKey",
        "in": "cookie",
        "name": "carrel-session",
        "description": "The cookie of a signed-in browser.",
    },
}


def problems(*statuses: int) -> dict[int | str, dict[str, object]]:
    """Return the errors that an operation may return."""
    schema = {"$ref": _REF.format(model=ErrorOut.__name__)}
    return {
        status: {
            "description": _PROBLEMS[status],
            "content": {PROBLEM_TYPE: {"schema": schema, "example": problem_example(status)}},
        }
        for status in statuses
    }


def body_of(model: type[BaseModel]) -> dict[str, Any]:
    """Return the description of the body of an operation."""
    content: dict[str, Any] = {"schema": {"$ref": _REF.format(model=model.__name__)}}
    if model.__name__ in BODY_EXAMPLES:
        content["examples"] = BODY_EXAMPLES[model.__name__]
    return {"requestBody": {"required": True, "content": {"application/json": content}}}


def describe(app: FastAPI) -> None:
    """Add the models of bodies, the examples and the security schemes to the description."""

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            made = get_openapi(
                title=app.title, version=app.version, description=ABOUT, routes=app.routes
            )
            schemas = made.setdefault("components", {}).setdefault("schemas", {})
            _, found = models_json_schema(
                [(model, "validation") for model in _BODIES], ref_template=_REF
            )
            schemas.update(found["$defs"])
            _, answers = models_json_schema([(ErrorOut, "serialization")], ref_template=_REF)
            schemas.update(answers["$defs"])
            for unused in ("HTTPValidationError", "ValidationError"):
                schemas.pop(unused, None)
            made["components"]["securitySchemes"] = _SECURITY
            for path in made["paths"].values():
                for operation in path.values():
                    _complete(operation)
            app.openapi_schema = made
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]  # FastAPI's documented way


def _complete(operation: dict[str, Any]) -> None:
    # FastAPI's own error; ours replaces it.
    operation["responses"].pop("422", None)
    if operation["operationId"].startswith(("health", "site_key")):
        operation["responses"] = {"200": operation["responses"]["200"]}
    else:
        own = {"hub", "attempts"} & set(operation["tags"])
        operation["security"] = [{"token": []}] if own else [{"token": []}, {"cookie": []}]
    for response in operation["responses"].values():
        content = response.get("content", {}).get("application/json", {})
        name = content.get("schema", {}).get("$ref", "").rpartition("/")[2]
        if name in ANSWER_EXAMPLES:
            content["example"] = ANSWER_EXAMPLES[name]


ERRORS = problems(400, 401, 403, 404, 409, 412, 413, 429, 503)
