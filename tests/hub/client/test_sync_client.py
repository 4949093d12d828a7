"""The client in an event loop: the same calls, and the parts that both clients share."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator

import pytest

from carrel.hub.client import AsyncClient, Client
from carrel.hub.errors import OverMaximum
from carrel.hub.schemas import JobIn, NotebookIn, RequestOut

from ...fake_service import FakeService

JOB = JobIn(
    group="cs101", notebook=NotebookIn(name="a.ipynb", content="{}"), idempotency_key="key-1"
)


@pytest.fixture
def service() -> Iterator[FakeService]:
    with FakeService() as fake:
        yield fake


def calls(client: type) -> dict[str, list[str]]:
    """Return the public methods with their parameters."""
    return {
        name: list(inspect.signature(each).parameters)
        for name, each in inspect.getmembers(client, inspect.isfunction)
        if not name.startswith("_")
    }


def test_both_clients_have_the_same_calls() -> None:
    assert calls(Client) == calls(AsyncClient)


def test_an_event_loop_submits_follows_and_reads(service: FakeService) -> None:
    async def story() -> list[str]:
        async with AsyncClient(service.site, "a-token") as client:
            job = await client.submit(JOB)
            service.add_event(job.id, "cell_finished", index=0)
            service.logs[job.id] = b"one\n"
            service.files[job.id] = {"plots/a b.png": b"picture"}
            seen: list[str] = []
            async for item in client.follow(job.id):
                seen.append(item.state if isinstance(item, RequestOut) else item.kind)
                if seen == ["cell_finished", "queued"]:
                    service.change(job.id, state="succeeded", ended=True)
            seen += [(await client.log(job.id)).content.decode()]
            seen += [file.name for file in (await client.files(job.id)).files]
            seen += [part.decode() async for part in client.file(job.id, "plots/a b.png")]
            return seen

    assert asyncio.run(story()) == [
        "cell_finished", "queued", "succeeded", "one\n", "plots/a b.png", "picture",
    ]  # fmt: skip  # grouped by meaning


def test_a_lost_response_is_retried_in_an_event_loop_too(service: FakeService) -> None:
    async def submit() -> RequestOut:
        async with AsyncClient(service.site, "x") as client:
            return await client.submit(JOB)

    service.drop_next = ["POST"]
    assert list(service.requests) == [asyncio.run(submit()).id] or len(service.requests) == 1
    assert len(service.called("POST", "requests")) == 2


def test_an_abandoned_stream_is_closed_immediately(service: FakeService) -> None:
    async def leave() -> None:
        async with AsyncClient(service.site, "x") as client:
            stream = client.follow("j-1")
            await anext(stream)
            await asyncio.wait_for(stream.aclose(), 30)

    service.add("j-1")
    asyncio.run(leave())


def test_the_blocking_client_works_where_a_loop_runs_as_in_a_notebook(
    service: FakeService,
) -> None:
    async def kernel() -> str:
        with Client(service.site, "x") as client:
            return client.me().name

    assert asyncio.run(kernel()) == "anna"


@pytest.mark.parametrize("problems", [True, False])
def test_refusals_are_understood_in_both_forms(service: FakeService, problems: bool) -> None:
    service.problems = problems
    service.refuse = (409, {"code": "over_maximum", "message": "Too many.", "accepted": "2."})
    with Client(service.site, "x") as client, pytest.raises(OverMaximum) as caught:
        client.submit(JOB)
    assert str(caught.value) == "Too many. 2."


def test_lists_are_read_from_as_many_pages_as_needed(service: FakeService) -> None:
    for number in range(7):
        service.add(f"j-{number}", labels={"sweep": str(number % 2)})
    service.page = 2
    with Client(service.site, "x") as client:
        assert len(client.requests(limit=None)) == 7
        assert len(client.requests(limit=5)) == 5
        even = client.requests(labels={"sweep": "0"}, limit=None)
        assert [request.id for request in even] == ["j-0", "j-2", "j-4", "j-6"]
        first = client.page(limit=2)
        assert client.page(limit=2, cursor=first.next).requests[0].id == "j-2"


def test_queue_and_groups(service: FakeService) -> None:
    service.add("j-1")
    with Client(service.site, "x") as client:
        assert [entry.request_id for entry in client.queue().queue] == ["j-1"]
        assert client.groups()[0].max_devices_per_user == 2
