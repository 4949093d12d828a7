"""How a session reports its kernels and receives warnings."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from jupyter_client.session import Session

from carrel.extensions import environment
from carrel.extensions.environment import jupyter_environment
from carrel.extensions.lab.kernel_activity import KernelWatch
from carrel.extensions.lab.kernel_journals import KernelJournals
from carrel.extensions.lab.output_journal import CellRequest
from carrel.extensions.lab.panel_handlers import ACTIONS, READS
from carrel.extensions.lab.session_status import SAVE_SECONDS, SessionStatus, last_call
from carrel.hub.errors import Conflict, Unavailable
from carrel.hub.interfaces.session_meter import SessionUse
from carrel.hub.scheduling.model.idleness import ActivityLevel
from carrel.hub.schemas import EventOut, HeldOut, KernelsIn, RequestOut, WarningOut, WatchOut

SHARE = environment.LAB / "share" / "labextensions" / "carrel"


class Channel:
    """What a kernel publishes."""

    def __init__(self) -> None:
        self.session = Session(key=b"key")
        self.heard: Callable[[list[bytes]], None] | None = None
        self.closed = False
        self.execution_state = "idle"
        self.ports = [1, 2, 3, 4, 5]
        self.dies: Callable[[], None] | None = None
        self.forges: Session | None = None

    def add_restart_callback(self, callback: Callable[[], None], event: str) -> None:
        assert event == "restart"
        self.dies = callback

    def connect_iopub(self) -> Channel:
        return self

    def on_recv(self, callback: Callable[[list[bytes]], None]) -> None:
        self.heard = callback

    def close(self) -> None:
        self.closed = True

    def say(self, kind: str, parent: str, cell: str = "1", **content: object) -> None:
        asked = self.session.msg(parent, header=self.session.msg_header(parent) | {"msg_id": cell})
        message = self.session.msg(kind, content=content, parent=asked)
        assert self.heard is not None
        self.heard([b"topic", *(self.forges or self.session).serialize(message)])


@dataclass
class Kernels:
    channels: dict[str, Channel] = field(default_factory=dict)

    def list_kernel_ids(self) -> list[str]:
        return list(self.channels)

    def get_kernel(self, kernel_id: str) -> Channel:
        return self.channels[kernel_id]


@dataclass
class Bench:
    journals: KernelJournals
    now: float = 1000.0
    manager: Kernels = field(default_factory=Kernels)

    def __post_init__(self) -> None:
        self.watch = KernelWatch(
            manager=self.manager, clock=lambda: self.now, journals=self.journals
        )

    def kernel(self, name: str) -> Channel:
        self.manager.channels[name] = Channel()
        self.watch.refresh()
        return self.manager.channels[name]

    def told(self) -> tuple[int, int, float | None]:
        told = self.watch.report()
        return told.count, told.running, told.cell_seconds_ago


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(KernelJournals(root=tmp_path / "outputs", log=logging.getLogger("test")))


def test_without_kernels_there_is_nothing(bench: Bench) -> None:
    bench.watch.refresh()
    assert bench.told() == (0, 0, None)


def test_a_cell_runs_from_busy_to_idle_even_without_output(bench: Bench) -> None:
    kernel = bench.kernel("k")
    kernel.say("status", "execute_request", execution_state="busy")
    bench.now += 3600
    assert bench.told() == (1, 1, 0.0)
    kernel.say("status", "execute_request", execution_state="idle")
    bench.now += 60
    assert bench.told() == (1, 0, 60.0)


def test_a_short_cell_between_two_reports_is_counted(bench: Bench) -> None:
    kernel = bench.kernel("k")
    bench.now += 500
    kernel.say("status", "execute_request", execution_state="busy")
    kernel.say("status", "execute_request", execution_state="idle")
    bench.now += 5
    assert bench.told() == (1, 0, 5.0)


def test_messages_of_tabs_and_widgets_are_not_cells(bench: Bench) -> None:
    kernel = bench.kernel("k")
    bench.now += 500
    for asked in ("kernel_info_request", "comm_info_request", "comm_msg"):
        kernel.say("status", asked, execution_state="busy")
        kernel.say("comm_msg", asked, data={})
    assert bench.told() == (1, 0, 500.0)


def test_a_kernel_that_is_restarted_in_a_cell_runs_it_no_longer(bench: Bench) -> None:
    kernel = bench.kernel("k")
    kernel.say("status", "execute_request", execution_state="busy")
    kernel.say("status", "kernel_info_request", execution_state="starting")
    assert bench.told()[1] == 0


def test_a_kernel_that_died_in_a_cell_runs_it_no_longer(bench: Bench) -> None:
    kernel = bench.kernel("k")
    kernel.say("status", "execute_request", execution_state="busy")
    kernel.execution_state = "dead"
    bench.watch.refresh()
    assert bench.told()[:2] == (1, 0)


def test_a_kernel_that_comes_back_on_other_ports_is_heard_again(bench: Bench) -> None:
    kernel = bench.kernel("k")
    assert kernel.dies is not None
    kernel.say("status", "execute_request", execution_state="busy")
    kernel.dies()
    assert bench.told()[:2] == (1, 0)
    kernel.heard, kernel.ports = None, [6, 7, 8, 9, 10]
    bench.watch.restarted("k")
    kernel.say("status", "execute_request", execution_state="busy")
    assert bench.told()[:2] == (1, 1)


def test_only_a_restart_by_the_user_clears_the_journal(bench: Bench) -> None:
    kernel = bench.kernel("k")
    bench.journals.begin("k", CellRequest(request="r", cell="c", client="p", in_notebook=True))
    assert kernel.dies is not None
    kernel.dies()
    bench.watch.restarted("k")
    assert bench.journals.hears("k", "r")
    bench.watch.restarted("k")
    assert not bench.journals.hears("k", "r")


def test_outputs_with_a_false_signature_are_not_kept(bench: Bench) -> None:
    kernel = bench.kernel("k")
    bench.journals.begin("k", CellRequest(request="r", cell="c", client="p", in_notebook=True))
    kernel.say("stream", "execute_request", "r", name="stdout", text="true")
    kernel.forges = Session(key=b"another key")
    kernel.say("stream", "execute_request", "r", name="stdout", text="false")
    (execution,) = bench.journals.changes("k", -1, notebook="", running=["k"])["executions"]
    assert [entry["content"]["text"] for entry in execution["entries"]] == ["true"]


def test_with_two_cells_running_the_end_of_one_does_not_end_the_other(bench: Bench) -> None:
    kernel = bench.kernel("k")
    kernel.say("status", "execute_request", "long", execution_state="busy")
    kernel.say("status", "execute_request", "short", execution_state="busy")
    kernel.say("status", "execute_request", "short", execution_state="idle")
    assert bench.told()[:2] == (1, 1)
    kernel.say("status", "execute_request", "long", execution_state="idle")
    assert bench.told()[:2] == (1, 0)


def test_a_kernel_that_is_gone_is_not_listened_to_any_more(bench: Bench) -> None:
    kernel = bench.kernel("k")
    kernel.say("status", "execute_request", execution_state="busy")
    del bench.manager.channels["k"]
    bench.watch.refresh()
    assert (bench.told()[:2], kernel.closed) == ((0, 0), True)


@dataclass
class Service:
    """Answers one after the other, then the last one for ever."""

    answers: list[WatchOut | Exception]
    reports: list[KernelsIn] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    claimed: list[str] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)
    claim_by: float | None = None
    news: asyncio.Queue[RequestOut] = field(default_factory=asyncio.Queue)
    """What is yielded of a followed request."""
    followed: list[str] = field(default_factory=list)

    async def report_kernels(self, request_id: str, kernels: KernelsIn) -> WatchOut:
        self.reports.append(kernels)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def keep(self, request_id: str) -> RequestOut:
        self.kept.append(request_id)
        return RequestOut.model_construct(id=request_id)

    async def claim(self, request_id: str) -> RequestOut:
        self.claimed.append(request_id)
        return RequestOut.model_construct(id=request_id)

    async def request(self, request_id: str) -> RequestOut:
        return RequestOut.model_construct(id=request_id, claim_by=self.claim_by)

    async def cancel(self, request_id: str) -> RequestOut:
        self.cancelled.append(request_id)
        return RequestOut.model_construct(id=request_id)

    async def follow(self, request_id: str) -> AsyncGenerator[RequestOut | EventOut, None]:
        self.followed.append(request_id)
        try:
            while True:
                yield await self.news.get()
        finally:
            self.followed.remove(request_id)


def watch_out(stops_at: float | None = None) -> WatchOut:
    warning = None if stops_at is None else WarningOut(stops_at=stops_at, message="Idle.")
    return WatchOut(state="running", warning=warning, again_seconds=0.01)


def standing(bench: Bench, *answers: WatchOut | Exception) -> SessionStatus:
    return SessionStatus(
        service=Service(list(answers)),
        request_id="s-1",
        kernels=bench.watch,
        log=logging.getLogger("test"),
    )


async def heard(subject: SessionStatus, count: int) -> list[WatchOut | None]:
    """The first changes that a tab hears while the session tells."""
    running = asyncio.create_task(subject.run())
    said: list[WatchOut | None] = []
    try:
        async with asyncio.timeout(60), aclosing(subject.changes()) as changes:
            async for now in changes:
                said.append(now)
                if len(said) == count:
                    break
    finally:
        running.cancel()
    return said


class Meter:
    """Measures once; then its driver hangs."""

    def __init__(self) -> None:
        self.left = [SessionUse(cpu_seconds=7.5, devices=ActivityLevel.QUIET)]

    def latest(self) -> SessionUse | None:
        return self.left.pop() if self.left else None


def test_a_session_reports_what_it_measures_of_itself_while_it_can(bench: Bench) -> None:
    subject = standing(bench, watch_out(), watch_out(stops_at=5e9))
    subject.meter = Meter()
    asyncio.run(heard(subject, 2))
    assert isinstance(subject.service, Service)
    measured = [(each.cpu_seconds, each.devices) for each in subject.service.reports]
    assert measured[:2] == [(7.5, "quiet"), (None, None)]


def test_a_tab_is_sent_a_warning_and_its_end_but_not_every_poll(bench: Bench) -> None:
    warned = watch_out(stops_at=5e9)
    subject = standing(bench, watch_out(), watch_out(), warned, warned, watch_out())
    said = asyncio.run(heard(subject, 3))
    assert [now.warning if now else None for now in said] == [None, warned.warning, None]


def test_a_failed_or_refused_report_is_repeated(bench: Bench) -> None:
    subject = standing(bench, watch_out(stops_at=5e9), Conflict("It is stopping."))
    assert [now is None for now in asyncio.run(heard(subject, 3))] == [True, False, True]
    away = standing(bench, Unavailable("The service is away."))

    async def story() -> None:
        running = asyncio.create_task(away.run())
        while not isinstance(away.service, Service) or not away.service.reports:
            await asyncio.sleep(0)
        assert not running.done()
        running.cancel()

    asyncio.run(story())


def test_keeping_the_session_updates_its_status_at_once(bench: Bench) -> None:
    subject = standing(bench, watch_out())
    asyncio.run(subject.keep())
    assert isinstance(subject.service, Service)
    assert subject.service.kept == ["s-1"]
    assert subject.now == watch_out()


HELD = HeldOut(request_id="s-2", server_name="gpu", claim_by=5e9, message="Your device is ready.")


def kept_place(*, claim_by: float | None = None) -> RequestOut:
    return RequestOut.model_construct(
        id="s-2", state="queued" if claim_by is None else "granted", claim=True, claim_by=claim_by
    )


def test_a_held_device_is_told_at_once_although_the_next_report_is_far_away(bench: Bench) -> None:
    waits = WatchOut(state="running", again_seconds=1e6, follow=["s-2"])
    held = waits.model_copy(update={"held": HELD, "shown": "held"})
    gone = WatchOut(state="running", again_seconds=1e6)

    async def story() -> tuple[list[HeldOut | None], Service]:
        subject = standing(bench, waits, held, gone)
        service = subject.service
        assert isinstance(service, Service)
        said: list[HeldOut | None] = []
        async with asyncio.timeout(60), aclosing(subject.changes()) as changes:
            running = asyncio.create_task(subject.run())
            while subject.now is None:
                await asyncio.sleep(0)
            async for now in changes:
                assert now is not None
                said.append(now.held)
                # It is held, and then claimed in another tab.
                for claim_by in {1: [5e9], 2: [5e9, None]}.get(len(said), []):
                    service.news.put_nowait(kept_place(claim_by=claim_by))
                if len(said) == 3:
                    break
            running.cancel()
        return said, service

    said, service = asyncio.run(story())
    assert said == [None, HELD, None]
    assert len(service.reports) == 3, "a request without a new notice makes no report"


def test_a_held_device_is_claimed_or_given_up_but_never_stopped_after_a_claim(
    bench: Bench,
) -> None:
    subject = standing(bench, watch_out())
    service = subject.service
    assert isinstance(service, Service)
    asyncio.run(subject.claim("s-2"))
    assert service.claimed == ["s-2"]
    with pytest.raises(Conflict, match="no longer held"):
        asyncio.run(subject.give_up("s-2"))
    assert service.cancelled == []
    service.claim_by = 5e9
    asyncio.run(subject.give_up("s-2"))
    assert service.cancelled == ["s-2"]


def test_a_session_ends_its_streams_when_it_stops(bench: Bench) -> None:
    subject = standing(bench, WatchOut(state="running", again_seconds=1e6, follow=["s-1", "s-2"]))

    async def story() -> list[str]:
        service = subject.service
        assert isinstance(service, Service)
        running = asyncio.create_task(subject.run())
        async with asyncio.timeout(60):
            while sorted(service.followed) != ["s-1", "s-2"]:
                await asyncio.sleep(0)
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            while service.followed:
                await asyncio.sleep(0)
        return service.followed

    assert asyncio.run(story()) == []


def test_the_last_call_comes_shortly_before_the_end() -> None:
    warned = watch_out(stops_at=1000.0)
    assert not last_call(warned, 999.0 - SAVE_SECONDS)
    assert last_call(warned, 1000.0 - SAVE_SECONDS)
    assert not last_call(watch_out(), 1000.0)
    assert not last_call(None, 1000.0)


def test_the_front_end_is_where_jupyter_looks_for_it() -> None:
    package = json.loads((SHARE / "package.json").read_text())
    build = package["jupyterlab"]["_build"]
    entry = (SHARE / build["load"]).read_text()
    assert f"window._JUPYTERLAB.{package['name']} =" in entry
    assert build["extension"] in entry


def sources() -> str:
    return "\n".join(path.read_text() for path in (SHARE / "static").iterdir())


def test_the_front_end_uses_the_paths_of_the_server_and_no_other_host() -> None:
    found = sources()
    for path in (
        environment.SESSION_STATUS_PATH,
        environment.KEEP_SESSION_PATH,
        environment.CLAIM_PATH,
        environment.GIVE_UP_PATH,
        environment.JOURNAL_PATH,
    ):
        assert f'"{path}"' in found
    assert f"`{environment.PANEL_PATH}/" in found
    assert "://" not in found.replace("http://www.w3.org/2000/svg", "")  # a name, not an address


def test_the_operations_of_the_front_end_are_those_of_the_server() -> None:
    found = sources()
    assert set(re.findall(r'site\.read\("([a-z-]+)"', found)) == set(READS)
    assert set(re.findall(r'site\.act\("([a-z-]+)"', found)) == {*ACTIONS, "save-state"}


def test_menus_and_toolbars_name_commands_that_exist() -> None:
    listed = (SHARE / "schemas" / "carrel" / "desk.json").read_text()
    commands = set(re.findall(r'"(carrel:[a-z-]+)"', listed))
    assert commands <= set(re.findall(r'"(carrel:[a-z-]+)"', sources()))
    assert len(commands) > 5


def test_a_session_finds_both_extensions(tmp_path: Path) -> None:
    found = jupyter_environment({"JUPYTER_PATH": str(tmp_path)})
    paths = [Path(each) for each in found["JUPYTER_PATH"].split(":")]
    assert paths[0] == tmp_path
    assert any((path / "labextensions" / "carrel" / "package.json").is_file() for path in paths)
    configs = [Path(each) for each in found["JUPYTER_CONFIG_PATH"].split(":")]
    enabled = {
        name
        for path in configs
        for file in path.glob("jupyter_server_config.d/*.json")
        for name in json.loads(file.read_text())["ServerApp"]["jpserver_extensions"]
    }
    assert enabled == {"carrel.extensions.dashboards", "carrel.extensions.lab"}
