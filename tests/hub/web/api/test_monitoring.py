"""Metrics, probes, and the id that every call has."""

from __future__ import annotations

import io
import json
import logging
import re
from collections.abc import Iterator

import pytest
from prometheus_client.parser import text_string_to_metric_families

from carrel.hub.config import log as config_log
from carrel.hub.config.log import LogFormat
from carrel.hub.errors import InvalidInput, Unavailable
from carrel.hub.interfaces.clock import Instant
from carrel.hub.runtime.loop_metrics import LoopMetrics
from carrel.hub.scheduling.model.plan import Plan, Reason, Wait
from carrel.hub.scheduling.model.states import State
from carrel.hub.transitions import lifecycle
from carrel.hub.web.monitoring.readiness import Readiness, check_loop
from carrel.hub.web.security.hub_oauth import METRICS_SCOPE, TokenHolder

from ....contracts.store_kit import CANCELLED, furnish, job, running, session
from ..fakes import ADA, ALL_SCOPES, API, PREFIX, World

TOKEN = "token-of-the-monitoring"


@pytest.fixture
def world() -> World:
    return World(metrics_token=TOKEN)


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """The log as JSON."""
    stream, root = io.StringIO(), logging.getLogger()
    before, level = root.handlers[:], root.level
    config_log.configure(LogFormat.JSON, stream)
    yield stream
    root.handlers[:], root.level = before, level


def samples(world: World) -> dict[str, float]:
    answer = world.program(TOKEN).get(f"{PREFIX}metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain")
    return {
        " ".join(
            [sample.name, *(f"{k}={v}" for k, v in sorted(sample.labels.items()))]
        ): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


class TestMetrics:
    def test_metrics_have_queue_devices_waits_and_results(self, world: World) -> None:
        store = world.service.store
        furnish(store)
        running(store, job("a"), "D0", at=100)
        store.submit(session("s"), 100)
        store.submit(job("c"), 100)
        store.submit(job("d"), 100)
        store.apply("j-d", lifecycle.stop, State.CANCELLED, CANCELLED, now=110)
        wait = Wait(request_id="s-s", place=1, reason=Reason.NO_FREE_DEVICE)
        world.context.plan_cache.publish(Plan(waits=(wait,)))
        found = samples(world)
        assert found["carrel_queue_requests kind=session reason=no_free_device"] == 1
        assert found["carrel_queue_requests kind=job reason=undecided"] == 1
        assert found["carrel_devices simulated=false state=leased"] == 1
        assert found["carrel_devices simulated=false state=free"] == 1
        assert found["carrel_utilisation_ratio"] == 0.5
        assert found["carrel_leases kind=job"] == 1
        assert found["carrel_requests_ended_total cause=cancelled kind=job"] == 1
        assert found["carrel_wait_seconds_bucket kind=job le=1.0"] == 1
        assert found["carrel_wait_seconds_count kind=job"] == 1
        assert found["carrel_event_streams"] == 0
        assert "carrel_cycle_seconds_bucket le=+Inf" in found

    def test_a_ledger_with_charges_of_today_is_read_at_the_time_of_the_service(
        self, world: World
    ) -> None:
        """The monotonic clock was given where epoch time is wanted: 500 after the first charge."""
        store, now = world.service.store, world.context.clock()
        furnish(store)
        lease = running(store, job("a"), "D0", at=now - 600)
        store.renew({lease.id: now}, until=now + 30)
        store.charge([lease.id], now=now)
        assert samples(world)["carrel_leases kind=job"] == 1

    def test_metrics_need_a_token(self, world: World) -> None:
        hub_token = TokenHolder(identity=ADA, scopes=frozenset({*ALL_SCOPES, METRICS_SCOPE}))
        world.sign_in.people["ada-monitors"] = hub_token
        for path in (f"{PREFIX}metrics", "/metrics"):
            assert world.client().get(path).status_code == 401
            assert world.browser("root-oauth").get(path).status_code == 401
            assert world.program("who-knows").get(path).status_code == 401
            assert world.program("ada-all").get(path).status_code == 403
            assert world.program("ada-monitors").get(path).status_code == 200
            assert world.program(TOKEN).get(path).status_code == 200
        refused = world.client().get("/metrics")
        assert refused.headers["content-type"] == "application/problem+json"

    def test_the_metrics_token_opens_nothing_else(self, world: World) -> None:
        assert world.program(TOKEN).get(f"{API}/me").status_code == 401

    def test_without_a_metrics_token_an_empty_one_opens_nothing(self) -> None:
        world = World()
        assert world.client(Authorization="token ''").get("/metrics").status_code == 401


class TestProbes:
    @pytest.mark.parametrize("path", ["/healthz", f"{PREFIX}healthz"])
    def test_the_process_answers_without_a_sign_in(self, world: World, path: str) -> None:
        assert world.client().get(path).json() == {"status": "ok"}

    @pytest.mark.parametrize("path", ["/readyz", f"{PREFIX}readyz"])
    def test_it_is_not_ready_before_a_cycle(self, world: World, path: str) -> None:
        answer = world.client().get(path)
        assert answer.status_code == 503
        assert answer.json()["checks"]["loop"]["ok"] is False

    def test_it_is_ready_while_every_part_responds(self) -> None:
        now = 0.0
        loop_metrics = LoopMetrics(clock=lambda: Instant(now))
        broken: list[str] = []

        def hub() -> None:
            if broken:
                raise Unavailable("JupyterHub does not answer.")

        ready = Readiness(
            {"loop": lambda: check_loop(loop_metrics), "hub": hub}, clock=lambda: Instant(now)
        )
        loop_metrics.record_cycle(0.01)
        assert ready.check().ready
        broken.append("hub")
        assert ready.check().ready  # The result is cached for a moment.
        now = 10.0
        found = ready.check()
        assert not found.ready
        assert (found.checks["hub"].ok, found.checks["loop"].ok) == (False, True)
        broken.clear()
        now = 41.0
        assert ready.check().checks["loop"].message.endswith("41 s ago.")

    def test_cycles_are_counted_in_classes(self) -> None:
        loop_metrics = LoopMetrics()
        for seconds in (0.001, 0.3, 60.0):
            loop_metrics.record_cycle(seconds)
        loop_metrics.record_failure()
        found = loop_metrics.cycles()
        assert (found.within[0], found.within[-1], found.count, found.failed) == (1, 2, 3, 1)


class TestRequestIds:
    def test_every_response_has_a_call_id(self, world: World) -> None:
        first, second = (world.client().get("/healthz").headers["x-request-id"] for _ in range(2))
        assert re.fullmatch(r"r-[0-9a-f]{16}", first)
        assert first != second

    def test_a_valid_call_id_of_the_caller_is_kept(self, world: World) -> None:
        answer = world.client(**{"X-Request-ID": "proxy-7.a_1"}).get(f"{API}/me")
        assert answer.headers["x-request-id"] == "proxy-7.a_1"
        assert answer.json()["request_id"] == "proxy-7.a_1"

    @pytest.mark.parametrize("given", ["a b", "x" * 65, "<b>", "-a", '"'])
    def test_an_invalid_call_id_is_replaced(self, world: World, given: str) -> None:
        answer = world.client(**{"X-Request-ID": given}).get("/healthz")
        assert answer.headers["x-request-id"].startswith("r-")

    def test_logs_have_the_call_and_no_secrets(self, world: World, log: io.StringIO) -> None:
        mine = world.program("ada-secret-token")
        answer = mine.post(f"{API}/requests?key=hush", json={"command": ["hush-hush"]})
        assert answer.status_code == 401
        (line,) = [json.loads(text) for text in log.getvalue().splitlines()]
        assert line["request_id"] == answer.headers["x-request-id"]
        assert (line["method"], line["status"], line["level"]) == ("POST", 401, "info")
        assert line["path"] == f"{API}/requests"
        assert "hush" not in log.getvalue()
        assert "secret" not in log.getvalue()

    def test_an_internal_error_has_the_same_id_in_response_and_log(
        self, world: World, log: io.StringIO, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(*_: object) -> None:
            raise RuntimeError("a bug")

        monkeypatch.setattr(world.service, "me", fail)
        answer = world.program("ada-reads").get(f"{API}/me")
        assert answer.status_code == 500
        named = answer.json()["request_id"]
        assert named == answer.headers["x-request-id"]
        lines = [json.loads(text) for text in log.getvalue().splitlines()]
        assert {line.get("request_id") for line in lines} == {named}
        assert "error" in {line["level"] for line in lines}

    def test_a_path_breaks_no_line(self, world: World, log: io.StringIO) -> None:
        world.program("ada-all").delete(f"{API}/requests/a%0AFORGED%20line")
        assert "%0AFORGED" in log.getvalue()
        assert len(log.getvalue().splitlines()) == 1


def test_text_lines_end_with_the_call() -> None:
    record = logging.LogRecord("carrel", logging.INFO, "", 0, "granted %s", ("j-1",), None)
    token = config_log.REQUEST_ID.set("r-1")
    assert config_log.TextLines().format(record).endswith("INFO    carrel: granted j-1 [r-1]")
    config_log.REQUEST_ID.reset(token)


def test_the_form_comes_from_the_environment_or_the_settings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("CARREL_LOG", raising=False)
    assert config_log.chosen_format("json") is LogFormat.JSON
    monkeypatch.setenv("CARREL_LOG", "text")
    assert config_log.chosen_format("json") is LogFormat.TEXT
    monkeypatch.setenv("CARREL_LOG", "xml")
    with pytest.raises(InvalidInput, match="text, json"):
        config_log.chosen_format("json")
