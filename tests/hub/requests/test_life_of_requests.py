"""Submission, sessions and cancellation: valid requests, and errors, which store nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from carrel.hub.attempts.notebook_format import read_notebook
from carrel.hub.errors import (
    CarrelError,
    Conflict,
    InvalidInput,
    NotAMember,
    NotFound,
    OverMaximum,
    TooLarge,
    Unavailable,
)
from carrel.hub.requests.jobs import JobService
from carrel.hub.requests.queries import RequestQueries
from carrel.hub.requests.termination import RequestTermination
from carrel.hub.runtime.context import Context
from carrel.hub.scheduling.model.snapshot import Group
from carrel.hub.schemas import NotebookIn, OpenSessionIn, SessionIn, StopIn
from carrel.hub.sessions.lifecycle import SessionLifecycle
from carrel.spawners.fake import FakeBackend

from ...odd_notebooks import ODD
from ...stores import new_store
from ..doubles import ADMIN, STRANGER, STUDENT1, STUDENT2, TEACHER, Clock, FakeHub, build, device
from ..notebooks import notebook
from .samples import job, named, stored


@pytest.fixture
def hub() -> FakeHub:
    return FakeHub()


@pytest.fixture
def context(tmp_path: Path, hub: FakeHub) -> Context:
    return build(new_store(), FakeBackend(), hub, Clock(), tmp_path)


def test_a_job_is_queued_with_its_notebook(context: Context) -> None:
    made = JobService(context).submit(STUDENT1, job())
    assert (made.state, made.owner, made.group, made.devices) == ("queued", "student1", "cs101", 1)
    assert made.output == "train.ipynb"
    assert context.files.input_path(made.id).exists()


def test_a_script_is_stored_as_a_notebook(context: Context) -> None:
    content = '# %% tags=["parameters"]\nlr = 0.1\n# %%\nprint(lr)\n'
    made = JobService(context).submit(STUDENT1, job(notebook=named("train.py", content)))
    assert (made.notebook, made.output) == ("train.ipynb", "train.ipynb")
    stored_as = read_notebook(made.notebook, context.files.input_path(made.id).read_bytes()).node
    assert [cell.source for cell in stored_as.cells] == ["lr = 0.1", "print(lr)"]
    again = JobService(context).same_job(STUDENT1, made.id)
    assert again.notebook is not None
    assert again.notebook.name == "train.ipynb"


def test_sources_as_lists_of_lines_are_read(context: Context) -> None:
    """Notebook files have this form."""
    content = json.loads(notebook("print(lr)"))
    content["cells"][0]["source"] = ["lr = 0.1\n", "epochs = 3"]
    made = JobService(context).submit(STUDENT1, job(notebook=named("a.ipynb", json.dumps(content))))
    assert made.parameters == {"lr": 0.05}


def test_an_odd_notebook_is_repaired_at_submission_and_the_owner_is_told(context: Context) -> None:
    content, repairs = ODD["collapsed in a code cell"]
    sent = job(notebook=named("a.ipynb", content), parameters={})
    made = JobService(context).submit(STUDENT1, sent)
    assert made.notes == list(repairs)
    assert RequestQueries(context).request(STUDENT1, made.id).notes == list(repairs)
    stored_text = context.files.input_path(made.id).read_bytes()
    assert read_notebook("a.ipynb", stored_text).repairs == ()


@pytest.mark.parametrize("kernel", ["Python3", "python"])
def test_a_kernel_is_stored_by_its_installed_name(context: Context, kernel: str) -> None:
    made = JobService(context).submit(STUDENT1, job(kernel=kernel))
    record = context.store.request(made.id)
    assert record.job is not None
    assert record.job.kernel == "python3"


def test_the_same_key_makes_one_job(context: Context) -> None:
    first = JobService(context).submit(STUDENT1, job(idempotency_key="once"))
    again = JobService(context).submit(STUDENT1, job(idempotency_key="once"))
    assert first.id == again.id
    assert stored(context) == 1
    assert len(list((context.files.input_path(first.id).parents[1]).iterdir())) == 1


BAD_JOBS: dict[str, tuple[dict[str, Any], type[CarrelError], str]] = {
    "a file that is no notebook": (
        {"notebook": named("train.ipynb", "import torch")},
        InvalidInput,
        "is not a notebook",
    ),
    "JSON that is no notebook": (
        {"notebook": named("a.ipynb", "[1]")},
        InvalidInput,
        "not a noteb",
    ),
    "a notebook of a newer format": (
        {"notebook": named("a.ipynb", notebook("1", nbformat=5))},
        InvalidInput,
        "notebook format 5, which is newer",
    ),
    "a parameter that the notebook lacks": (
        {"parameters": {"learning_rate": 1}},
        InvalidInput,
        "It has: lr, epochs.",
    ),
    "parameters for a notebook without any": (
        {"notebook": named("a.ipynb", notebook("1", parameters=None))},
        InvalidInput,
        "has no parameters",
    ),
    "99 devices": ({"devices": 99}, OverMaximum, "99"),
    "more devices than one person may hold": ({"devices": 3}, OverMaximum, "at most 2 devices"),
    "negative devices": ({"devices": -1}, InvalidInput, "-1"),
    "no time": ({"seconds": 0}, InvalidInput, "0"),
    "negative time": ({"seconds": -5}, InvalidInput, "minus 5"),
    "more time than the group allows": ({"seconds": 9 * 3600}, OverMaximum, "8 h"),
    "an unknown group": ({"group": "cs999"}, NotAMember, "There is no group 'cs999'"),
    "an output outside the folder": ({"output": "../x.ipynb"}, InvalidInput, "no folder"),
    "an output name with a format field": (
        {"output": "{x.__class__}.ipynb"},
        InvalidInput,
        "braces",
    ),
    "an output that is no notebook": ({"output": "a.txt"}, InvalidInput, "train.ipynb"),
    "a hidden output": ({"output": ".ipynb"}, InvalidInput, "plain file name"),
    "a kernel that is not installed": ({"kernel": "julia-9"}, InvalidInput, "Installed: python3"),
    "a notebook with broken UTF-8": (
        {"notebook": NotebookIn.model_construct(name="a.ipynb", content=notebook("1") + "\udcff")},
        InvalidInput,
        "not valid Unicode",
    ),
    "cells that are no cells": (
        {"notebook": named("a.ipynb", '{"nbformat": 4, "nbformat_minor": 5, "cells": [3]}')},
        InvalidInput,
        "not a valid notebook",
    ),
    "a 200 MB notebook": (
        {"notebook": named("big.ipynb", '{"x": "' + "a" * (200 << 20) + '"}')},
        TooLarge,
        "200 MiB",
    ),
}


@pytest.mark.parametrize("case", BAD_JOBS)
def test_bad_input_gets_a_sentence_and_nothing_is_stored(case: str, context: Context) -> None:
    changes, kind, words = BAD_JOBS[case]
    with pytest.raises(kind) as refused:
        JobService(context).submit(STUDENT1, job(**changes))
    assert words in str(refused.value)
    assert refused.value.accepted
    assert stored(context) == 0
    assert not list(context.files.input_path("x").parents[1].glob("j-*"))


def test_more_devices_than_one_node_has_are_refused_with_what_a_node_has(
    context: Context,
) -> None:
    """A request gets devices of one node only."""
    wide = Group(name="cs101", max_devices=8, max_devices_per_user=8, max_seconds=8 * 3600)
    context.store.put_group(wide)
    context.store.sync_devices("other", [device(index, node="other") for index in (2, 3)])
    for ask in (
        lambda: JobService(context).submit(STUDENT1, job(devices=3)),
        lambda: SessionLifecycle(context).start(
            STUDENT1, "", SessionIn(devices=3, hours=1, group="cs101")
        ),
    ):
        with pytest.raises(OverMaximum) as refused:
            ask()
        assert str(refused.value) == (
            "No node has more than 2 devices; you asked for 3. Ask for 0 to 2."
        )
    assert stored(context) == 0


def test_usual_file_names_are_accepted(context: Context) -> None:
    for name in (
        "Übung 1 \N{EN DASH} Lösung, Teil 2.ipynb",
        "Ada's notes & [draft].ipynb",
        "日本語.ipynb",
        "U\N{COMBINING DIAERESIS}bung.ipynb",  # decomposed Unicode, as some file systems store it
        "_tmp.ipynb",
    ):
        assert JobService(context).submit(STUDENT1, job(notebook=named(name))).notebook == name


def test_case_27_names_that_traverse_or_format_are_refused(context: Context) -> None:
    for name in (
        "../x.ipynb",
        "a/b.ipynb",
        "{x.__class__}.ipynb",
        "x\n.ipynb",
        "..ipynb",
        "-o.ipynb",
        "a\\b.ipynb",
        "a\N{RIGHT-TO-LEFT OVERRIDE}b.ipynb",
        "a\x00.ipynb",
        "a\t.ipynb",
    ):
        with pytest.raises(InvalidInput):
            JobService(context).submit(STUDENT1, job(output=name))
        with pytest.raises(InvalidInput):
            JobService(context).submit(STUDENT1, job(notebook=named(name)))


def test_a_user_who_is_not_a_member_is_refused(context: Context) -> None:
    with pytest.raises(NotAMember, match="not a member of cs101"):
        JobService(context).submit(STRANGER, job())


def test_membership_is_read_from_the_hub_at_admission(context: Context, hub: FakeHub) -> None:
    hub.members["cs101"].discard("student1")
    with pytest.raises(NotAMember):
        JobService(context).submit(STUDENT1, job())


def test_a_session_is_queued_and_the_hub_is_asked(context: Context, hub: FakeHub) -> None:
    made = SessionLifecycle(context).start(STUDENT1, "", SessionIn(devices=1, hours=1.5, group=""))
    assert (made.state, made.seconds, made.group) == ("queued", 5400, "cs101")
    assert hub.asked == [("start", "student1", "")]


def test_a_session_survives_a_hub_that_is_away_after_admission(
    context: Context, hub: FakeHub
) -> None:
    def away(user: str, server: str, options: object) -> None:
        hub.away = True
        raise Unavailable("JupyterHub does not answer.")

    hub.start_server = away  # type: ignore[method-assign, assignment]
    made = SessionLifecycle(context).start(STUDENT1, "", SessionIn())
    assert RequestQueries(context).request(STUDENT1, made.id).state == "queued"


def test_a_session_has_no_log_and_no_output(context: Context) -> None:
    session = SessionLifecycle(context).start(
        STUDENT1, "", SessionIn(devices=0, hours=1, group="cs101")
    )
    assert session is not None
    with pytest.raises(NotFound, match="is a session: it has no log"):
        RequestQueries(context).log(STUDENT1, session.id)
    with pytest.raises(NotFound, match="is a session: it has no output notebook"):
        RequestQueries(context).output(STUDENT1, session.id)


def test_a_second_session_of_the_same_name_is_refused(context: Context) -> None:
    SessionLifecycle(context).start(STUDENT1, "lab", SessionIn())
    with pytest.raises(Conflict, match="already"):
        SessionLifecycle(context).start(STUDENT1, "lab", SessionIn())


def test_the_spawner_gets_the_live_request_again(context: Context) -> None:
    asked = OpenSessionIn(owner="student1", server_name="lab", options={"devices": 1})
    first = SessionLifecycle(context).open(asked)
    assert SessionLifecycle(context).open(asked).id == first.id
    SessionLifecycle(context).end(first.id, StopIn(cause="cancelled"))
    assert SessionLifecycle(context).open(asked).id != first.id


def test_a_session_cancelled_while_the_hub_is_asked_does_not_come_back(context: Context) -> None:
    spawner = OpenSessionIn(owner="student1", server_name="lab", options={"devices": 1})
    asked = SessionLifecycle(context).start(STUDENT1, "lab", SessionIn(devices=1))
    RequestTermination(context).cancel(STUDENT1, asked.id)
    with pytest.raises(Conflict, match=r"has ended: Cancelled by its owner\."):
        SessionLifecycle(context).open(spawner)
    # A later start at the hub is a new session.
    assert SessionLifecycle(context).open(spawner).id != asked.id


def test_a_cancelled_session_may_be_started_again_at_the_hub(
    context: Context,
) -> None:
    spawner = OpenSessionIn(owner="student1", server_name="lab", options={"devices": 1})
    asked = SessionLifecycle(context).start(STUDENT1, "lab", SessionIn(devices=1))
    assert SessionLifecycle(context).open(spawner).id == asked.id
    RequestTermination(context).cancel(STUDENT1, asked.id)
    assert SessionLifecycle(context).open(spawner).id != asked.id


BAD_OPTIONS: dict[str, dict[str, Any]] = {
    "devices as text": {"devices": "1"},
    "devices as a fraction": {"devices": 0.5},
    "99 devices": {"devices": 99},
    "negative devices": {"devices": -1},
    "hours as a list": {"hours": [1]},
    "0 hours": {"hours": 0},
    "endless hours": {"hours": float("inf")},
    "hours that are no number": {"hours": float("nan")},
    "an extra key": {"image": "evil", "devices": 1},
    "a group that is no text": {"group": 3},
    "a group with bad UTF-8": {"group": "\udcff"},
    "true devices": {"devices": True},
}


@pytest.mark.parametrize("case", BAD_OPTIONS)
def test_case_29_options_of_the_wrong_kind_are_refused(case: str, context: Context) -> None:
    asked = OpenSessionIn.model_construct(
        owner="student1", server_name="", options=BAD_OPTIONS[case]
    )
    with pytest.raises(CarrelError) as refused:
        SessionLifecycle(context).open(asked)
    assert 400 <= refused.value.http_status < 500
    assert refused.value.accepted
    assert stored(context) == 0


@pytest.mark.parametrize("name", ["../x", "Lab", "-a", "a--b", "x" * 31, "a b", "ä"])
def test_session_names_are_those_of_the_hub(name: str, context: Context) -> None:
    with pytest.raises(InvalidInput, match="lower-case letters"):
        SessionLifecycle(context).start(STUDENT1, name, SessionIn())


def test_students_see_only_their_own_requests(context: Context) -> None:
    made = JobService(context).submit(STUDENT1, job())
    with pytest.raises(NotFound):
        RequestQueries(context).request(STUDENT2, made.id)
    with pytest.raises(NotFound):
        RequestTermination(context).cancel(STUDENT2, made.id)
    with pytest.raises(NotFound):
        RequestQueries(context).output(STUDENT2, made.id)
    assert RequestQueries(context).requests(STUDENT2, mine=False) == []


def test_teachers_see_their_group_and_administrators_all(context: Context) -> None:
    made = JobService(context).submit(STUDENT1, job())
    for who in (TEACHER, ADMIN):
        assert [found.id for found in RequestQueries(context).requests(who, mine=False)] == [
            made.id
        ]
        assert RequestQueries(context).requests(who, mine=True) == []


def test_cancelling_a_waiting_job_ends_it_at_once(context: Context) -> None:
    made = JobService(context).submit(STUDENT1, job())
    ended = RequestTermination(context).cancel(STUDENT1, made.id)
    assert (ended.state, ended.cause and ended.cause.code) == ("cancelled", "cancelled")
    assert RequestTermination(context).cancel(STUDENT1, made.id).state == "cancelled"


def test_a_job_that_has_not_run_has_no_output_and_says_so(context: Context) -> None:
    made = JobService(context).submit(STUDENT1, job())
    with pytest.raises(NotFound, match="no output notebook yet"):
        RequestQueries(context).output(STUDENT1, made.id)
