"""nbgrader's exchange classes over real HTTP against a service in memory."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import uvicorn
from nbgrader.auth import Authenticator
from nbgrader.coursedir import CourseDirectory
from nbgrader.exchange import ExchangeError, ExchangeFactory
from traitlets.config import Config

from carrel.extensions.nbgrader import configure
from carrel.hub.records.identity import Identity

from ...hub.doubles import STUDENT1, STUDENT2, TEACHER
from ...hub.notebooks import notebook
from ...hub.web.api.ngshare_site import Site
from ...ports import free_port

Ask = Callable[..., object]


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """With cs101; ``url`` is where it listens."""
    made = Site(tmp_path)
    server = uvicorn.Server(
        uvicorn.Config(made.world.app, port=free_port(), log_config=None, lifespan="on")
    )
    thread = threading.Thread(target=server.run)
    listening = threading.Event()
    startup = server.startup

    async def started(sockets: object = None) -> None:
        await startup()
        listening.set()

    server.startup = started  # type: ignore[method-assign,assignment]  # to be told
    thread.start()
    assert listening.wait(30)
    made.url = f"http://127.0.0.1:{server.config.port}"
    yield made
    server.should_exit = True
    thread.join(30)


@pytest.fixture
def ask(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ask:
    """Run a command of nbgrader's exchange as a user, in a folder of their own."""

    def asked(who: Identity, what: str, assignment: str = "ps1", **options: object) -> object:
        monkeypatch.setenv("CARREL_URL", site.url)
        monkeypatch.setenv("CARREL_TOKEN", who.name)
        config = Config()
        configure(config)
        home = tmp_path / who.name
        home.mkdir(exist_ok=True)
        config.CourseDirectory.root = str(home)
        config.CourseDirectory.course_id = "cs101"
        config.CourseDirectory.assignment_id = assignment
        config.CourseDirectory.student_id = options.pop("student", "*")
        config.Exchange.assignment_dir = str(home)
        for name, value in options.items():
            setattr(config[f"Exchange{what}"], name, value)
        coursedir = CourseDirectory(config=config)
        made = getattr(ExchangeFactory(config=config), what)(
            coursedir=coursedir, authenticator=Authenticator(config=config), config=config
        )
        return made.start()

    return asked


@pytest.fixture
def work(site: Site, ask: Ask, tmp_path: Path) -> Path:
    """ps1 is released, and fetched by student1: their folder."""
    released = tmp_path / "teacher" / "release" / "ps1"
    released.mkdir(parents=True)
    (released / "ps1.ipynb").write_text("{}")
    (released / "data.csv").write_text("1\n")
    ask(TEACHER, "ReleaseAssignment")
    ask(STUDENT1, "FetchAssignment")
    return tmp_path / "student1" / "ps1"


def sent(site: Site) -> list[tuple[str, list[str], int]]:
    found = site.store.submissions("cs101")
    return [(each.person, [file.name for file in each.files.files], each.version) for each in found]


def test_exactly_the_files_of_the_assignment_are_sent(
    site: Site, ask: Ask, work: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (work / "feedback").mkdir()
    (work / "feedback" / "old.html").write_text("")
    (work / "extra").mkdir()
    (work / "extra" / "notes.txt").write_text("mine")
    (work / "link.txt").symlink_to("/etc/passwd")
    (work / "linked").symlink_to("/etc")
    with caplog.at_level(logging.WARNING, logger="traitlets"):
        ask(STUDENT1, "Submit")
    assert sent(site) == [("student1", ["data.csv", "extra/notes.txt", "ps1.ipynb"], 1)]
    assert "link.txt is a link and was left out." in caplog.text


def test_fetching_again_merges_a_newer_version(
    site: Site, ask: Ask, work: Path, tmp_path: Path
) -> None:
    (work / "ps1.ipynb").write_text('{"mine": 1}')
    (tmp_path / "teacher" / "release" / "ps1" / "data.csv").write_text("2\n")
    ask(TEACHER, "ReleaseAssignment", force=True)
    ask(STUDENT1, "FetchAssignment")
    assert (work / "ps1.ipynb").read_text() == '{"mine": 1}'
    assert (work / "data.csv").read_text() == "2\n"
    ask(STUDENT1, "Submit")
    assert sent(site) == [("student1", ["data.csv", "ps1.ipynb"], 2)]


def test_a_missing_notebook_is_reported_and_refused_in_strict_mode(
    site: Site, ask: Ask, work: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (work / "ps1.ipynb").rename(work / "mine.ipynb")
    with pytest.raises(ExchangeError, match=r"missing notebooks for the submission: ps1\.ipynb"):
        ask(STUDENT1, "Submit", strict=True)
    assert sent(site) == []
    with caplog.at_level(logging.WARNING, logger="traitlets"):
        ask(STUDENT1, "Submit")
    assert "Missing notebooks: ps1.ipynb" in caplog.text
    assert "Not released notebooks: mine.ipynb" in caplog.text
    assert len(sent(site)) == 1


def test_a_refusal_is_an_exchange_error_with_the_services_message(
    site: Site, ask: Ask, work: Path
) -> None:
    (work / "what?.txt").write_text("")
    with pytest.raises(ExchangeError, match=r"Illegal path\. The name 'what\?\.txt' has"):
        ask(STUDENT1, "Submit")
    with pytest.raises(ExchangeError, match="Permission denied"):
        ask(STUDENT1, "Collect")
    with pytest.raises(ExchangeError, match="add --force to overwrite: cs101 ps1"):
        ask(TEACHER, "ReleaseAssignment")
    with pytest.raises(ExchangeError, match="does not remove them"):
        ask(TEACHER, "List", inbound=True, remove=True)
    assert sent(site) == []


def test_collect_takes_the_submission_that_counts_or_the_last_on_time(
    site: Site, ask: Ask, work: Path
) -> None:
    ask(TEACHER, "ReleaseAssignment", force=True)
    versions = notebook("1"), notebook("2")
    for version in versions:
        site.clock.now += 60
        (work / "ps1.ipynb").write_text(version)
        ask(STUDENT1, "Submit")
    first, second = site.store.submissions("cs101")
    collected = work.parents[1] / "teacher" / "submitted" / "student1" / "ps1"
    site.services.submissions.choose(TEACHER, first.id, counts=True)
    ask(TEACHER, "Collect")
    assert (collected / "ps1.ipynb").read_text() == versions[0]
    site.services.submissions.choose(TEACHER, first.id, counts=False)
    ask(TEACHER, "Collect")
    assert (collected / "ps1.ipynb").read_text() == versions[0]
    ask(TEACHER, "Collect", update=True)
    assert (collected / "ps1.ipynb").read_text() == versions[1]
    assert not list(collected.parent.glob(".*"))
    assert second.number == 2


def test_a_list_has_what_the_extension_for_jupyterlab_reads(
    site: Site, ask: Ask, work: Path
) -> None:
    (other,) = ask(STUDENT2, "List", assignment="")  # type: ignore[misc]  # nbgrader has no types
    assert (other["status"], other["assignment_id"]) == ("released", "ps1")
    (mine,) = ask(STUDENT1, "List", assignment="")  # type: ignore[misc]
    assert (mine["status"], mine["path"]) == ("fetched", str(work))
    assert mine["notebooks"] == [{"notebook_id": "ps1", "path": str(work / "ps1.ipynb")}]
    ask(STUDENT1, "Submit")
    (submitted,) = ask(STUDENT1, "List", assignment="", cached=True)  # type: ignore[misc]
    (each,) = submitted["submissions"]
    assert (each["student_id"], each["local_feedback_path"]) == ("student1", None)
    assert ask(STUDENT2, "List", assignment="", inbound=True) == []
    ask(TEACHER, "List", remove=True)
    assert ask(STUDENT2, "List", assignment="") == []
