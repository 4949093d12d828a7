"""The gallery over HTTP and on its pages: who sees, runs, forks and withdraws what."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from carrel.hub.controller.loop import Loop
from carrel.hub.errors import OverMaximum
from carrel.hub.records.audit import AuditAction, ChangeFilter
from carrel.hub.records.identity import Identity
from carrel.hub.records.requests import NewRequest, RequestFilter
from carrel.hub.requests.dependencies import DependencyCheck
from carrel.hub.web.forms.job import PARAMETER

from ...doubles import ADMIN, STRANGER, STUDENT1, TEACHER, FakeHub, no_time
from ...images import NEW, OLD, image
from ...notebooks import notebook
from ..fakes import API, PREFIX
from ..page_checks import check_page, text_of
from ..site import Site, site

__all__ = ["site"]

SECRET = "the-password-of-a-database"
GALLERY = f"{PREFIX}gallery"


def with_output(text: str = SECRET) -> str:
    """Return a notebook whose cell and widgets hold a text."""
    made = json.loads(notebook("print(lr)"))
    output = {"output_type": "stream", "name": "stdout", "text": text}
    made["cells"][-1] |= {"outputs": [output], "execution_count": 3}
    made["metadata"]["widgets"] = {"application/vnd.jupyter.widget-state+json": {"state": text}}
    return json.dumps(made)


JOB: dict[str, Any] = {
    "group": "cs101",
    "devices": 1,
    "seconds": 600,
    "notebook": {"name": "train.ipynb", "content": with_output()},
    "parameters": {"lr": 0.05},
    "labels": {"mine": "yes"},
}


def submit(site: Site, who: Identity = STUDENT1, **changes: Any) -> str:
    answer = site.api(who).post(f"{API}/requests", json={**JOB, **changes})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def publish(site: Site, request: str, who: Identity = STUDENT1, **fields: Any) -> dict[str, Any]:
    body = {"request": request, "title": "Train", "description": "About **it**.", **fields}
    answer = site.api(who).post(f"{API}/gallery", json=body)
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made


@pytest.fixture
def made(site: Site) -> str:
    """Return the id of an item of student1 for cs101."""
    return str(publish(site, submit(site))["id"])


def listed(site: Site, who: Identity, query: str = "") -> list[str]:
    found = site.api(who).get(f"{API}/gallery{query}").json()["items"]
    return [each["id"] for each in found]


def see(site: Site, who: Identity, item: str, query: str = "") -> dict[str, Any]:
    answer = site.api(who).get(f"{API}/gallery/{item}{query}")
    return {"status": answer.status_code, **answer.json()}


def hub_of(site: Site) -> FakeHub:
    hub = site.context.hub
    assert isinstance(hub, FakeHub)
    return hub


def audit(site: Site) -> list[tuple[str, str]]:
    changes = site.context.store.changes(ChangeFilter())
    return [(each.action, each.who) for each in changes if each.action.startswith("gallery")]


def test_members_see_run_and_find_an_item_and_others_do_not(site: Site, made: str) -> None:
    for who in (STUDENT1, TEACHER, ADMIN):
        assert listed(site, who) == [made]
        assert see(site, who, made)["title"] == "Train"
    assert listed(site, STRANGER) == []
    assert see(site, STRANGER, made)["status"] == 404
    refused = site.api(STRANGER).post(f"{API}/gallery/{made}/run", json={})
    assert refused.status_code == 404

    assert listed(site, TEACHER, "?search=TRAIN+student1") == [made]
    assert listed(site, TEACHER, "?search=train+nothing") == []
    assert listed(site, TEACHER, "?search=%25") == []
    assert listed(site, TEACHER, "?mine=true") == []

    run = site.api(TEACHER).post(f"{API}/gallery/{made}/run", json={"parameters": {"epochs": 9}})
    (request,) = run.json()["requests"]
    assert (request["owner"], request["parameters"]) == ("teacher", {"lr": 0.05, "epochs": 9})
    assert request["labels"] == {"gallery": f"{made}/1"}


def test_a_user_who_leaves_the_group_loses_its_items(site: Site, made: str) -> None:
    site.context.store.set_teachers("cs101", [])
    hub_of(site).members["cs101"].discard("teacher")
    assert listed(site, TEACHER) == []
    assert see(site, TEACHER, made)["status"] == 404
    hub_of(site).members["cs101"].add("teacher")
    assert see(site, TEACHER, made)["status"] == 200


def test_outputs_are_published_only_on_purpose(site: Site, made: str) -> None:
    content = site.api(TEACHER).get(f"{API}/gallery/{made}/notebook")
    assert "print(lr)" in content.text
    assert SECRET not in content.text
    assert site.api(TEACHER).get(f"{API}/gallery/{made}/output").status_code == 404
    (job,) = see(site, TEACHER, made)["shown"]["jobs"]
    assert job["output"] == ""
    assert [(each["name"], each["type"], each["value"]) for each in job["parameters"]] == [
        ("lr", "number", 0.05),
        ("epochs", "whole number", None),
    ]

    body = {"request": submit(site), "title": "With outputs", "outputs": True}
    refused = site.api(STUDENT1).post(f"{API}/gallery", json=body)
    assert refused.status_code == 409
    assert "has not ended" in refused.json()["detail"]


def test_ticked_outputs_are_those_of_the_run_and_not_part_of_a_fork(site: Site) -> None:
    request = submit(site)
    loop = Loop(site.context, node="local", decision_clock=no_time)
    loop.cycle()
    assert loop.wait_for_actions(60)
    loop.close()
    folder = site.context.files.attempt_folder(request, 1)
    (folder / "output.ipynb").write_text(with_output("result 7"))
    assert site.api(STUDENT1).delete(f"{API}/requests/{request}").status_code == 200
    stopping = Loop(site.context, node="local", decision_clock=no_time)
    stopping.cycle()
    assert stopping.wait_for_actions(60)
    stopping.cycle()
    assert stopping.wait_for_actions(60)
    stopping.close()

    item = publish(site, request, outputs=True)["id"]
    assert "result 7" in site.api(TEACHER).get(f"{API}/gallery/{item}/output").text
    assert "result 7" not in site.api(TEACHER).get(f"{API}/gallery/{item}/notebook").text
    fork = site.api(TEACHER).post(f"{API}/gallery/{item}/fork", json={}).json()
    assert fork["shown"]["jobs"][0]["output"] == ""


def test_a_new_version_keeps_the_old_one(site: Site, made: str) -> None:
    again = publish(
        site, submit(site, parameters={"lr": 0.5}), item=made, title="", description=None
    )
    assert (again["id"], again["version"], again["title"]) == (made, 2, "Train")
    assert again["shown"]["description"] == "About **it**."
    assert list(again["versions"]) == ["2", "1"]
    old = see(site, TEACHER, made, "?version=1")["shown"]
    assert old["jobs"][0]["parameters"][0]["value"] == 0.05
    assert see(site, TEACHER, made, "?version=3")["status"] == 404

    body = {"request": submit(site, TEACHER), "item": made}
    refused = site.api(TEACHER).post(f"{API}/gallery", json=body)
    assert refused.status_code == 403
    assert "carrel gallery fork" in refused.json()["accepted"]


def test_a_fork_names_its_origin(site: Site, made: str) -> None:
    fork = site.api(TEACHER).post(f"{API}/gallery/{made}/fork", json={"title": "Mine"}).json()
    origin = {"id": made, "version": 1, "owner": "student1"}
    assert (fork["owner"], fork["forked_from"]) == ("teacher", origin)

    # A changed run of an item that is published is a fork, too.
    run = site.api(TEACHER).post(f"{API}/gallery/{made}/run", json={}).json()["requests"][0]
    other = publish(site, run["id"], TEACHER, title="Changed")
    assert other["forked_from"] == origin
    assert audit(site) == [
        (AuditAction.GALLERY_PUBLISH, "teacher"),
        (AuditAction.GALLERY_FORK, "teacher"),
        (AuditAction.GALLERY_PUBLISH, "student1"),
    ]


def test_owner_group_head_and_administrator_withdraw(site: Site) -> None:
    site.context.store.set_teachers("cs101", ["teacher"])
    for who in (STUDENT1, TEACHER, ADMIN):
        item = publish(site, submit(site), audience="*")["id"]
        assert listed(site, STRANGER) == [item]
        assert site.api(STRANGER).post(f"{API}/gallery/{item}/withdraw").status_code == 403
        assert site.api(who).post(f"{API}/gallery/{item}/withdraw").status_code == 204
        assert site.api(who).post(f"{API}/gallery/{item}/withdraw").status_code == 404
        assert listed(site, STRANGER) == []
    assert [who for action, who in audit(site) if action == AuditAction.GALLERY_WITHDRAW] == [
        "admin",
        "teacher",
        "student1",
    ]


def test_bad_publications_are_refused_with_what_is_accepted(site: Site, made: str) -> None:
    request = submit(site)
    huge = json.loads(notebook("1"))
    huge["cells"].append(
        {"id": "m", "cell_type": "markdown", "metadata": {}, "source": "x" * (9 << 20)}
    )
    large = {**JOB["notebook"], "content": json.dumps(huge)}
    for who, body, status, text in (
        (STUDENT1, {"request": request, "title": "TRAIN"}, 409, f"it is {made}"),
        (STUDENT1, {"request": request, "title": " "}, 400, "The title is missing"),
        (STUDENT1, {"request": request, "title": "a\u202eb"}, 400, "hidden character"),
        (STUDENT1, {"request": request, "title": "b", "audience": "gone"}, 403, "cs101"),
        (STUDENT1, {"request": request, "title": "b", "pipeline": True}, 400, "pipeline"),
        (STUDENT1, {"title": "b"}, 400, "request"),
        (STUDENT1, {"request": "j-nothing", "title": "b"}, 404, "j-nothing"),
        (STRANGER, {"request": request, "title": "b"}, 404, request),
        (ADMIN, {"request": request, "title": "b"}, 403, "belongs to student1"),
        (STUDENT1, {"job": {**JOB, "notebook": large}, "title": "b"}, 413, "8 MiB"),
        (STUDENT1, {"job": {**JOB, "group": "other"}, "title": "b"}, 403, "Your groups"),
    ):
        answer = site.api(who).post(f"{API}/gallery", json=body)
        assert (answer.status_code, text in answer.text) == (status, True), answer.text
    assert listed(site, ADMIN) == [made]


def test_a_notebook_is_published_without_a_run(site: Site) -> None:
    body = {"job": {**JOB, "workdir": ""}, "title": "New", "audience": "*"}
    item = site.api(STUDENT1).post(f"{API}/gallery", json=body).json()
    assert (item["kind"], item["shown"]["request"]) == ("notebook", "")
    assert site.api(STRANGER).get(f"{API}/gallery/{item['id']}").status_code == 200


def test_the_pages_list_publish_and_fill_the_form(site: Site, made: str) -> None:
    page = site.page(TEACHER)
    shown = page.get(f"{GALLERY}/{made}").text
    check_page(shown)
    assert "<strong>it</strong>" in shown
    assert "had not succeeded" in text_of(shown)
    form = page.get(f"{PREFIX}submit?gallery={made}&version=1").text
    assert f'value="gallery:{made}/1"' in form
    assert f'name="{PARAMETER}lr"' in form
    assert 'value="0.05"' in form
    sent = page.post(
        f"{PREFIX}submit",
        data={
            "kind": "notebook", "source": f"gallery:{made}/1", "group": "cs101", "time": "10m",
            f"{PARAMETER}lr": "0.3", "devices": "0",
        },
    )  # fmt: skip  # pairs
    assert sent.status_code == 303, sent.text
    request = sent.headers["location"].rpartition("/")[2]
    assert site.api(TEACHER).get(f"{API}/requests/{request}").json()["parameters"] == {"lr": 0.3}
    assert site.page(STRANGER).get(f"{PREFIX}submit?gallery={made}").status_code == 404

    own = site.page(STUDENT1)
    request = submit(site)
    assert "Publish …" in own.get(f"{PREFIX}requests/{request}").text
    check_page(own.get(f"{GALLERY}/publish?request={request}").text)
    fields = {"request": request, "title": "By <form>", "description": "", "audience": "*"}
    target = own.post(f"{GALLERY}/publish", data=fields).headers["location"]
    listing = site.page(STRANGER).get(GALLERY).text
    check_page(listing)
    assert "By &lt;form&gt;" in listing
    refused = own.post(f"{GALLERY}/publish", data=fields)
    assert (refused.status_code, "already published" in refused.text) == (409, True)

    assert site.page(STRANGER).post(target, data={"do": "withdraw"}).status_code == 403
    assert own.post(target, data={"do": "withdraw"}).headers["location"] == GALLERY
    assert "Nothing is published for you yet" in site.page(STRANGER).get(GALLERY).text
    assert "No item matches" in site.page(STRANGER).get(f"{GALLERY}?search=x").text


def test_an_image_that_is_gone_is_named_with_the_nearest(site: Site) -> None:
    backend = site.context.backend
    first = image("torch", OLD, 1.0, default=True)
    backend.built = (first,)  # type: ignore[attr-defined]  # of the fake
    item = publish(site, submit(site))["id"]
    newer = replace(first, digest=NEW)
    backend.built = (newer,)  # type: ignore[attr-defined]
    (job,) = see(site, TEACHER, item)["shown"]["jobs"]
    assert job["image"] == first.reference
    assert newer.reference in job["image_missing"]
    form = site.page(TEACHER).get(f"{PREFIX}submit?gallery={item}").text
    assert "No engine has torch" in form
    assert site.api(TEACHER).post(f"{API}/gallery/{item}/run", json={}).status_code == 400


def test_a_pipeline_runs_whole_or_not_at_all(site: Site) -> None:
    first = submit(site, labels={"pipeline": "p", "pipeline-job": "prepare"})
    second = submit(
        site,
        labels={"pipeline": "p", "pipeline-job": "train"},
        after=[f"{first}:any"],
        results={"epochs": f"{first}.report.epochs"},
    )
    item = publish(site, second, title="Both", pipeline=True, audience="*")
    assert (item["kind"], item["what"]) == ("pipeline", "2 jobs")
    assert [(job["name"], job["after"]) for job in item["shown"]["jobs"]] == [
        ("prepare", []),
        ("train", ["prepare"]),
    ]
    run = site.api(TEACHER).post(f"{API}/gallery/{item['id']}/run", json={"idempotency_key": "k"})
    one, two = run.json()["requests"]
    assert (two["after"], two["results"][0]["job"]) == ([f"{one['id']}:any"], one["id"])
    again = site.api(TEACHER).post(f"{API}/gallery/{item['id']}/run", json={"idempotency_key": "k"})
    assert [each["id"] for each in again.json()["requests"]] == [one["id"], two["id"]]
    check_page(site.page(TEACHER).get(f"{GALLERY}/{item['id']}").text)
    site.api(TEACHER).delete(f"{API}/requests/{one['id']}")
    again = site.api(TEACHER).post(f"{API}/gallery/{item['id']}/run", json={"idempotency_key": "k"})
    assert (again.status_code, "another idempotency key" in again.text) == (409, True)
    refused = site.api(STRANGER).post(f"{API}/gallery/{item['id']}/run", json={})
    assert refused.status_code == 403
    assert site.page(STRANGER).get(f"{PREFIX}submit?gallery={item['id']}").status_code == 400


def test_a_refused_job_cancels_the_jobs_of_its_own_call_alone(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = submit(site, labels={"pipeline": "p", "pipeline-job": "prepare"})
    second = submit(site, labels={"pipeline": "p", "pipeline-job": "train"}, after=[first])
    item = publish(site, second, title="Both", pipeline=True)
    run = f"{API}/gallery/{item['id']}/run"

    def jobs() -> dict[str, str]:
        found = site.context.store.requests(RequestFilter(owner="teacher"))
        return {each.id: each.state for each in found}

    check = DependencyCheck.held

    def refuse(self: DependencyCheck, who: Any, request: NewRequest, after: Any) -> NewRequest:
        if after:
            raise OverMaximum("There is no room for it.")
        return check(self, who, request, after)

    with monkeypatch.context() as patched:
        patched.setattr(DependencyCheck, "held", refuse)
        answer = site.api(TEACHER).post(run, json={"idempotency_key": "k"})
        assert "no room" in answer.text
    assert list(jobs().values()) == ["cancelled"]
    again = site.api(TEACHER).post(run, json={"idempotency_key": "k"})
    assert (again.status_code, again.json()["error"]["code"]) == (409, "conflict")
    assert list(jobs().values()) == ["cancelled"]

    whole = site.api(TEACHER).post(run, json={"idempotency_key": "new"}).json()["requests"]
    before = jobs()
    with monkeypatch.context() as patched:
        patched.setattr(DependencyCheck, "held", refuse)
        assert "no room" in site.api(TEACHER).post(run, json={"idempotency_key": "new"}).text
    assert jobs() == before
    assert before[whole[0]["id"]] == "queued"
