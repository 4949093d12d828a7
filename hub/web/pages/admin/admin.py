"""Pages for administrators: quota tree, nodes and devices, and the audit log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Query
from starlette.responses import RedirectResponse, Response

from ....config.base_url import SERVICE_PREFIX
from ....errors import CarrelError
from ....records.audit import AuditAction, ChangeFilter
from ....records.edits import ChangedMeanwhile
from ....records.identity import require_admin
from ....schemas.admin import (
    ConsequencesOut,
    DrainIn,
    QuarantineIn,
    QuotaOut,
)
from ...dependencies.callers import Carrel
from ...dependencies.context import WebContext
from ...dependencies.edit_versions import version_for
from ...dependencies.redirects import SEE_OTHER
from ...dependencies.visitors import Form, Guest, html
from ...forms import fields as forms_fields
from ...forms.edits import merged
from ...forms.fields import no_action
from ...forms.group import GroupForm
from ...security.access import Visitor

ADMIN = f"{SERVICE_PREFIX}admin"

router = APIRouter(include_in_schema=False, prefix="/admin")


# -- groups and quotas ------------------------------------------------------------------------


@router.get("")
def quotas(
    web: Carrel, visitor: Guest, edit: Annotated[str, Query(max_length=64)] = ""
) -> Response:
    """Show the quota tree with usage; ``edit`` opens a group."""
    require_admin(visitor.identity)
    form = _group_form(web, visitor, edit) if edit else None
    return _quotas(web, visitor, form)


@router.get("/live")
def quotas_live(web: Carrel, visitor: Guest) -> Response:
    """Render the table only, for live updates."""
    tree = web.administration.tree(visitor.identity)
    return html(web.render("admin/tree.html", tree=tree))


@router.post("/groups")
def set_group(web: Carrel, visitor: Guest, fields: Form) -> Response:
    """Preview a change or, when confirmed, save it."""
    who, form = visitor.identity, GroupForm.filled(fields)
    require_admin(who)
    save = fields.get("do") == "save"
    try:
        effect = web.administration.set_group(who, form.name, form.body(), dry_run=not save)
    except ChangedMeanwhile as error:
        return _quotas(web, visitor, _merged(web, visitor, form, error), error=error)
    except CarrelError as error:
        return _quotas(web, visitor, form, error=error, filled=fields)
    if save:
        return RedirectResponse(f"{ADMIN}?edit={form.name}#group-form", SEE_OTHER)
    return _quotas(web, visitor, form, effect=effect, filled=fields)


@router.post("/groups/remove")
def remove_group(web: Carrel, visitor: Guest, fields: Form) -> Response:
    name = fields.get("name", "")
    require_admin(visitor.identity)
    try:
        web.administration.remove_group(visitor.identity, name)
    except CarrelError as error:
        return _quotas(web, visitor, _group_form(web, visitor, name), error=error)
    return RedirectResponse(ADMIN, SEE_OTHER)


def _quotas(
    web: WebContext,
    visitor: Visitor,
    form: GroupForm | None,
    *,
    effect: ConsequencesOut | None = None,
    error: CarrelError | None = None,
    filled: Mapping[str, str] | None = None,
) -> Response:
    version, tree = version_for(web, filled, error), web.administration.tree(visitor.identity)
    page = web.render_for(
        visitor,
        "admin/admin.html",
        version=version,
        tree=tree,
        teachers=sorted({name for group in tree.groups for name in group.teachers}),
        form=form,
        blank=GroupForm(max_devices_per_user="1"),
        models=sorted({device.model for device in web.context.store.devices()}),
        effect=effect,
        error=error,
    )
    return html(page, error.http_status if error else 200)


def _group_form(web: WebContext, visitor: Visitor, name: str) -> GroupForm | None:
    found = _group(web, visitor, name)
    return None if found is None else GroupForm.of(found)


def _merged(
    web: WebContext, visitor: Visitor, form: GroupForm, error: ChangedMeanwhile
) -> GroupForm:
    """Return the form with what the user typed, and the current values of all other fields."""
    now = _group(web, visitor, form.name)
    if now is None:
        return form
    return merged(form, GroupForm.of(now, error.later), GroupForm.of(now))


def _group(web: WebContext, visitor: Visitor, name: str) -> QuotaOut | None:
    tree = web.administration.tree(visitor.identity)
    return next((group for group in tree.groups if group.name == name), None)


# -- nodes and devices ------------------------------------------------------------------------


@router.get("/pool")
def pool(
    web: Carrel, visitor: Guest, target: Annotated[str, Query(max_length=128)] = ""
) -> Response:
    """Show all nodes with their devices; ``target`` opens one of them."""
    require_admin(visitor.identity)
    return _pool(web, visitor, target)


@router.get("/pool/live")
def pool_live(web: Carrel, visitor: Guest) -> Response:
    require_admin(visitor.identity)
    return html(web.render("admin/devices.html", **_devices(web, visitor)))


@router.post("/pool")
def mark(web: Carrel, visitor: Guest, fields: Form) -> Response:
    """Drain, undrain, quarantine or release, and show the result."""
    require_admin(visitor.identity)
    target = fields.get("target", "")
    try:
        until = _until(web, fields) if fields.get("do") in ("preview", "drain") else None
        effect = _marked(web, visitor, target, fields, until)
    except CarrelError as error:
        return _pool(web, visitor, target, error=error, filled=fields)
    filled = None if effect.saved else fields
    return _pool(web, visitor, target, effect=effect, filled=filled, until=until)


def _until(web: WebContext, fields: Mapping[str, str]) -> float | None:
    """Return when a drain stops remaining work; None for never."""
    given = fields.get("until", "").strip()
    zone = fields.get("zone", "").strip()
    return forms_fields.moment(given, zone, web.clock(), "until") if given else None


def _marked(
    web: WebContext, visitor: Visitor, target: str, fields: Mapping[str, str], until: float | None
) -> ConsequencesOut:
    who, do = visitor.identity, fields.get("do", "")
    why = fields.get("why", "").strip()[:500]
    match do:
        case "preview" | "drain":
            body = DrainIn(why=why, until=until)
            return web.administration.drain(who, target, body, dry_run=do == "preview")
        case "undrain":
            return web.administration.undrain(who, target)
        case "quarantine":
            # The service rejects a quarantine without a reason, with the same message everywhere.
            reason = QuarantineIn.model_construct(why=why)
            return web.administration.quarantine(who, target, reason)
        case "release":
            return web.administration.release(who, target)
        case _:
            raise no_action()


def _pool(
    web: WebContext,
    visitor: Visitor,
    target: str,
    *,
    effect: ConsequencesOut | None = None,
    error: CarrelError | None = None,
    filled: Mapping[str, str] | None = None,
    until: float | None = None,
) -> Response:
    page = web.render_for(
        visitor,
        "admin/pool.html",
        version=version_for(web, filled, error),
        target=target,
        until=until,
        effect=effect,
        error=error,
        filled=filled or {},
        **_devices(web, visitor),
    )
    return html(page, error.http_status if error else 200)


def _devices(web: WebContext, visitor: Visitor) -> dict[str, object]:
    found = web.pool.pool(visitor.identity)
    nodes = web.administration.nodes(visitor.identity)
    return {
        "nodes": nodes,
        "reservations": found.reservations,
        "devices": {
            node.name: [each for each in found.devices if each.node == node.name] for node in nodes
        },
    }


# -- audit log --------------------------------------------------------------------------------


@router.get("/audit")
def audit(
    *,
    web: Carrel,
    visitor: Guest,
    who: Annotated[str, Query(max_length=255)] = "",
    action: Annotated[str, Query(max_length=32)] = "",
    target: Annotated[str, Query(max_length=128)] = "",
    before: Annotated[int | None, Query(ge=1, le=2**53)] = None,
) -> Response:
    """Show the audit log, newest first; every filter and every page has its own URL."""
    found = web.administration.audit_log.entries(
        visitor.identity, by=who.strip(), action=action, target=target.strip(), before=before
    )
    chosen = {"who": who.strip(), "action": action, "target": target.strip()}
    older = [*((name, value) for name, value in chosen.items() if value)]
    page = web.render_for(
        visitor,
        "admin/audit.html",
        found=found,
        chosen=chosen,
        actions=list(AuditAction),
        log=None if web.log is None else web.log.state(visitor.identity),
        verified=next(
            iter(web.context.store.changes(ChangeFilter(action=AuditAction.LOG_VERIFY, limit=1))),
            None,
        ),
        publishes=bool(web.settings.log_heads_file or web.settings.log_heads_command),
        older=f"{ADMIN}/audit?" + urlencode([*older, ("before", found.next)]),
    )
    return html(page)
