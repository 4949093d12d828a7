"""REST routes for secrets; no answer contains a value."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query

from ...schemas.secrets.bodies import SecretIn, SecretOut, SecretsOut
from ..dependencies.bodies import json_body
from ..dependencies.callers import Carrel, Reader, Writer
from ..openapi.description import ERRORS, body_of

SecretName = Annotated[str, Path(description="Such as `HF_TOKEN`.", max_length=200)]
Group = Annotated[str, Query(description="For a secret of a group.", max_length=64)]

router = APIRouter(responses=ERRORS, tags=["secrets"])


@router.get("/secrets", summary="List secrets")
def list_secrets(web: Carrel, who: Reader) -> SecretsOut:
    """Your secrets and those of your groups: names, when they were set, and the last use."""
    return web.secrets.all(who)


@router.put("/secrets/{name}", summary="Set a secret", openapi_extra=body_of(SecretIn))
def set_secret(
    web: Carrel,
    who: Writer,
    name: SecretName,
    body: Annotated[SecretIn, Depends(json_body(SecretIn))],
) -> SecretOut:
    """Replaces one of the same name. Secrets of a group are set by its teachers and
    administrators, and used by its members. Jobs and sessions get the value at their start."""
    return web.secrets.put(who, name, body)


@router.delete("/secrets/{name}", status_code=204, summary="Remove a secret")
def remove_secret(web: Carrel, who: Writer, name: SecretName, group: Group = "") -> None:
    """Jobs that use it and have not started fail with the cause `missing_secret`."""
    web.secrets.remove(who, name, group)
