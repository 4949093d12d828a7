"""``carrel serve`` behind a real Jupyter server, as in a session."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from ... import plain_http
from ...e2e.support import eventually
from ...ports import free_port

SOURCE = """
import os, pathlib, time

def act(rows):
    if "exit" in rows:
        os._exit(1)
    if "wait" in rows:
        pathlib.Path("begun").touch()
        while not pathlib.Path("gate").exists():
            time.sleep(0.01)
    return [len(row) for row in rows]
"""


@dataclass(frozen=True)
class Session:
    """A Jupyter server, and the environment of its terminals."""

    url: str
    home: Path
    environment: dict[str, str]

    @contextmanager
    def serving(self, *options: str) -> Iterator[subprocess.Popen[str]]:
        process = subprocess.Popen(
            [sys.executable, "-m", "carrel.hub.cli", "serve", "model.py:act", *options],
            cwd=self.home,
            env=self.environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        try:
            assert "Serving 1 models at http://site.test/carrel/served/act/" in (
                process.stdout.readline()
            )
            yield process
        finally:
            process.kill()
            process.wait()
            process.stdout.close()

    def command(self, *words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "carrel.hub.cli", "serve", *words],
            cwd=self.home,
            env=self.environment,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    home = tmp_path_factory.mktemp("home")
    (home / "model.py").write_text(SOURCE)
    url = f"http://127.0.0.1:{free_port()}"
    environment = {
        **{key: value for key, value in os.environ.items() if not key.startswith("JUPYTER")},
        "HOME": str(home),
        "XDG_DATA_HOME": str(home / "data"),
        "CARREL_PUBLIC_URL": "http://site.test",
        "JUPYTERHUB_SERVICE_PREFIX": "/",
    }
    command = [sys.executable, "-m", "jupyter_server", f"--port={url.rpartition(':')[2]}"]
    command += ["--allow-root", "--IdentityProvider.token="]
    command += ["--ServerApp.jpserver_extensions={'carrel.extensions.dashboards': True}"]
    with (home / "log").open("w") as log:
        process = subprocess.Popen(command, cwd=home, env=environment, stdout=log, stderr=log)

    def answers() -> bool:
        try:
            return plain_http.get(f"{url}/api").status_code == httpx.codes.OK
        except httpx.HTTPError:
            assert process.poll() is None, (home / "log").read_text()
            return False

    try:
        eventually(answers, "the server answers")
        yield Session(url, home, environment)
    finally:
        process.terminate()
        process.wait(timeout=60)


@pytest.fixture
def browser(session: Session) -> Iterator[httpx.Client]:
    """Return a client with the cookie that the page sets."""
    address = f"{session.url}/carrel/served/act/"
    with plain_http.client(base_url=address, timeout=60) as client:
        client.get("")
        yield client


def call(browser: httpx.Client, row: str, **body: Any) -> httpx.Response:
    token = browser.cookies["_xsrf"]
    return browser.post("models/act", json={"rows": [row], **body}, headers={"X-XSRFToken": token})


def test_a_forged_call_of_another_page_is_refused(session: Session, browser: httpx.Client) -> None:
    with session.serving():
        for headers in ({}, {"X-XSRFToken": "guessed"}):
            forged = browser.post("models/act", json={"rows": ["a"]}, headers=headers)
            assert forged.status_code == httpx.codes.FORBIDDEN
        assert browser.get("status").json()["answered"] == 0
        assert call(browser, "abc").json() == {"results": [3]}


def test_no_other_page_frames_it(session: Session, browser: httpx.Client) -> None:
    with session.serving():
        for address in ("", "../"):
            policy = browser.get(address).headers["Content-Security-Policy"]
            assert "frame-ancestors 'none'" in policy
            assert "default-src 'none'" in policy


def test_a_server_that_ends_during_a_call_is_502_and_404_after_it(
    session: Session, browser: httpx.Client
) -> None:
    with session.serving() as process:
        ended = call(browser, "exit")
        assert ended.status_code == httpx.codes.BAD_GATEWAY
        assert ended.json()["error"]["message"] == "act gave no answer."
        assert process.wait(60) == 1
        assert call(browser, "a").status_code == httpx.codes.NOT_FOUND


def test_ctrl_c_ends_it_and_its_address_is_free_again(
    session: Session, browser: httpx.Client
) -> None:
    for _ in range(2):
        with session.serving() as process:
            assert call(browser, "ab").json() == {"results": [2]}
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 0
    assert browser.get("").status_code == httpx.codes.NOT_FOUND
    assert json.loads(session.command("--list", "--json")) == []


def test_overload_is_refused_early_and_the_admitted_call_is_answered(
    session: Session, browser: httpx.Client
) -> None:
    with session.serving("--queue", "1"), ThreadPoolExecutor(2) as threads:
        runs = threads.submit(call, browser, "wait", deadline=60)
        eventually((session.home / "begun").exists, "the model executes")

        def answered() -> httpx.Response | None:  # the call below may be the first to wait
            answer = call(browser, "ab", deadline=60)
            return answer if answer.status_code == httpx.codes.OK else None

        def refused() -> httpx.Response | None:
            answer = call(browser, "a", deadline=1)
            assert answer.status_code == httpx.codes.TOO_MANY_REQUESTS
            return answer if "rows wait already" in answer.text else None

        waits = threads.submit(eventually, answered, "the call that waits is answered")
        answer = eventually(refused, "the queue is full")
        assert int(answer.headers["Retry-After"]) >= 1
        assert not runs.done(), "The refusal came before the execution ended."
        (session.home / "gate").touch()
        assert runs.result().json() == {"results": [4]}
        assert waits.result().json() == {"results": [2]}


def test_a_call_whose_caller_has_gone_leaves_the_queue(
    session: Session, browser: httpx.Client
) -> None:
    def told() -> str:
        message: str = call(browser, "a", deadline=1).json()["error"]["message"]
        return message

    for name in ("begun", "gate"):  # of the test before
        (session.home / name).unlink(missing_ok=True)
    with session.serving("--queue", "1"), ThreadPoolExecutor(2) as threads:
        runs = threads.submit(call, browser, "wait", deadline=60)
        eventually((session.home / "begun").exists, "the model executes")
        with httpx.Client(
            base_url=browser.base_url, headers=browser.headers, cookies=browser.cookies, timeout=5
        ) as other:

            def waited() -> bool:  # the call below may be the first to wait
                return call(other, "ab", deadline=90).status_code != httpx.codes.TOO_MANY_REQUESTS

            gone = threads.submit(eventually, waited, "it waits")
            eventually(lambda: "rows wait already" in told(), "the queue is full")
            with pytest.raises(httpx.ReadTimeout):
                gone.result()
        eventually(lambda: "executing act since" in told() and "rows wait" not in told(), "it left")
        (session.home / "gate").touch()
        assert runs.result().json() == {"results": [4]}


def test_a_user_finds_again_what_the_session_serves(
    session: Session, browser: httpx.Client
) -> None:
    assert "This session serves nothing now." in browser.get("../").text
    assert "carrel serve SOURCE" in session.command("--list")
    with session.serving():
        assert session.command("--list") == "act  http://site.test/carrel/served/act/\n"
        assert json.loads(session.command("--list", "--json")) == [
            {"name": "act", "address": "http://site.test/carrel/served/act/"}
        ]
        assert '<a href="act/">act</a>' in browser.get("../").text


def test_a_huge_call_is_refused_with_a_sentence(session: Session, browser: httpx.Client) -> None:
    with session.serving():
        answer = call(browser, "a" * (17 << 20))
        assert answer.status_code == httpx.codes.REQUEST_ENTITY_TOO_LARGE
        assert "At most 16777216 bytes" in answer.json()["error"]["accepted"]
        assert call(browser, "a").json() == {"results": [1]}
