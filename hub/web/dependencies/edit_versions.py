"""Edit versions: the state that a form or an API call is based on; see ``hub.records.edits``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated

from fastapi import Header, Request, Response
from starlette.concurrency import run_in_threadpool

from ...errors import CarrelError, InvalidInput
from ...records import edits
from ...records.edits import ChangedMeanwhile
from ...schemas import LARGEST
from .context import WebContext, web_of

FIELD = "version"
"""Hidden field of every form in which administrators and teachers edit."""
_TAG = re.compile(r'(?:W/)?"(\d{1,16})"')

IfMatch = Annotated[
    str | None,
    Header(
        alias="If-Match",
        description="The `ETag` of the response that the change is based on: 412 if the data has "
        "changed since. `*` or no header: no check.",
    ),
]


def version_for(
    web: WebContext,
    fields: Mapping[str, str] | None = None,
    error: CarrelError | None = None,
) -> str:
    """Return the version for the forms of a page; call it before the data of the page is read.

    A form that is shown again with the entered values keeps its version, unless it shows changes
    of other users.
    """
    if fields is not None and FIELD in fields and not isinstance(error, ChangedMeanwhile):
        return fields[FIELD]
    return str(web.edit_version())


def base_on_form(fields: Mapping[str, str]) -> None:
    """Reject changes by this form if its objects have changed since its version.

    Raises:
        InvalidInput: the version is not a number.
    """
    given = fields.get(FIELD)
    if given is None:
        return
    if not (given.isascii() and given.isdigit() and int(given[:20]) <= LARGEST):
        raise InvalidInput(
            "The form contains no valid version.", accepted="Reload the page and try again."
        )
    edits.base_on(int(given))


def base_on_header(if_match: str | None) -> None:
    """``base_on_form`` for an API call. Raises InvalidInput."""
    if if_match is None or if_match.strip() == "*":
        return
    tags = [_TAG.fullmatch(part.strip()) for part in if_match.split(",")]
    numbers = [int(tag[1]) for tag in tags if tag is not None]
    if not numbers or len(numbers) < len(tags):
        raise InvalidInput(
            f"If-Match is {if_match[:60]!r}.",
            accepted='Send the ETag of an earlier response, such as "17", or *.',
        )
    edits.base_on(max(numbers))


async def etag(request: Request, response: Response) -> None:
    """Add the version to responses with editable data; it is read before the data."""
    if request.method in {"GET", "HEAD"}:
        version = await run_in_threadpool(web_of(request).edit_version)
        response.headers["ETag"] = f'"{version}"'
