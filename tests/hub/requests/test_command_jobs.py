"""Commands, uploads, labels, pages and progress: errors and permissions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from carrel.hub.errors import CarrelError, InvalidInput, NotFound
from carrel.hub.groups.membership import Membership
from carrel.hub.records.events import EventRecord
from carrel.hub.requests.jobs import JobService
from carrel.hub.requests.pagination import RequestQuery
from carrel.hub.requests.queries import RequestQueries
from carrel.hub.runtime.context import Context
from carrel.hub.runtime.progress_cache import progress_after
from carrel.spawners.fake import FakeBackend

from ...stores import new_store
from ..admission.archives import member, packed, text
from ..doubles import ADMIN, STUDENT1, STUDENT2, TEACHER, Clock, FakeHub, build
from .samples import command, job, named, stored


@pytest.fixture
def context(tmp_path: Path) -> Context:
    return build(new_store(), FakeBackend(), FakeHub(), Clock(), tmp_path)


def test_a_command_is_queued_with_its_archive(context: Context) -> None:
    archive = packed(member("train.py", size=3), content=b"1+1")
    made = JobService(context).submit(
        STUDENT1, command(archive=text(archive), memory_bytes=8 << 30, retries=2)
    )
    assert (made.command, made.notebook, made.memory_bytes, made.retries) == (
        ["python", "train.py"], "", 8 << 30, 2,
    )  # fmt: skip  # grouped by meaning
    assert context.files.archive_path(made.id).read_bytes() == archive
    assert not context.files.input_path(made.id).exists()
    with pytest.raises(NotFound, match="is a command"):
        RequestQueries(context).output(STUDENT1, made.id)


def test_a_job_without_internet_is_accepted_if_the_engine_can_block_it(tmp_path: Path) -> None:
    engine = FakeBackend(keeps_inside=True)
    context = build(new_store(), engine, FakeHub(), Clock(), tmp_path)
    made = JobService(context).submit(STUDENT1, command(internet=False))
    assert not made.internet
    assert not JobService(context).same_job(STUDENT1, made.id).internet
    assert JobService(context).submit(STUDENT1, command()).internet


def test_a_working_folder_lies_below_the_home(context: Context) -> None:
    home = context.files.home("student1")
    (home / "code").mkdir()
    (home / "link").symlink_to(home / "code")
    (home / "out").symlink_to("/etc")
    for given, kept in (("code", "code"), ("./code/../code", "code"), ("link", "code"), (".", "")):
        assert JobService(context).submit(STUDENT1, command(workdir=given)).workdir == kept
    for bad in ("../student2", "/etc", "out", "no", "code\0", "x" * 1000, str(home) + "2"):
        with pytest.raises(InvalidInput, match="no folder"):
            JobService(context).submit(STUDENT1, command(workdir=bad))


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "neither": ({"command": []}, "Neither a notebook nor a command"),
    "both": ({"notebook": named("a.ipynb")}, "Both a notebook and a command"),
    "no program": ({"command": [" ", "x"]}, "has no program"),
    "NUL": ({"command": ["a\0"]}, "invalid characters"),
    "too long": ({"command": ["x" * 4096] * 20}, "KiB"),
    "parameters": ({"parameters": {"a": 1}}, "has no parameters"),
    "a kernel": ({"kernel": "python3"}, "has no kernel"),
    "an output": ({"output": "a.ipynb"}, "has no output"),
    "little memory": ({"memory_bytes": 1000}, "Memory must be between 64 MiB and 1 PiB"),
    "negative memory": ({"memory_bytes": -1}, "Memory must be between 64 MiB and 1 PiB"),
    "endless memory": ({"memory_bytes": 1 << 70}, "Memory must be between 64 MiB and 1 PiB"),
    "no internet": ({"internet": False}, "cannot be kept from the internet"),
    "retries": ({"retries": 11}, "not possible"),
    "negative retries": ({"retries": -1}, "not possible"),
    "labels": ({"labels": {str(n): "" for n in range(33)}}, "33 labels"),
    "a label's name": ({"labels": {"a b": "1"}}, "The label 'a b'"),
    "a label's value": ({"labels": {"a": "1\n"}}, "value of the label a"),
    "a key": ({"idempotency_key": "a\0"}, "invalid characters"),
    "an archive and a folder": ({"archive": "eA==", "workdir": "code"}, "Both a working folder"),
    "a bad archive": ({"archive": "eA=="}, "cannot be read"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_gets_a_sentence_and_nothing_is_stored(case: str, context: Context) -> None:
    changes, words = BAD[case]
    with pytest.raises(CarrelError, match=words) as refused:
        JobService(context).submit(STUDENT1, command(**changes))
    assert refused.value.accepted
    assert stored(context) == 0


def test_pages_by_label_owner_and_cursor(context: Context) -> None:
    made = [
        JobService(context).submit(STUDENT1, command(labels={"sweep": str(n % 2)})).id
        for n in range(5)
    ]
    theirs = JobService(context).submit(STUDENT2, command(labels={"sweep": "0"})).id

    def ids(who: Any, **wanted: Any) -> list[str]:
        found = RequestQueries(context).find(who, RequestQuery(**wanted))
        return [request.id for request in found.requests]

    assert ids(STUDENT1, labels=("sweep=0",)) == [made[4], made[2], made[0]]
    first = RequestQueries(context).find(STUDENT1, RequestQuery(limit=2))
    assert first.next == made[3]
    last = RequestQueries(context).find(STUDENT1, RequestQuery(limit=3, cursor=first.next))
    assert ([r.id for r in last.requests], last.next) == ([made[2], made[1], made[0]], "")
    assert ids(STUDENT1, owner="student2") == []
    assert ids(TEACHER, owner="student2") == [theirs]
    assert ids(TEACHER, mine=False, labels=("sweep=0",)) == [theirs, made[4], made[2], made[0]]
    assert len(ids(ADMIN, mine=False)) == 6
    for cursor in (theirs, "j-nothing"):
        with pytest.raises(InvalidInput, match="Invalid cursor"):
            ids(STUDENT1, cursor=cursor)
    for label in ("sweep", "a b=1", "=1"):
        with pytest.raises(InvalidInput):
            ids(STUDENT1, labels=(label,))


def test_files_of_other_users_are_not_found(context: Context) -> None:
    made = JobService(context).submit(STUDENT1, job())
    for ask in (
        lambda: RequestQueries(context).files_of(STUDENT2, made.id),
        lambda: RequestQueries(context).open_file(STUDENT2, made.id, "a"),
        lambda: RequestQueries(context).events(STUDENT2, made.id),
        lambda: RequestQueries(context).log(STUDENT2, made.id),
    ):
        with pytest.raises(NotFound, match=f"There is no request {made.id}"):
            ask()


def test_groups_come_with_limits_and_teachers(context: Context) -> None:
    (group,) = Membership.of(context).groups(STUDENT1).groups
    assert (group.name, group.max_devices_per_user, group.teachers) == ("cs101", 2, ["teacher"])
    assert group.idle_seconds == 1800


def event(kind: str, **data: Any) -> EventRecord:
    return EventRecord(id=1, request_id="j", epoch=1, at=0.0, kind=kind, data=data)


def test_progress_inside_a_cell_and_of_a_command() -> None:
    found = progress_after(None, event("cells", cells=3))
    found = progress_after(found, event("cell_started", number=1))
    found = progress_after(found, event("progress", number=1, done=3, of=10, text="epoch"))
    assert found is not None
    assert found.step is not None
    assert (found.step.done, found.step.of, found.step.text) == (3, 10, "epoch")
    for bad in ({"done": "x"}, {"done": float("nan")}, {"done": 10**400}, {}):
        assert progress_after(found, event("progress", **bad)) == found
    failed = progress_after(found, event("cell_failed", number=1, ename="E"))
    assert failed is not None
    assert failed.current == 1
    finished = progress_after(found, event("cell_finished", number=1))
    assert finished is not None
    assert (finished.done, finished.step) == (1, None)
    resumed = progress_after(
        progress_after(None, event("cells", cells=3)), event("resumed", cells=2)
    )
    assert resumed is not None
    assert (resumed.done, resumed.cells) == (2, 3)
    alone = progress_after(None, event("progress", done=1))
    assert alone is not None
    assert (alone.cells, alone.step is not None) == (0, True)
