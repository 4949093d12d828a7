"""The page of secrets: names and last uses, never values."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import RedirectResponse, Response

from ...config.base_url import SERVICE_PREFIX
from ...errors import CarrelError
from ...schemas.secrets.bodies import SecretIn
from ..dependencies.callers import Carrel
from ..dependencies.context import WebContext
from ..dependencies.redirects import SEE_OTHER
from ..dependencies.visitors import Form, Guest, html
from ..forms.fields import no_action
from ..security.access import Visitor

_SECRETS = f"{SERVICE_PREFIX}secrets"

router = APIRouter(include_in_schema=False, prefix="/secrets")


@router.get("")
def secrets(web: Carrel, visitor: Guest) -> Response:
    return _page(web, visitor)


@router.post("")
def change(web: Carrel, visitor: Guest, fields: Form) -> Response:
    """Set or remove a secret, depending on the button."""
    who, name, group = visitor.identity, fields.get("name", "").strip(), fields.get("group", "")
    try:
        match fields.get("do", ""):
            case "set":
                # Browsers send the line ends of a text field as CR LF.
                value = fields.get("value", "").replace("\r\n", "\n")
                web.secrets.put(who, name, SecretIn(value=value, group=group))
            case "remove":
                web.secrets.remove(who, name, group)
            case _:
                raise no_action()
    except CarrelError as error:
        return _page(web, visitor, error, name=name, group=group)
    return RedirectResponse(_SECRETS, SEE_OTHER)


def _page(
    web: WebContext,
    visitor: Visitor,
    error: CarrelError | None = None,
    *,
    name: str = "",
    group: str = "",
) -> Response:
    """Render the page; a refused value is not shown again."""
    settable = web.secrets.settable_groups(visitor.identity)
    page = web.render_for(
        visitor,
        "account/secrets.html",
        secrets=web.secrets.all(visitor.identity).secrets,
        groups=settable,
        error=error,
        name=name[:80],
        group=group,
    )
    return html(page, error.http_status if error else 200)
