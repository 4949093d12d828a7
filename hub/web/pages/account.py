"""My account: groups, roles, compiled code, one's own password; the page of one-time links."""

from __future__ import annotations

from collections.abc import Mapping

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import RedirectResponse, Response

from ...accounts.passwords import MIN_LENGTH
from ...config.base_url import SERVICE_PREFIX
from ...errors import CarrelError, InvalidInput
from ..dependencies.bodies import form_fields
from ..dependencies.callers import Carrel
from ..dependencies.context import WebContext, web_of
from ..dependencies.redirects import SEE_OTHER
from ..dependencies.visitors import Form, Guest, html
from ..forms.fields import no_action
from ..security.access import SESSION_COOKIE, Visitor
from .login import is_https

_ACCOUNT = f"{SERVICE_PREFIX}account"
_PASSWORD = f"{SERVICE_PREFIX}password"
_MOST_FIELDS = 10

router = APIRouter(include_in_schema=False)


@router.get("/account")
def account(web: Carrel, visitor: Guest) -> Response:
    return _account(web, visitor)


@router.post("/account")
def change_password(web: Carrel, visitor: Guest, fields: Form) -> Response:
    """Change one's own password; all sign-ins end, this one included."""
    try:
        current, password = fields.get("current", ""), _new_password(fields)
        web.administration.users.change_password(visitor.identity.name, current, password)
    except CarrelError as error:
        return _account(web, visitor, error=error)
    answer = RedirectResponse(f"{_PASSWORD}?done=yes", SEE_OTHER)
    answer.delete_cookie(SESSION_COOKIE, path=SERVICE_PREFIX)
    return answer


@router.post("/account/compile-cache")
def clear_compile_cache(web: Carrel, visitor: Guest, fields: Form) -> Response:
    """Delete all that one's jobs have compiled, or what one job has, depending on the button."""
    request = fields.get("request", "").strip()
    try:
        match fields.get("do", ""):
            case "clear":
                web.compile_caches.clear(visitor.identity)
            case "remove" if request:
                web.compile_caches.clear(visitor.identity, request)
            case _:
                raise no_action()
    except CarrelError as error:
        return _account(web, visitor, error=error)
    return RedirectResponse(f"{_ACCOUNT}#compile-cache-title", SEE_OTHER)


def _account(web: WebContext, visitor: Visitor, *, error: CarrelError | None = None) -> Response:
    who, accounts = visitor.identity, web.administration.own_accounts
    page = web.render_for(
        visitor,
        "account/account.html",
        me=web.membership.me(who),
        cache=web.compile_caches.show(who),
        account=None if accounts is None else accounts.find(who.name),
        least=MIN_LENGTH,
        error=error,
    )
    return html(page, error.http_status if error else 200)


# -- one-time links: without a sign-in ---------------------------------------------------------


@router.get("/password")
def password_form(web: Carrel, done: str = "") -> Response:
    """Show the form, whose code a script reads from behind the ``#`` of the link; or the result."""
    return _form(web, done=bool(done))


@router.post("/password")
async def use_link(request: Request) -> Response:
    """Set the password of the account of a link. The code is the proof: there is no sign-in."""
    web = web_of(request)
    web.caller_access.csrf.check_origin(request)
    fields = dict(form_fields(await request.body(), _MOST_FIELDS))
    return await run_in_threadpool(_use, web, fields)


def _use(web: WebContext, fields: Mapping[str, str]) -> Response:
    code = fields.get("code", "").strip()
    try:
        web.administration.users.use_link(code, _new_password(fields))
    except CarrelError as error:
        return _form(web, code=code, error=error)
    return RedirectResponse(f"{_PASSWORD}?done=yes", SEE_OTHER)


def _form(
    web: WebContext, *, code: str = "", done: bool = False, error: CarrelError | None = None
) -> Response:
    page = web.render("account/password.html", code=code, done=done, least=MIN_LENGTH, error=error)
    return html(page, error.http_status if error else 200)


def _new_password(fields: Mapping[str, str]) -> str:
    """Return the new password. Raises InvalidInput if it is not the same twice."""
    password = fields.get("password", "")
    if password != fields.get("again", ""):
        raise InvalidInput(
            "The two new passwords differ.",
            accepted="Enter the same one twice.",
            field="again",
        )
    return password


def site_address(request: Request) -> str:
    """Return the address of the site in this browser: ``https://jupyter.example.edu``."""
    scheme = "https" if is_https(request) else "http"
    return f"{scheme}://{request.headers.get('host', '')}"
