"""List the product files that a job's POST and a session's start pass: ``python -m tests.walk``.

The real application and services over a SQLite store, with stand-ins for JupyterHub and the
backend. A file counts when a function of it is called between the call and its answer; what is
called once, to put the service together, does not count.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import httpx

from carrel.hub.config.settings import Settings
from carrel.hub.store import open_store
from carrel.hub.web import TokenHolder, build_app
from carrel.spawners.fake import FakeBackend

from .hub.doubles import STUDENT1, Clock, FakeHub, build
from .hub.notebooks import notebook
from .hub.web.fakes import ALL_SCOPES, API, HUB_TOKEN, FakeSignIn
from .source_tree import OUTSIDE_THE_PACKAGE, ROOT
from .stores import new_courses

JOB = {
    "group": "cs101",
    "devices": 1,
    "seconds": 600,
    "notebook": {"name": "train.ipynb", "content": notebook("print(lr)")},
    "parameters": {"lr": 0.05},
}
SESSION = {"group": "cs101", "devices": 1}


def passed(call: Callable[[], object]) -> list[str]:
    """Return the product files with a function that ``call`` runs, in any thread."""
    codes: set[CodeType] = set()

    def note(frame: FrameType, event: str, _arg: Any) -> None:
        if event == "call":
            codes.add(frame.f_code)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    found = {Path(code.co_filename) for code in codes if code.co_name != "<module>"}
    return sorted(
        path.relative_to(ROOT).as_posix()
        for path in found
        if path.is_relative_to(ROOT)
        and path.relative_to(ROOT).parts[0] not in OUTSIDE_THE_PACKAGE
        and ".venv" not in path.parts
    )


def walks() -> dict[str, list[str]]:
    """Return the files on the way from each call to its response."""
    with tempfile.TemporaryDirectory() as folder:
        return {
            "a job: POST /requests": passed(_posts(Path(folder) / "job", "requests", JOB)),
            "a session: POST /sessions/-": passed(
                _posts(Path(folder) / "session", "sessions/-", SESSION)
            ),
        }


def _posts(folder: Path, path: str, body: object) -> Callable[[], None]:
    folder.mkdir()
    clock, hub = Clock(), FakeHub()
    backend = FakeBackend(clock=clock)
    store = open_store(folder / "carrel.db")
    context = build(store, backend, hub, clock, folder)
    sign_in = FakeSignIn()
    sign_in.people["student1-all"] = TokenHolder(identity=STUDENT1, scopes=ALL_SCOPES)
    app = build_app(
        *(context, sign_in, Settings()),
        courses=new_courses(context),
        hub_token=HUB_TOKEN,
        crypt_key="signs",
    )

    async def post() -> None:
        transport = httpx.ASGITransport(app=app)
        headers = {"Authorization": "token student1-all"}
        async with httpx.AsyncClient(transport=transport, base_url="http://carrel") as client:
            answer = await client.post(f"{API}/{path}", json=body, headers=headers)
            assert answer.is_success, answer.text

    return lambda: asyncio.run(post())


def main() -> None:
    for name, files in walks().items():
        print(f"{name}: {len(files)} files")
        for file in files:
            print(f"  {file}")


if __name__ == "__main__":
    main()
