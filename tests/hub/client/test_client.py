"""The client against a real HTTP server: calls, errors and retries."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.hub.client import (
    AsyncClient,
    Client,
    Credentials,
    CredentialsFile,
    SiteUrl,
    public_site,
)
from carrel.hub.client.transport.sse import LineSplitter, Message, Parser
from carrel.hub.client.transport.transports import LoopTransport
from carrel.hub.errors import (
    CarrelError,
    Forbidden,
    InvalidInput,
    NotFound,
    OverMaximum,
    TooLarge,
    TooManyCalls,
    Unavailable,
)
from carrel.hub.files.filenames import safe_name
from carrel.hub.schemas import JobIn, NotebookIn, RequestOut

from ...fake_service import FakeService

JOB = JobIn(
    group="cs101", notebook=NotebookIn(name="a.ipynb", content="{}"), idempotency_key="key-1"
)

SEPARATORS = "one\u2028two\u2029three\u0085four\x0bfive\x0csix\x1cseven"
"""Python's ``splitlines`` splits at each of them; the protocol's lines do not end there."""


@pytest.fixture
def service() -> Iterator[FakeService]:
    with FakeService() as fake:
        yield fake


@pytest.fixture
def client(service: FakeService) -> Iterator[Client]:
    with Client(service.site, "a-token") as client:
        yield client


class TestAddresses:
    @pytest.mark.parametrize(
        ("given", "base"),
        [
            ("http://127.0.0.1:8000", "http://127.0.0.1:8000/"),
            ("http://127.0.0.1:8000/", "http://127.0.0.1:8000/"),
            ("http://host:8000/hub/home", "http://host:8000/"),
            ("https://host/jupyter/hub/spawn/anna?x=1#y", "https://host/jupyter/"),
            ("https://host/jupyter/services/carrel/api/v1", "https://host/jupyter/"),
            ("https://host/user/anna/lab", "https://host/"),
            ("https://host/hubble", "https://host/hubble/"),
            ("localhost:8000", "http://localhost:8000/"),
            ("jupyter.example.edu", "https://jupyter.example.edu/"),
            (" http://[::1]:8000/hub ", "http://[::1]:8000/"),
        ],
    )
    def test_every_form_that_a_browser_shows_names_the_site(self, given: str, base: str) -> None:
        assert SiteUrl.at(given).base == base

    @pytest.mark.parametrize(
        "given", ["", "ftp://host/", "http://", "http://host:port", "http://["]
    )
    def test_anything_else_is_refused_with_an_example(self, given: str) -> None:
        with pytest.raises(InvalidInput, match="Use an address such as"):
            SiteUrl.at(given)


class TestCalls:
    def test_a_call_carries_the_token_and_returns_a_typed_value(
        self, service: FakeService, client: Client
    ) -> None:
        assert client.me().groups == ["cs101"]
        assert service.headers[-1]["Authorization"] == "token a-token"

    def test_the_list_asks_for_repeated_states(self, service: FakeService, client: Client) -> None:
        service.add("j-1")
        assert [r.id for r in client.requests(states=("queued", "running"))] == ["j-1"]

    def test_an_output_has_a_name_and_a_log_goes_on_where_it_was(
        self, service: FakeService, client: Client
    ) -> None:
        service.add("j-1")
        service.outputs["j-1"] = b"{}"
        service.logs["j-1"] = b"one\ntwo\n"
        assert client.output("j-1").name == "train-out.ipynb"
        assert client.log("j-1", 4).content == b"two\n"
        assert client.log("j-1", 4).next_offset == 8
        assert b"".join(client.whole_log("j-1")) == b"one\ntwo\n"

    def test_an_odd_id_stays_one_segment(self, service: FakeService, client: Client) -> None:
        with pytest.raises(NotFound):
            client.request("../../me?x")


class TestErrors:
    def test_the_service_s_sentence_comes_back_as_its_class(
        self, service: FakeService, client: Client
    ) -> None:
        service.refuse = (409, {"code": "over_maximum", "message": "Too many.", "accepted": "2."})
        with pytest.raises(OverMaximum) as caught:
            client.submit(JOB)
        assert str(caught.value) == "Too many. 2."

    def test_an_unknown_error_code_is_mapped_by_its_status(
        self, service: FakeService, client: Client
    ) -> None:
        service.refuse = (413, {"code": "brand_new", "message": "Too much."})
        with pytest.raises(TooLarge, match="Too much"):
            client.submit(JOB)

    def test_a_missing_service_is_reported_with_its_address(self, service: FakeService) -> None:
        service.close()
        with (
            Client(service.site, "x") as client,
            pytest.raises(Unavailable, match=f"No Carrel answers at {service.site}"),
        ):
            client.submit(JOB)
        service.open()

    def test_an_expired_token_asks_to_sign_in_again(
        self, service: FakeService, client: Client
    ) -> None:
        said = {"code": "not_signed_in", "message": "JupyterHub does not know this token."}
        service.refuse = (401, said | {"accepted": "Send a JupyterHub token."})
        with pytest.raises(CarrelError) as caught:
            client.submit(JOB)
        assert str(caught.value) == (
            f"JupyterHub does not know this token. Sign in again with: carrel login {service.site}"
        )

    def test_an_ended_token_of_a_program_asks_for_a_new_one(self, service: FakeService) -> None:
        said = {"code": "not_signed_in", "message": "The token of the program t was revoked."}
        service.refuse = (401, said | {"accepted": "Send another token."})
        with (
            Client(service.site, "carrel-program-1") as client,
            pytest.raises(CarrelError) as caught,
        ):
            client.submit(JOB)
        assert str(caught.value) == (
            "The token of the program t was revoked. The owner of the program makes a new one "
            "with: carrel token create --program NAME"
        )

    def test_another_web_server_is_reported(self, service: FakeService) -> None:
        with (
            Client(service.site + "elsewhere", "x") as client,
            pytest.raises(Unavailable, match="No Carrel answers"),
        ):
            client.me()

    @pytest.mark.parametrize(("status", "kind"), [(503, Unavailable), (403, Forbidden)])
    def test_a_page_of_the_proxy_is_not_shown_as_it_is(
        self, service: FakeService, client: Client, status: int, kind: type[Exception]
    ) -> None:
        service.fail_next = [status]
        with pytest.raises(kind) as caught:
            client.me()
        assert "<html>" not in str(caught.value)


class TestSubmitting:
    def test_a_lost_response_is_retried_and_makes_one_job(self, service: FakeService) -> None:
        pauses: list[float] = []
        service.drop_next = ["POST"]
        with Client(service.site, "x", sleep=pauses.append) as client:
            job = client.submit(JOB)
        assert len(service.called("POST", "requests")) == 2
        assert list(service.requests) == [job.id]
        assert len(pauses) == 1

    def test_a_restarting_service_is_waited_for(self, service: FakeService) -> None:
        service.fail_next = [503, 503]
        with Client(service.site, "x", sleep=lambda _: None) as client:
            client.submit(JOB)
        assert len(service.requests) == 1

    def test_without_a_key_nothing_is_sent_twice(self, service: FakeService) -> None:
        service.drop_next = ["POST"]
        with Client(service.site, "x") as client, pytest.raises(Unavailable):
            client.submit(JOB.model_copy(update={"idempotency_key": ""}))
        assert len(service.called("POST", "requests")) == 1


class TestTooManyCalls:
    """The service refuses calls with 429 and says when to try again."""

    def test_every_call_waits_as_long_as_the_service_says(self, service: FakeService) -> None:
        pauses: list[float] = []
        with Client(service.site, "x", sleep=pauses.append) as client:
            service.too_many = 2
            client.me()
            service.too_many = 1
            client.submit(JOB.model_copy(update={"idempotency_key": ""}))
            assert len(service.requests) == 1, "a refused submission has no effect"
            service.add("j-1", state="succeeded", ended=True)
            service.too_many = 1
            assert [item.state for item in client.follow("j-1")] == ["succeeded"]  # type: ignore[union-attr]
        assert pauses == [7.0] * 4

    def test_a_loop_of_events_waits_too(self, service: FakeService) -> None:
        pauses: list[float] = []

        class Hurried(LoopTransport):
            async def pause(self, seconds: float) -> None:
                pauses.append(seconds)

        async def call() -> None:
            transport = Hurried(SiteUrl.at(service.site), "x", 30.0)
            async with AsyncClient(service.site, "x", transport=transport) as client:
                service.too_many = 2
                await client.me()

        asyncio.run(call())
        assert pauses == [7.0, 7.0]

    def test_the_service_is_not_asked_for_ever(self, service: FakeService) -> None:
        service.too_many = 1000
        pauses: list[float] = []
        with Client(service.site, "x", sleep=pauses.append) as client, pytest.raises(TooManyCalls):
            client.me()
        assert 300 <= sum(pauses) < 310


class TestFollowing:
    def test_every_change_and_event_comes_once_through_a_restart_until_the_end(
        self, service: FakeService
    ) -> None:
        service.add("j-1")
        service.add_event("j-1", "state", state="queued")
        seen: list[str] = []
        closer = threading.Thread(target=service.close)

        def restart_once(_: float) -> None:
            if service.closing:
                closer.join()
                service.open()
                service.add_event("j-1", "cell_finished", index=0)
                service.change("j-1", state="succeeded", ended=True)

        with Client(service.site, "x", sleep=restart_once) as client:
            for item in client.follow("j-1"):
                seen.append(item.state if isinstance(item, RequestOut) else item.kind)
                if seen == ["state", "queued"]:
                    closer.start()
        assert seen == ["state", "queued", "cell_finished", "succeeded"]

    def test_a_restarting_proxy_without_routes_is_retried(self, service: FakeService) -> None:
        service.add("j-1", state="succeeded", ended=True)
        service.fail_next = [503, 404, 502]
        with Client(service.site, "x", sleep=lambda _: None) as client:
            assert [item.state for item in client.follow("j-1")] == ["succeeded"]  # type: ignore[union-attr]

    def test_line_separators_of_unicode_do_not_split_an_event(self, service: FakeService) -> None:
        service.add("j-1", state="succeeded", ended=True, labels={"text": SEPARATORS})
        service.add_event("j-1", "output", text=SEPARATORS)
        with Client(service.site, "x") as client:
            (event, request) = client.follow("j-1")
        assert isinstance(request, RequestOut)
        assert request.labels["text"] == SEPARATORS
        assert not isinstance(event, RequestOut)
        assert event.data["text"] == SEPARATORS

    def test_a_missing_request_is_reported_immediately(self, client: Client) -> None:
        with pytest.raises(NotFound, match="There is no request j-9"):
            next(client.follow("j-9"))

    def test_retries_end_after_the_time_limit(self, service: FakeService) -> None:
        service.close()
        moments = iter(range(0, 10_000, 50))
        with (
            Client(service.site, "x", sleep=lambda _: None, clock=lambda: next(moments)) as client,
            pytest.raises(Unavailable),
        ):
            next(client.follow("j-1"))
        service.open()

    def test_a_log_is_followed_to_its_last_byte(self, service: FakeService) -> None:
        service.add("j-1", state="running")
        service.logs["j-1"] = b"one "

        def end(_: float) -> None:
            service.logs["j-1"] = b"one two"
            service.change("j-1", state="succeeded", ended=True)

        with Client(service.site, "x", sleep=end) as client:
            assert list(client.follow_log("j-1")) == [b"one ", b"two"]

    def test_the_log_of_a_new_attempt_is_read_from_its_beginning(
        self, service: FakeService
    ) -> None:
        service.add("j-1", state="queued")
        service.grant("j-1")
        service.logs["j-1"] = b"the first attempt"

        def fail(_: float) -> None:
            service.grant("j-1")
            service.logs["j-1"] = b"again"
            service.change("j-1", state="succeeded", ended=True)

        with Client(service.site, "x", sleep=fail) as client:
            assert list(client.follow_log("j-1")) == [b"the first attempt", b"again"]

    def test_a_log_that_is_replaced_while_it_is_read_is_yielded_once(
        self, service: FakeService
    ) -> None:
        class Replaced(dict[str, bytes]):
            """The job is tried again between the look at it and the first read of its log."""

            reads = 0

            def get(self, name: str, default: Any = b"") -> Any:
                self.reads += 1
                if self.reads == 1:
                    service.grant("j-1")
                    self["j-1"] = b"the second attempt"
                    service.change("j-1", state="succeeded", ended=True)
                return super().get(name, default)

        service.add("j-1", state="queued")
        service.grant("j-1")
        service.logs = Replaced({"j-1": b"the first attempt"})
        with Client(service.site, "x", sleep=lambda _: None) as client:
            assert list(client.follow_log("j-1")) == [b"the second attempt"]


def test_the_event_stream_s_lines_become_messages() -> None:
    parser = Parser()
    lines = [": alive", "", "id: 7", "event: cell", "data: a", "data:b", "", "data: x", ""]
    found = [message for line in lines if (message := parser.feed(line))]
    assert found == [
        Message(event="cell", data="a\nb", id="7"),
        Message(event="message", data="x"),
    ]


@given(text=st.text(), sizes=st.lists(st.integers(1, 5), min_size=1))
def test_a_stream_is_split_at_line_feeds_alone_wherever_its_parts_end(
    text: str, sizes: list[int]
) -> None:
    data = (text + "\n").encode("utf-8", "replace")
    splitter, lines = LineSplitter(), []
    lengths = itertools.cycle(sizes)
    while data:
        length = next(lengths)
        lines += splitter.feed(data[:length])
        data = data[length:]
    whole = (text + "\n").encode("utf-8", "replace").decode().split("\n")[:-1]
    assert lines == [line.removesuffix("\r") for line in whole]


class TestCredentials:
    @pytest.fixture(autouse=True)
    def own_folder(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
        for name in ("CARREL_URL", "CARREL_PUBLIC_URL", "CARREL_TOKEN", "JUPYTERHUB_API_TOKEN"):
            monkeypatch.delenv(name, raising=False)

    def test_several_sites_are_kept_privately_and_the_last_is_the_default(
        self, tmp_path: Path
    ) -> None:
        stored = CredentialsFile.of_current_user()
        first = Credentials(url="http://one/", user="anna", token="t1")
        second = Credentials(url="http://two/", user="anna", token="t2", expires_at=5.0)
        stored.add(first)
        stored.add(second)
        assert stored.path == tmp_path / "carrel" / "credentials.json"
        assert stat.S_IMODE(os.stat(stored.path).st_mode) == 0o600
        assert stored.find() == second
        assert stored.find("http://one/hub/home") == first
        stored.remove("http://two/")
        assert stored.find() == first

    def test_without_sign_in_it_says_how_to_sign_in(self) -> None:
        with pytest.raises(Forbidden, match="carrel login"):
            Client.from_environment()

    def test_a_broken_file_says_what_to_do(self) -> None:
        path = CredentialsFile.of_current_user().path
        path.parent.mkdir()
        path.write_text(json.dumps({"sites": 3}))
        with pytest.raises(InvalidInput, match="Remove it and sign in again"):
            Client.from_environment()

    def test_the_environment_decides_in_the_order_that_is_documented(
        self, service: FakeService, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        CredentialsFile.of_current_user().add(
            Credentials(url=service.site, user="anna", token="of-the-file")
        )
        used = []

        def use(url: str | None = None) -> None:
            with Client.from_environment(url) as client:
                client.me()
            used.append(service.headers[-1]["Authorization"])

        use()
        monkeypatch.setenv("CARREL_URL", service.url)
        monkeypatch.setenv("JUPYTERHUB_API_TOKEN", "of-the-session")
        use()
        use(service.site)
        monkeypatch.setenv("CARREL_TOKEN", "of-the-caller")
        use()
        assert used == [
            "token of-the-file", "token of-the-session", "token of-the-session",
            "token of-the-caller",
        ]  # fmt: skip  # grouped by meaning

    def test_a_session_in_a_container_talks_to_one_address_and_shows_another(
        self, service: FakeService, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        elsewhere = SiteUrl.at("https://other.example.org")
        monkeypatch.setenv("CARREL_URL", service.url)
        monkeypatch.setenv("CARREL_PUBLIC_URL", "https://carrel.example.org/services/carrel")
        monkeypatch.setenv("JUPYTERHUB_API_TOKEN", "of-the-session")
        # An address copied from the browser names the same site.
        for url in (None, service.url, "https://carrel.example.org/user/anna/lab"):
            with Client.from_environment(url) as client:
                assert client.site == SiteUrl.at(service.url)
                assert public_site(client.site).base == "https://carrel.example.org/"
        assert public_site(elsewhere) == elsewhere
        monkeypatch.delenv("CARREL_PUBLIC_URL")
        assert public_site(SiteUrl.at(service.url)) == SiteUrl.at(service.url)


class TestSafeNames:
    def test_simple_names_stay_as_they_are(self) -> None:
        for name in ("anna", "student1", "a.b-c_d", "x" * 40):
            assert safe_name(name) == name

    def test_names_that_look_alike_stay_apart(self) -> None:
        names = ["a b", "a-b", "a--b", "A-b", "a/b", "..", ".", "", "ä", "a\ud800", "x" * 41,
                 "x" * 42, "a-.b", "-a", "a@b", safe_name("a b")]  # fmt: skip  # grouped by meaning
        results = [safe_name(name) for name in names]
        assert len(set(results)) == len(names)
        for result in results:
            assert len(result) <= 52
            assert "--" not in result
            assert result.isascii()
            assert result[0].isalnum()
