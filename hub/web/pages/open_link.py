"""The page of a link that opens a repository or notebook, and the page that makes such links.

A link only leads to the page: nothing is started or fetched until its form is sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Query
from starlette.responses import RedirectResponse, Response

from ...errors import CarrelError, InvalidInput, NotFound
from ...open_links.material import Material, read_material
from ...records.identity import Identity
from ...records.images import MOST as IMAGE_LENGTH
from ...scheduling.model.snapshot import Kind
from ...scheduling.model.states import LIVE
from ...schemas import RequestOut
from ..dependencies.callers import Carrel
from ..dependencies.context import WebContext
from ..dependencies.redirects import SEE_OTHER
from ..dependencies.visitors import Form, Guest, html
from ..forms.image_choice import image_choices
from ..forms.lab_target import session_for_lab
from ..forms.session import SessionForm, device_choices
from ..html.urls import server_url, wait_url
from ..security.access import Visitor

_MOST = 2000
"""Longer fields are cut; the checks of the material refuse what is near it."""

_DIGITS = 4
_NO_DEVICES = "0"

Text = Annotated[str, Query(max_length=_MOST)]

router = APIRouter(include_in_schema=False, prefix="/open")


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenLink:
    """The fields of a link, as they were given."""

    url: str = ""
    branch: str = ""
    path: str = ""
    group: str = ""
    image: str = ""
    devices: str = ""

    @classmethod
    def filled(cls, fields: Mapping[str, str]) -> OpenLink:
        return cls(**{name: fields.get(name, "").strip()[:_MOST] for name in cls.__slots__})

    def material(self) -> Material:
        """Return what it opens. Raises InvalidInput."""
        return read_material(self.url, self.branch, self.path)

    def page(self, material: Material) -> str:
        """Return the link in its simplest form, relative to the service."""
        named = {
            "url": material.url,
            "branch": material.branch,
            "path": material.path,
            "image": self.image[:IMAGE_LENGTH],
            "devices": self.devices,
            "group": self.group,
        }
        query = urlencode({name: value for name, value in named.items() if value}, safe=":/")
        return f"open?{query}"


def _given(  # one for each parameter of the address
    *,
    url: Text = "",
    branch: Text = "",
    path: Text = "",
    group: Text = "",
    image: Text = "",
    devices: Text = "",
) -> OpenLink:
    fields = {"url": url, "branch": branch, "path": path}
    return OpenLink.filled({**fields, "group": group, "image": image, "devices": devices})


Link = Annotated[OpenLink, Depends(_given)]


@router.get("")
def confirm(web: Carrel, visitor: Guest, link: Link) -> Response:
    """Show what the link opens, with a button that opens it."""
    if link == OpenLink():
        return make_link(web, visitor, link)
    form = SessionForm(
        devices=link.devices[:20] or _NO_DEVICES, group=link.group, image=link.image[:IMAGE_LENGTH]
    )
    return _page(web, visitor, link, form)


@router.post("")
def open_material(web: Carrel, visitor: Guest, fields: Form) -> Response:
    """Start a session, or use the live one, and lead to the material in JupyterLab."""
    who = visitor.identity
    link, form = OpenLink.filled(fields), SessionForm.filled(fields)
    try:
        ticket = web.open_links.issue(who.name, link.material())
        if fields.get("how") == "session":
            form = SessionForm(devices=_NO_DEVICES)
            server = _session_in_use(web, who).server_name
        else:
            server = form.server_name
            web.sessions.start(who, server, form.options())
    except CarrelError as error:
        refused = form.refused(error, web.membership.choices(who))
        return _page(web, visitor, link, refused, status=error.http_status)
    wanted = f"{server_url(who.name, server)}lab?{urlencode({'carrel-open': ticket})}"
    return RedirectResponse(wait_url(server, wanted), SEE_OTHER)


@router.get("/link")
def make_link(web: Carrel, visitor: Guest, link: Link) -> Response:
    """Show the form that makes a link, and the link with a badge."""
    who, made, error = visitor.identity, "", None
    try:
        if link.url:
            material = link.material()
            web.open_links.check(material)
            _check_devices(link.devices)
            made = link.page(material)
    except CarrelError as refused:
        error = refused
    groups = web.group_choices.current(who)
    page = web.render_for(
        visitor,
        "sessions/open_link.html",
        link=link,
        made=made,
        base=web.open_links.base,
        error=error,
        allowed=web.open_links.allowed,
        images=image_choices(web, who, [each.name for each in groups], link.image),
    )
    return html(page, 200 if error is None else error.http_status)


def _check_devices(text: str) -> None:
    if text and not (text.isascii() and text.isdigit() and len(text) <= _DIGITS):
        raise InvalidInput(
            f"{text[:20]!r} is not a number of devices.", accepted="0, 1, …", field="devices"
        )


def _live_sessions(web: WebContext, who: Identity) -> list[RequestOut]:
    return web.requests.requests(who, kind=Kind.SESSION, states=LIVE, mine=True, limit=200)


def _session_in_use(web: WebContext, who: Identity) -> RequestOut:
    """Return the session that the page offered. Raises NotFound if it has ended since."""
    found = session_for_lab(_live_sessions(web, who))
    if found is None:
        raise NotFound("Your session has ended.", accepted="Start another one.")
    return found


def _page(
    web: WebContext,
    visitor: Visitor,
    link: OpenLink,
    form: SessionForm,
    *,
    status: int = 200,
) -> Response:
    """Render the page: what is opened and where, or why it cannot be opened."""
    who = visitor.identity
    material, problem = None, None
    try:
        material = link.material()
        web.open_links.check(material)
    except CarrelError as error:
        problem, status = error, error.http_status
    groups = web.group_choices.current(who)
    live = _live_sessions(web, who)
    if not form.problem:
        beside = SessionForm.beside(live, server_name=form.server_name, wanted="")
        form = replace(form, server_name=beside.server_name)
    page = web.render_for(
        visitor,
        "sessions/open.html",
        link=link,
        material=material,
        problem=problem,
        form=form,
        session=session_for_lab(live),
        groups=groups,
        most_devices=device_choices(groups),
        images=image_choices(web, who, [each.name for each in groups], form.image),
    )
    return html(page, status)
