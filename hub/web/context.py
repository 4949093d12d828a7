"""What every route of the service works with, found again from the request."""

from __future__ import annotations

from dataclasses import dataclass

from jinja2 import Environment
from starlette.requests import Request

from ..commands import Commands
from ..config import SERVICE_PREFIX, Settings
from ..ports.world import Clock
from .gate import Gate
from .seal import Seal
from .sharing import Looks
from .streams import Streams


@dataclass(frozen=True, slots=True, kw_only=True)
class Web:
    """Passed around whole; made once by ``build_app``."""

    commands: Commands
    gate: Gate
    seal: Seal
    streams: Streams
    looks: Looks
    settings: Settings
    templates: Environment
    clock: Clock

    def render(self, template: str, **values: object) -> str:
        """A page or a part of one."""
        return self.templates.get_template(template).render(
            prefix=SERVICE_PREFIX, settings=self.settings, now=self.clock(), **values
        )


def web_of(request: Request) -> Web:
    web: Web = request.app.state.web
    return web
