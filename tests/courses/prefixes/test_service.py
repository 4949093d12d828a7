"""Who switches a prefix on, what computes it, and which jobs begin with it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from carrel.courses.model.prefixes import PrefixSwitch
from carrel.courses.prefixes.attempt_files import read_header
from carrel.hub.attempts.compile_cache_side import COURSE, NEW, OWN, read_cache
from carrel.hub.attempts.compile_caches import OwnerCompileCaches
from carrel.hub.attempts.journal import Journal
from carrel.hub.controller.jobs import JobController
from carrel.hub.errors import Forbidden, InvalidInput
from carrel.hub.records.audit import AuditAction, ChangeFilter
from carrel.hub.records.identity import Identity
from carrel.hub.records.leases import LeaseRecord
from carrel.hub.records.requests import Cause, CauseCode, RequestRecord
from carrel.hub.requests.attempt_reports import AttemptReports
from carrel.hub.requests.jobs import JobService
from carrel.hub.scheduling.model.plan import Start
from carrel.hub.scheduling.model.states import State
from carrel.hub.schemas import JobIn
from carrel.hub.schemas.courses import PrefixIn, PrefixOut
from carrel.hub.transitions import lifecycle

from ...hub.doubles import ADMIN, STUDENT1, STUDENT2, TEACHER
from .. import course_site
from ..course_site import CourseSite, files
from ..prefix_notebooks import ANSWER, text

ON, OFF = PrefixIn(on=True), PrefixIn(on=False)
GIVEN = ("import pandas as pd\nframe = pd.read_csv('data.csv')", "rows = list(frame)")
NOTEBOOK = text(*GIVEN, ("answer = 0", ANSWER))
SECONDS = 60.0


@pytest.fixture
def site(tmp_path: Path) -> CourseSite:
    made = course_site.build_site(tmp_path, prefixes=tmp_path / "prefixes")
    made.create(students="student,name\nstudent1,Ada\nstudent2,Ben\n")
    release(made, NOTEBOOK)
    return made


@pytest.fixture
def caching(tmp_path: Path) -> CourseSite:
    caches = OwnerCompileCaches(tmp_path / "compile-caches", 1 << 20)
    made = course_site.build_site(tmp_path, prefixes=tmp_path / "prefixes", compile_caches=caches)
    made.create(students="student,name\nstudent1,Ada\nstudent2,Ben\n")
    release(made, NOTEBOOK)
    return made


def release(site: CourseSite, notebook: str, data: bytes = b"a,b\n1,2\n") -> None:
    content = files({"ps1.ipynb": notebook.encode(), "data.csv": data})
    site.release(files=content, ungraded=True)


def switch(site: CourseSite, body: PrefixIn, who: Identity = TEACHER) -> PrefixOut:
    return site.services.prefixes.switch(who, "cs101", "ps1", body)


def shown(site: CourseSite) -> PrefixOut:
    return site.services.prefixes.show(TEACHER, "cs101", "ps1")


def request(site: CourseSite, request_id: str) -> RequestRecord:
    return site.services.access.context.store.request(request_id)


def submitted(
    site: CourseSite, who: Identity, notebook: str = NOTEBOOK, **more: object
) -> RequestRecord:
    body = {
        "group": "cs101",
        "notebook": {"name": "ps1.ipynb", "content": notebook},
        "devices": 0,
        "seconds": 600,
    } | more
    made = JobService(site.services.access.context).submit(who, JobIn.model_validate(body))
    return request(site, made.id)


def started(site: CourseSite, request_id: str, devices: tuple[str, ...] = ()) -> LeaseRecord:
    context = site.services.access.context
    starts = [Start(request_id=request_id, devices=devices)]
    (lease,) = context.store.grant(starts, now=site.clock(), lease_seconds=60.0)
    JobController(context).start(lease, request(site, request_id))
    return lease


def folder_of(site: CourseSite, lease: LeaseRecord) -> Path:
    return site.services.access.context.files.attempt_folder(lease.request_id, lease.epoch)


def compiled(content: bytes) -> bytes:
    """What a job leaves of its compiler, as `hub.attempts.compile_cache_side` does."""
    header = {
        "machine": "m",
        "graphs": 1,
        "bytes": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
        "request": "",
    }
    return json.dumps(header).encode() + b"\n" + content


def compute(
    site: CourseSite, request_id: str, *, saves: bool = True, code: bytes | None = None
) -> None:
    """Let the computation of the course end, as its runner would."""
    context = site.services.access.context
    order = request(site, request_id)
    lease = started(site, request_id, tuple(f"SIM-{n}" for n in range(order.devices)))
    folder = folder_of(site, lease)
    if saves:
        (folder / "prefix.pkl").write_bytes(b"variables")
        (folder / "output.ipynb").write_text(NOTEBOOK)
        header = {
            "first": 1,
            "cells": 3,
            "seconds": SECONDS,
            "data": "",
            "sha256": hashlib.sha256(b"variables").hexdigest(),
        }
        (folder / "prefix.json").write_text(json.dumps(header))
    if code is not None:
        (folder / NEW).write_bytes(code)
        leave_compiled(site, lease)
    gone(site, lease)
    end(site, lease, State.SUCCEEDED)
    assert context.store.request(request_id).state is State.SUCCEEDED


def gone(site: CourseSite, lease: LeaseRecord) -> None:
    """Let the service find that an attempt has no processes any more."""
    JobController(site.services.access.context).discard_offers(
        lease, request(site, lease.request_id)
    )


def left(site: CourseSite, lease: LeaseRecord) -> set[str]:
    return {path.name for path in folder_of(site, lease).iterdir()} - {"output.ipynb"}


def end(site: CourseSite, lease: LeaseRecord, state: State) -> None:
    store, now = site.services.access.context.store, site.clock()
    cause = Cause(code=CauseCode.SUCCEEDED, message="Ran.")
    store.apply(lease.request_id, lifecycle.stop, state, cause, now=now)
    store.apply_to_lease(lease.id, lifecycle.finish, now=now, charge_until=now)


def leave_compiled(site: CourseSite, lease: LeaseRecord) -> None:
    """Report that an attempt has compiled something, as its runner does."""
    path = folder_of(site, lease).with_name(f"{lease.id}.jsonl")
    event = Journal(path).write("compile_cache", {})
    AttemptReports(site.services.access.context).store_events(lease.id, [event])


def offered(site: CourseSite, lease: LeaseRecord) -> bool:
    return read_header(folder_of(site, lease)) is not None


def begun(site: CourseSite, lease: LeaseRecord, tmp_path: Path) -> None:
    """Report that an attempt has begun with its prefix."""
    journal = Journal(tmp_path / f"{lease.id}.jsonl")
    event = journal.write("prefix", {"cells": 2})
    reports = AttemptReports(site.services.access.context)
    reports.store_events(lease.id, [event])
    reports.store_events(lease.id, [event])


def test_the_computation_is_a_job_of_the_teacher_that_the_course_pays(site: CourseSite) -> None:
    (notebook,) = switch(site, ON).notebooks
    record = request(site, notebook.request)
    assert (record.owner, record.group, record.devices) == ("teacher", "cs101", 0)
    assert record.job is not None
    assert record.job.computes_prefix
    assert record.labels == {"course": "cs101", "assignment": "ps1", "prefix": "computation"}
    content = site.services.access.context.files.input_path(record.id).read_text()
    assert len(json.loads(content)["cells"]) == 3
    assert (notebook.state, notebook.notebook) == ("computing", "ps1.ipynb")
    # Switching it on again computes nothing again.
    assert [each.request for each in switch(site, ON).notebooks] == [record.id]


def test_each_job_gets_a_copy_of_its_own_and_what_it_saves_counts_once(
    site: CourseSite, tmp_path: Path
) -> None:
    (notebook,) = switch(site, PrefixIn(on=True, devices=1)).notebooks
    early = started(site, submitted(site, STUDENT1, devices=1).id, ("SIM-1",))
    assert not offered(site, early)
    end(site, early, State.SUCCEEDED)
    compute(site, notebook.request)

    first = started(site, submitted(site, STUDENT1, devices=1).id, ("SIM-0",))
    second = started(site, submitted(site, STUDENT2, devices=1).id, ("SIM-1",))
    assert [offered(site, lease) for lease in (first, second)] == [True, True]
    copy = folder_of(site, first) / "prefix.pkl"
    copy.write_bytes(b"changed")
    assert (folder_of(site, second) / "prefix.pkl").read_bytes() == b"variables"
    kept = tmp_path / "prefixes" / "cs101" / notebook.request / "prefix.pkl"
    assert (kept.read_bytes(), kept.stat().st_mode & 0o222) == (b"variables", 0)

    assert (shown(site).jobs, shown(site).device_seconds) == (0, 0.0)
    begun(site, first, tmp_path)
    site.services.prefixes.used(early.request_id, early.epoch)  # it had no prefix
    found = shown(site)
    assert (found.jobs, found.seconds, found.device_seconds) == (1, SECONDS, SECONDS)
    assert [each.state for each in found.notebooks] == ["ready"]
    assert [each.jobs for each in site.services.prefixes.course(TEACHER, "cs101").prefixes] == [1]


def test_what_the_course_compiled_is_offered_and_what_a_student_compiled_is_not(
    caching: CourseSite,
) -> None:
    site = caching
    (notebook,) = switch(site, ON).notebooks
    early = started(site, submitted(site, STUDENT1).id)
    (folder_of(site, early) / NEW).write_bytes(compiled(b"of student1"))
    leave_compiled(site, early)
    end(site, early, State.SUCCEEDED)
    compute(site, notebook.request, code=compiled(b"of the course"))

    mine = folder_of(site, started(site, submitted(site, STUDENT1).id))
    other = folder_of(site, started(site, submitted(site, STUDENT2).id))
    for folder in (mine, other):
        header, content = read_cache(str(folder / COURSE))
        assert (header["request"], content) == (notebook.request, b"of the course")
        assert (folder / COURSE).stat().st_mode & 0o077 == 0
    assert read_cache(str(mine / OWN))[1] == b"of student1"
    assert not (other / OWN).exists()
    # The teacher has submitted the computation, but it is not one of their own programs.
    assert site.services.access.context.compile_caches.kept("teacher") == ()

    switch(site, OFF)
    without = folder_of(site, started(site, submitted(site, STUDENT2).id))
    assert not (without / COURSE).exists()


def test_a_changed_notebook_gets_nothing_of_the_course(caching: CourseSite) -> None:
    site = caching
    (notebook,) = switch(site, ON).notebooks
    compute(site, notebook.request, code=compiled(b"of the course"))
    changed = text(f"{GIVEN[0]} # changed", GIVEN[1], ("answer = 1", ANSWER))
    folder = folder_of(site, started(site, submitted(site, STUDENT1, changed).id))
    assert not (folder / COURSE).exists()


def test_a_prefix_whose_storing_was_interrupted_keeps_its_cache(
    caching: CourseSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = caching
    (notebook,) = switch(site, ON).notebooks
    compute(site, notebook.request, code=compiled(b"of the course"))
    store = type(site.services.prefixes.store)
    first = submitted(site, STUDENT1).id
    with monkeypatch.context() as patch:
        patch.setattr(store, "put", interrupted)
        with pytest.raises(KeyboardInterrupt):
            started(site, first)
    folder = folder_of(site, started(site, submitted(site, STUDENT2).id))
    assert read_cache(str(folder / COURSE))[1] == b"of the course"


@pytest.mark.parametrize("wanted", [True, False], ids=["wanted", "switched-off"])
def test_what_a_computation_saves_stays_until_it_is_kept_or_not_wanted(
    caching: CourseSite, monkeypatch: pytest.MonkeyPatch, wanted: bool
) -> None:
    site = caching
    (notebook,) = switch(site, ON).notebooks
    compute(site, notebook.request, code=compiled(b"of the course"))
    lease = request(site, notebook.request).lease
    assert lease is not None
    assert left(site, lease) == {"prefix.pkl", "prefix.json", NEW}
    if wanted:
        job = submitted(site, STUDENT1).id
        with monkeypatch.context() as patch:
            patch.setattr(type(site.services.prefixes.store), "put", interrupted)
            with pytest.raises(KeyboardInterrupt):
                started(site, job)
        assert [each.state for each in shown(site).notebooks] == ["ready"]
        mine = folder_of(site, started(site, submitted(site, STUDENT2).id))
        assert read_cache(str(mine / COURSE))[1] == b"of the course"
    else:
        switch(site, OFF)
    assert left(site, lease) == set()


def test_nothing_stays_of_a_computation_that_is_switched_off_while_it_runs(
    caching: CourseSite,
) -> None:
    site = caching
    (notebook,) = switch(site, ON).notebooks
    lease = started(site, notebook.request)
    switch(site, OFF)
    for name in ("prefix.pkl", "prefix.pkl.part", "prefix.json", NEW):
        (folder_of(site, lease) / name).write_bytes(b"x")
    gone(site, lease)
    assert left(site, lease) == set()


def test_an_attempt_that_is_killed_before_it_used_its_prefix_leaves_no_copy(
    caching: CourseSite,
) -> None:
    site = caching
    (notebook,) = switch(site, ON).notebooks
    compute(site, notebook.request, code=compiled(b"of the course"))
    lease = started(site, submitted(site, STUDENT1).id)
    (folder_of(site, lease) / ".prefix.pkl.part").write_bytes(b"x")
    assert {"prefix.pkl", "prefix.json", "prefix.ipynb", COURSE} <= left(site, lease)
    gone(site, lease)
    gone(site, lease)
    assert left(site, lease) == set()


def test_a_teacher_sees_and_deletes_what_the_course_compiled_and_keeps_the_prefix(
    caching: CourseSite,
) -> None:
    site, prefixes = caching, caching.services.prefixes
    (notebook,) = switch(site, ON).notebooks
    assert notebook.compiled_bytes == 0
    code = compiled(b"of the course")
    compute(site, notebook.request, code=code)
    (notebook,) = shown(site).notebooks
    assert notebook.compiled_bytes >= len(code)
    running = folder_of(site, started(site, submitted(site, STUDENT1).id))
    (running / NEW).write_bytes(compiled(b"of student1"))
    with pytest.raises(Forbidden):
        prefixes.clear_compiled(STUDENT1, "cs101", "ps1")

    for _ in range(2):  # it is safe to repeat
        (notebook,) = prefixes.clear_compiled(TEACHER, "cs101", "ps1").notebooks
        assert (notebook.state, notebook.compiled_bytes) == ("ready", 0)
    assert read_cache(str(running / COURSE))[1] == b"of the course"
    lease = started(site, submitted(site, STUDENT2).id)
    assert offered(site, lease)
    assert not (folder_of(site, lease) / COURSE).exists()
    (change,) = site.services.access.context.store.changes(
        ChangeFilter(action=AuditAction.PREFIX_SET, limit=1)
    )
    assert (change.target, change.who, change.after) == (
        "cs101/ps1",
        "teacher",
        {"compiled_bytes": 0},
    )
    switch(site, OFF)
    assert prefixes.clear_compiled(TEACHER, "cs101", "ps1").notebooks == []
    (notebook,) = switch(site, ON).notebooks
    compute(site, notebook.request, code=code)
    assert shown(site).notebooks[0].compiled_bytes >= len(code)


def interrupted(*_: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("code", [b"", b"{}\n", compiled(b"code")[:-1]])
def test_a_damaged_cache_of_the_computation_is_not_offered(
    caching: CourseSite, code: bytes
) -> None:
    site = caching
    (notebook,) = switch(site, ON).notebooks
    compute(site, notebook.request, code=code)
    lease = started(site, submitted(site, STUDENT1).id)
    assert offered(site, lease)
    assert not (folder_of(site, lease) / COURSE).exists()


@pytest.mark.parametrize(
    ("notebook", "more"),
    [
        (text(f"{GIVEN[0]} # changed", GIVEN[1], ("answer = 1", ANSWER)), {}),
        (NOTEBOOK, {"labels": {"prefix": "off"}}),
        (NOTEBOOK, {"devices": 1}),
    ],
)
def test_other_jobs_run_all_their_cells(
    site: CourseSite, notebook: str, more: dict[str, object]
) -> None:
    compute(site, switch(site, ON).notebooks[0].request)
    record = submitted(site, STUDENT1, notebook, **more)
    lease = started(site, record.id, tuple(f"SIM-{n}" for n in range(record.devices)))
    assert not offered(site, lease)


def test_nothing_is_shared_while_it_is_off(site: CourseSite, tmp_path: Path) -> None:
    assert not offered(site, started(site, submitted(site, STUDENT1).id))
    (notebook,) = switch(site, ON).notebooks
    switch(site, OFF)
    assert request(site, notebook.request).state is State.CANCELLED
    (notebook,) = switch(site, ON).notebooks
    compute(site, notebook.request)
    assert offered(site, started(site, submitted(site, STUDENT1).id))
    assert switch(site, OFF).notebooks == []
    assert not offered(site, started(site, submitted(site, STUDENT2).id))
    assert list((tmp_path / "prefixes" / "cs101").iterdir()) == []


def test_a_computation_belongs_to_a_present_teacher(site: CourseSite) -> None:
    store, prefixes = site.services.access.context.store, site.services.prefixes
    switch(site, ON)

    def owner(line: str, *teachers: str) -> str:
        store.set_teachers("cs101", ["teacher"])
        prefixes.store.switch_off("cs101", "ps1")  # a release computes it too
        release(site, text(*GIVEN, line, ("answer = 0", ANSWER)))
        prefixes.store.switch_on(
            PrefixSwitch(course="cs101", assignment="ps1", devices=0, by="teacher", at=1.0)
        )
        store.set_teachers("cs101", teachers)
        if problem := prefixes.released("cs101", "ps1"):
            return problem
        (notebook,) = prefixes.show(ADMIN, "cs101", "ps1").notebooks
        return request(site, notebook.request).owner

    assert owner("one = 1", "another", "teacher") == "teacher"
    assert owner("two = 2", "another") == "another"
    assert owner("three = 3") == "admin"  # who created the course
    site.hub.people.discard("admin")
    assert owner("four = 4").startswith("The prefix is not computed: cs101 has no teacher")
    # Jobs run all their cells meanwhile.
    assert not offered(site, started(site, submitted(site, STUDENT1).id))


@pytest.mark.parametrize("changed", ["notebook", "data"])
def test_a_new_version_has_a_new_prefix(site: CourseSite, tmp_path: Path, changed: str) -> None:
    (before,) = switch(site, ON).notebooks
    compute(site, before.request)
    assert [each.state for each in shown(site).notebooks] == ["ready"]
    notebook = (
        text(*GIVEN, "rows.sort()", ("answer = 0", ANSWER)) if changed == "notebook" else NOTEBOOK
    )
    release(site, notebook, b"a,b\n1,2\n" if changed == "notebook" else b"a,b\n")
    (after,) = shown(site).notebooks
    assert (after.request != before.request, after.state) == (True, "computing")
    assert not (tmp_path / "prefixes" / "cs101" / before.request).exists()
    assert not offered(site, started(site, submitted(site, STUDENT1).id))


def test_a_computation_without_a_result_says_so_and_is_tried_again(site: CourseSite) -> None:
    (notebook,) = switch(site, ON).notebooks
    compute(site, notebook.request, saves=False)
    (notebook,) = shown(site).notebooks
    assert (notebook.state, notebook.why_not) == (
        "none",
        f"The log of {notebook.request} says why no cell can be restored.",
    )
    assert not offered(site, started(site, submitted(site, STUDENT1).id))
    assert switch(site, ON).notebooks[0].request != notebook.request


def test_only_teachers_switch_it_on_and_only_if_a_cell_can_run_once(site: CourseSite) -> None:
    with pytest.raises(Forbidden):
        switch(site, ON, STUDENT1)
    with pytest.raises(Forbidden):
        site.services.prefixes.show(STUDENT1, "cs101", "ps1")
    release(site, text(("answer = 0", ANSWER)))
    with pytest.raises(InvalidInput, match="cell 1 is for students to edit"):
        switch(site, ON)
    assert site.lines()[-1][1] != "prefix set"
