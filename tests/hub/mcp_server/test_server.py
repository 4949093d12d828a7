"""The MCP server over a real service, driven by the client of the official library."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import httpx
import httpx2
import pytest
import uvicorn
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import TextContent, TextResourceContents

from carrel.hub.mcp_server import server as mcp_server
from carrel.hub.mcp_server.bearer import AT_ONCE as MOST_OPEN
from carrel.hub.mcp_server.calls import client
from carrel.hub.mcp_server.tools import AT_ONCE, LARGEST, Tools
from carrel.hub.requests.jobs import JobService
from carrel.hub.scheduling.model.plan import Start
from carrel.hub.web.app import Server

from ...fake_service import eventually
from ...ports import free_port
from ..doubles import STUDENT1
from ..notebooks import notebook
from ..requests.samples import job
from ..web.fakes import API
from ..web.site import Site, site

__all__ = ["site"]

SMALL = {"command": ["true"], "group": "cs101", "devices": 1, "minutes": 30}


@dataclass(frozen=True)
class Program:
    """A site with one program, and the answers of its tools."""

    site: Site
    url: str
    token: str

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Client]:
        async with Client(mcp_server.build(self.url, self.token)) as connected:
            yield connected

    def run(self, work: Callable[[Client], Awaitable[None]]) -> None:
        async def connected() -> None:
            async with self.client() as found:
                await work(found)

        asyncio.run(connected())


@pytest.fixture
def program(site: Site) -> Iterator[Program]:
    store = site.context.store
    store.put_group(replace(store.group("cs101"), programs=True))
    server = Server.of(site.world.app, port=(port := free_port()))
    thread = threading.Thread(target=server.run)
    thread.start()
    eventually(lambda: server.started)
    body = {"name": "tuner", "device_seconds": 3600, "approve_above": 2700}
    token = site.api(STUDENT1).post(f"{API}/programs", json=body).json()["token"]
    yield Program(site, f"http://127.0.0.1:{port}", token)
    server.should_exit = True
    thread.join()


async def call(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """Return the answer of a tool that succeeds."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    assert isinstance(result.structured_content, dict)
    return result.structured_content


async def refusal(client: Client, tool: str, **arguments: Any) -> str:
    """Return the error of a tool that is refused."""
    result = await client.call_tool(tool, arguments)
    (content,) = result.content
    assert result.is_error
    assert isinstance(content, TextContent)
    return content.text.removeprefix(f"Error executing tool {tool}: ")


def test_a_session_over_stdio_stays_within_its_budget(program: Program) -> None:
    async def session() -> None:
        parameters = StdioServerParameters(
            command=sys.executable,
            args=["-m", "carrel.hub.cli", "mcp"],
            env={**os.environ, "CARREL_URL": program.url, "CARREL_TOKEN": program.token},
        )
        async with Client(parameters) as client:
            listed = {tool.name for tool in (await client.list_tools()).tools}
            tools = {"submit", "status", "logs", "outputs", "quote", "cancel", "pool"}
            assert listed == tools

            quote = await call(client, "quote", group="cs101", devices=1, minutes=30)
            assert (quote["within_budget"], quote["needs_approval"]) == (True, False)
            # The text of a notebook is JSON, which the library parses unasked.
            sent = {"command": [], "notebook": notebook("print(1)")}
            dry = await call(client, "submit", **SMALL | sent, dry_run=True)
            assert dry["cost"]["device_seconds"] == 1800
            dry = await call(client, "submit", **SMALL, dry_run=True)
            assert (dry["submitted"], dry["cost"]["device_seconds"]) == (False, 1800)
            made = await call(client, "submit", **SMALL)
            name = made["job"]["id"]
            assert made["program"]["left"] == 1800
            assert made["cost"] == {"device_seconds": 1800, "needs_approval": False}
            refused = await refusal(client, "submit", **SMALL | {"minutes": 31})
            assert "has 0.5 of its 1.0 left" in refused

            waiting = asyncio.create_task(call(client, "status", job=name, wait_seconds=30))
            ended = await call(client, "cancel", job=name, reason="Not needed.")
            assert ended["state"] == "cancelled"
            assert (await waiting)["ended"]
            approve = await call(client, "submit", **SMALL | {"minutes": 46})
            assert approve["cost"]["needs_approval"]

    asyncio.run(session())


def test_a_repetition_with_the_same_key_returns_the_first_job(program: Program) -> None:
    async def session(client: Client) -> None:
        # The first reserves more than half of the budget.
        first = await call(client, "submit", **SMALL | {"minutes": 40}, key="k")
        again = await call(client, "submit", **SMALL | {"minutes": 40}, key="k")
        assert again["job"]["id"] == first["job"]["id"]
        assert again["cost"] == {"device_seconds": 2400, "needs_approval": False}

    program.run(session)


def test_results_are_read_in_parts(program: Program) -> None:
    site = program.site
    made = program_job(program)
    store, now = site.context.store, site.clock.now
    start = Start(request_id=made, devices=("SIM-0",))
    (lease,) = store.grant([start], now=now, lease_seconds=30)
    store.launch(lease.id, now=now)
    folder = site.context.files.attempt_folder(made, 1)
    (folder / "files").mkdir(parents=True)
    (folder / "files" / "big.txt").write_text("é" * LARGEST)
    (folder / "files" / "model.bin").write_bytes(b"\xff\x00")
    (folder / "log.txt").write_bytes(b"line\n" * 10_000)

    async def session(client: Client) -> None:
        listed = await call(client, "outputs", job=made)
        assert {each["name"]: each["bytes"] for each in listed["files"]} == {
            "big.txt": 2 * LARGEST,
            "model.bin": 2,
        }
        text, offset, more = "", 0, True
        while more:
            part = await call(
                client, "outputs", job=made, file="big.txt", offset=offset, limit=LARGEST
            )
            text, offset, more = text + part["text"], part["next_offset"], part["more"]
            assert (f"offset={offset}" in part["note"]) is more
        assert text == "é" * LARGEST
        assert (await call(client, "outputs", job=made, file="model.bin"))["base64"] == "/wA="
        log = await call(client, "logs", job=made, limit=7)
        assert (log["text"], log["next_offset"], log["more"]) == ("line\nli", 7, True)
        assert "offset=7" in log["note"]
        assert str(LARGEST) in await refusal(client, "logs", job=made, limit=LARGEST + 1)
        assert "no-such.txt" in await refusal(client, "outputs", job=made, file="no-such.txt")

    program.run(session)


def program_job(program: Program) -> str:
    api = program.site.world.program(program.token)
    body = {"group": "cs101", "devices": 1, "seconds": 1800, "command": ["true"]}
    return str(api.post(f"{API}/requests", json=body).json()["id"])


def test_another_job_and_malformed_arguments_are_refused_with_a_sentence(program: Program) -> None:
    foreign = JobService(program.site.context).submit(STUDENT1, job()).id

    async def session(client: Client) -> None:
        for tool in ("status", "logs", "outputs", "cancel"):
            texts = {
                (await refusal(client, tool, job=name)).replace(name, "JOB")
                for name in (foreign, "j-nothing")
            }
            assert texts == {"There is no request JOB."}
        for kind in ("jobs", "receipts"):
            with pytest.raises(MCPError, match="There is no request"):
                await client.read_resource(f"carrel://{kind}/{foreign}")
        for arguments, said in (
            ({"devices": -1}, "devices"),
            ({"devices": "many"}, "devices"),
            ({"minutes": 0}, "minutes"),
            ({"command": []}, "command"),
            ({"notebook": "{"}, "notebook"),
            ({"group": "lab"}, "group"),
        ):
            assert said in (await refusal(client, "submit", **SMALL | arguments)).lower(), said
        assert "pattern" in await refusal(client, "logs", job="../me")
        page = await client.read_resource("carrel://program")
        (content,) = page.contents
        assert isinstance(content, TextResourceContents)
        assert json.loads(content.text)["name"] == "tuner"

    program.run(session)


def test_a_flood_is_refused_with_when_to_go_on(program: Program) -> None:
    made = program_job(program)
    web = program.site.world.app.state.web
    name = program.site.context.store.programs("student1")[0].id

    async def session() -> None:
        tools = Tools(client(program.url, program.token))
        waits = [asyncio.create_task(tools.status(made, 20)) for _ in range(AT_ONCE)]
        await asyncio.sleep(0)  # all of them have begun
        with pytest.raises(ToolError, match=r"in progress.* at the earliest in 1 s"):
            await tools.status(made)
        # By HTTP: the application works in one event loop at a time.
        owner = {"Authorization": "token student1"}
        async with httpx.AsyncClient(base_url=program.url, headers=owner) as http:
            (await http.delete(f"{API}/requests/{made}")).raise_for_status()
        assert all(each["ended"] for each in await asyncio.gather(*waits))
        while web.call_budgets.admit(f"program {name}") == 0:
            pass
        with pytest.raises(ToolError, match=r"Wait \d+ s and try again"):
            await tools.pool()
        await tools.client.close()

    asyncio.run(session())


def test_a_revoked_program_is_told_so(program: Program) -> None:
    program.site.api(STUDENT1).delete(f"{API}/programs/tuner")

    async def session(client: Client) -> None:
        said = await refusal(client, "submit", **SMALL)
        assert said.startswith("The token of the program tuner was revoked.")

    program.run(session)


def test_http_demands_the_token_and_refuses_other_origins(program: Program) -> None:
    port = free_port()
    app = mcp_server.http_app(program.url, program.token, host="127.0.0.1", port=port)
    server = uvicorn.Server(uvicorn.Config(app, port=port, log_config=None))
    thread = threading.Thread(target=server.run)
    thread.start()
    eventually(lambda: server.started)
    url = f"http://127.0.0.1:{port}/mcp"
    bearer = {"Authorization": f"Bearer {program.token}"}
    for headers, status in (
        ({}, 401),
        ({"Authorization": "Bearer other"}, 401),
        ({"Authorization": f"token {program.token}"}, 401),
        (bearer | {"Host": "evil.example"}, 421),
        (bearer | {"Origin": "http://evil.example"}, 403),
    ):
        body = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        accept = {"Accept": "application/json, text/event-stream"}
        answer = httpx.post(url, json=body, headers=accept | headers)
        assert answer.status_code == status, (headers, answer.text)
    eventually(lambda: app.open_calls == 0)  # a call is counted until just after its answer
    app.open_calls = MOST_OPEN
    flooded = httpx.post(url, json={}, headers=bearer)
    assert (flooded.status_code, flooded.headers["retry-after"]) == (429, "1")
    app.open_calls = 0

    async def session() -> None:
        async with (
            httpx2.AsyncClient(headers=bearer) as http,
            Client(streamable_http_client(url, http_client=http)) as connected,
        ):
            assert (await call(connected, "quote", group="cs101"))["within_budget"]

    asyncio.run(session())
    server.should_exit = True
    thread.join()
