"""Bodies of calls for secrets: only one for an attempt contains values."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, JsonValue, WithJsonSchema

from ..base import In, Out


class SecretIn(In):
    """Body of ``PUT /api/v1/secrets/{name}``.

    The type of ``value`` is checked by the service, because the error of a schema would repeat it.
    """

    value: Annotated[
        JsonValue,
        WithJsonSchema({"type": "string", "description": "At most 64 KiB."}),
        Field(repr=False),
    ]
    group: Annotated[
        str, Field(max_length=64, description="The group that it is for; by default only you.")
    ] = ""


class SecretOut(Out):
    """A secret without its value."""

    name: str
    group: str = ""
    """The group whose members may use it; empty for one of yours."""
    set_by: str
    set_at: float
    used_at: float | None = None
    used_by: str = ""
    """Who used it last; of a secret of a group only for those who may set it."""
    used_in: str = ""
    """The session or job of the last use, likewise."""


class SecretsOut(Out):
    secrets: list[SecretOut]


class SecretValuesOut(Out):
    """The values that an attempt asked for."""

    files: Annotated[dict[str, str], Field(repr=False)] = {}
    """Values by file name, below ``$CARREL_SECRETS``."""
    variables: Annotated[dict[str, str], Field(repr=False)] = {}
    """Values by environment variable."""
    missing: str = ""
    """Why the attempt must fail: a secret that it needs is missing."""


class SecretTicketOut(Out):
    """A token with which a session fetches its values once; empty if it uses no secret."""

    ticket: Annotated[str, Field(repr=False)] = ""
