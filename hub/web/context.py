"""What every route of the service works with, found again from the request."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import ParamSpec, TypeVar

from jinja2 import Environment
from starlette.requests import Request

from ...courses.desk import CourseDesk
from ..administration import Administration
from ..changing import Changing
from ..claims import Claims
from ..commands import Commands
from ..config import Settings
from ..extending import Extending
from ..figures import Figures
from ..idling import Idling
from ..ports.world import Clock, Identity
from ..quotes import Quotes
from .choices import GroupBook
from .gate import Gate
from .metrics import Metrics
from .readiness import Readiness
from .seal import Seal
from .sharing import Looks
from .streams import Streams


@dataclass(frozen=True, slots=True, kw_only=True)
class Web:
    """Passed around whole; made once by ``build_app``."""

    commands: Commands
    claims: Claims
    changing: Changing
    extending: Extending
    quotes: Quotes
    idling: Idling
    administration: Administration
    courses: CourseDesk
    figures: Figures
    metrics: Metrics
    readiness: Readiness
    groups: GroupBook
    gate: Gate
    seal: Seal
    streams: Streams
    looks: Looks
    settings: Settings
    templates: Environment
    clock: Clock

    def render(self, template: str, **values: object) -> str:
        """A page or a part of one."""
        given = values.get("who")
        who = given if isinstance(given, Identity) else None
        teaches = self.figures.teaches(who) if who else []
        runs_courses = who and (who.admin or teaches or self.courses.grades_somewhere(who))
        return self.templates.get_template(template).render(
            settings=self.settings,
            now=self.clock(),
            teaches=teaches,
            runs_courses=runs_courses,
            **values,
        )


def web_of(request: Request) -> Web:
    web: Web = request.app.state.web
    return web


P = ParamSpec("P")
T = TypeVar("T")


def of_one_moment(route: Callable[P, T]) -> Callable[P, T]:
    """For a page that only reads: all of it is read and drawn in one transaction.

    Not for one that asks the hub for anything: see ``Store.together``.
    """

    @wraps(route)
    def reads(*given: P.args, **named: P.kwargs) -> T:
        web = named["web"]
        assert isinstance(web, Web), "routes are called with their arguments by name"
        with web.commands.store.together():
            return route(*given, **named)

    return reads
