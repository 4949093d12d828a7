"""Forms in a pool with several device models, and the button that removes the model."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from carrel.hub.requests.jobs import JobService
from carrel.hub.schemas import SessionIn
from carrel.hub.sessions.lifecycle import SessionLifecycle

from ...admission.two_models import NEW, OLD, POOL, model_of
from ...doubles import STUDENT1, STUDENT2
from ...requests.samples import job
from ...world import World
from ..fakes import PREFIX
from ..page_checks import check_page, text_of
from ..pages.desk_site import FORM, Site, site_over
from ..pages.jobs.samples import chosen

PAGES = (PREFIX, f"{PREFIX}submit")
JOB = {"group": "cs101", "devices": "1", "time": "1h", "retries": "0"}


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """One device of each of two models."""
    world = World.over(tmp_path, devices=0)
    with_models(world)
    yield site_over(world)
    world.loop.close()


def with_models(world: World, number: int = 2) -> None:
    world.backend.devices = POOL[:number]
    world.context.store.sync_devices("local", POOL[:number])


def offered(html: str) -> list[str]:
    """Return the choices of the field; nothing if there is no field."""
    found = re.search(r'<select[^>]* id="model".*?</select>', html, re.DOTALL)
    return re.findall(r">([^<>]+)</option>", found[0]) if found else []


@pytest.mark.parametrize("path", PAGES)
def test_the_models_of_the_pool_are_offered(site: Site, path: str) -> None:
    html = site.browser().get(path).text
    check_page(html)
    assert offered(html) == ["any", OLD, NEW]


@pytest.mark.parametrize("path", PAGES)
def test_of_each_model_it_says_how_many_are_free(site: Site, path: str) -> None:
    assert f"1 of 1 {OLD}, 1 of 1 {NEW} free now." in text_of(site.browser().get(path).text)
    site.post("sessions", **FORM, model=NEW)
    site.world.loop.cycle()
    said = f"1 of 1 {OLD}, 0 of 1 {NEW} free now."
    assert said in text_of(site.browser().get(path).text)
    live = site.browser().get(f"{PREFIX}desk/live").text
    assert said in text_of(live.partition('id="free-by-model"')[2]), "without a reload"


@pytest.mark.parametrize("path", PAGES)
def test_only_models_that_the_group_may_use_are_offered(site: Site, path: str) -> None:
    store = site.world.context.store
    store.put_group(replace(store.group("cs101"), models=frozenset({NEW})))
    html = site.browser().get(path).text
    assert offered(html) == ["any", NEW]
    assert f"data-models='[\"{NEW}\"]'" in html


@pytest.mark.parametrize("path", PAGES)
def test_there_is_no_field_where_there_is_no_choice(tmp_path: Path, path: str) -> None:
    world = World.over(tmp_path, devices=0)
    with_models(world, 1)
    assert offered(site_over(world).browser().get(path).text) == []
    world.loop.close()


def test_a_session_for_a_model_is_started_from_the_desk(site: Site) -> None:
    site.post("sessions", **FORM, model=NEW)
    assert site.session("").model == NEW
    site.post("sessions", **(FORM | {"server_name": "gpu"}), model="")
    assert site.session("gpu").model is None


def test_a_job_for_a_model_is_submitted_and_its_page_says_so(site: Site) -> None:
    answer = site.browser().post(f"{PREFIX}submit", data=JOB | {"model": OLD}, files=chosen())
    page = site.browser().get(answer.headers["location"]).text
    assert f"1 device ({OLD})" in text_of(page)


def test_an_error_is_shown_beside_its_field(site: Site) -> None:
    wrong = JOB | {"devices": "0", "model": OLD}
    answer = site.browser().post(f"{PREFIX}submit", data=wrong, files=chosen())
    assert answer.status_code == 400
    assert 'id="model-problem">A model needs at least one device' in answer.text
    desk = site.post("sessions", **(FORM | {"model": "Abacus"}))
    assert 'id="model-problem">The pool has no device of the model Abacus.' in desk.text
    assert offered(desk.text) == ["any", "Abacus", OLD, NEW]


def test_a_job_runs_again_for_the_same_model(site: Site) -> None:
    made = JobService(site.world.context).submit(STUDENT1, job(model=NEW))
    html = site.browser().get(f"{PREFIX}submit?again={made.id}").text
    assert f'<option value="{NEW}" selected>' in html


def test_a_session_continues_as_a_job_on_the_same_model(site: Site) -> None:
    site.post("sessions", **FORM, model=NEW)
    made = site.session("")
    html = site.browser().get(f"{PREFIX}submit?session={made.id}").text
    assert f'<option value="{NEW}" selected>' in html
    assert f'value="continues={made.id}"' in html


@pytest.mark.parametrize("what", [FORM, JOB | {"for": "job"}], ids=["session", "job"])
def test_a_form_is_quoted_for_its_model(site: Site, what: dict[str, str]) -> None:
    JobService(site.world.context).submit(STUDENT2, job(model=NEW))
    site.world.settle()
    waits = site.post("quote", **what, model=NEW).text
    assert 'data-waits="yes"' in waits
    assert "no device immediately" in text_of(waits)
    assert 'data-waits="no"' in site.post("quote", **what, model="").text


def test_the_button_beside_the_suggestion_drops_the_model(site: Site) -> None:
    JobService(site.world.context).submit(STUDENT2, job(model=NEW))
    site.world.settle()
    options = SessionIn(devices=1, model=NEW, hours=1.0)
    waits = SessionLifecycle(site.world.context).start(STUDENT1, "", options)
    site.world.settle()
    page = site.browser().get(f"{PREFIX}requests/{waits.id}/why").text
    form = re.search(r'<li data-change="any_model">.*?</li>', page, re.DOTALL)
    assert form is not None
    assert "With a device of any model instead of" in form[0]
    assert f'action="{PREFIX}requests/{waits.id}/change"' in form[0]
    sent = dict(re.findall(r'name="(model|devices|seconds|group)" value="([^"]*)"', form[0]))
    assert sent == {"model": ""}

    site.post(f"requests/{waits.id}/change", **sent)
    site.world.settle()
    assert model_of(site.world, waits) == OLD
