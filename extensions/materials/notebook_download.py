"""Download one notebook; redirects are not followed, and size and time are limited."""

from __future__ import annotations

import hashlib
import time
from http import HTTPStatus
from typing import Final

import httpx

from ...hub.errors import InvalidInput, NotFound, TooLarge, Unavailable
from ...hub.schemas import MAX_NOTEBOOK_BYTES
from .fetched_files import FetchedFiles

DOWNLOAD_SECONDS: Final = 60.0
_ANSWER_SECONDS: Final = 20.0


def fetch_notebook(url: str, name: str, *, seconds: float = DOWNLOAD_SECONDS) -> FetchedFiles:
    """Return a notebook under a name; whether it is one is not checked.

    Raises:
        NotFound: there is no such file, or it is not public.
        InvalidInput: the address leads to another one.
        TooLarge: it has more than ``MAX_NOTEBOOK_BYTES``.
        Unavailable: the address does not answer, or not within ``seconds``.
    """
    try:
        content = _downloaded(url, time.monotonic() + seconds)
    except httpx.HTTPError as error:
        raise _no_answer(url) from error
    return FetchedFiles(version=hashlib.sha256(content).hexdigest(), files={name: content})


def _downloaded(url: str, until: float) -> bytes:
    content = bytearray()
    with httpx.stream("GET", url, follow_redirects=False, timeout=_ANSWER_SECONDS) as answer:
        if answer.is_redirect:
            raise InvalidInput(
                f"{url} leads to another address, which is not followed.",
                accepted="A link to the address at which the notebook is now.",
            )
        if answer.status_code >= HTTPStatus.INTERNAL_SERVER_ERROR:
            raise _no_answer(url)
        if answer.status_code != HTTPStatus.OK:
            raise NotFound(
                f"There is no public notebook at {url} (status {answer.status_code}).",
                accepted="Check its address.",
            )
        for part in answer.iter_bytes(1 << 16):
            content += part
            if len(content) > MAX_NOTEBOOK_BYTES:
                raise TooLarge(
                    f"{url} has more than {MAX_NOTEBOOK_BYTES >> 20} MiB.",
                    accepted="A notebook without large outputs.",
                )
            if time.monotonic() > until:
                raise _no_answer(url)
    return bytes(content)


def _no_answer(url: str) -> Unavailable:
    return Unavailable(
        f"{url} does not answer.",
        accepted="Try again later. If your session has no internet access, use another one.",
    )
