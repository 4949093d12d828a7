"""The catalogue over HTTP, on its page and in the forms."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from carrel.hub.inventory.images import ImageCatalogue
from carrel.hub.schemas.images import PinIn
from carrel.hub.web.dependencies.context import WebContext
from carrel.hub.web.forms.image_choice import image_choices
from carrel.spawners.fake import FakeBackend

from ...doubles import ADMIN, STUDENT1, TEACHER
from ...images import CATALOGUE, NEW, OLD
from ...requests.samples import job
from ..fakes import API, PREFIX
from ..site import Site, site

__all__ = ["site"]


@pytest.fixture
def engine(site: Site) -> FakeBackend:
    backend = site.context.backend
    assert isinstance(backend, FakeBackend)
    backend.built = CATALOGUE
    return backend


def test_the_api_shows_pins_and_takes_them_away(site: Site, engine: FakeBackend) -> None:
    pin = f"{API}/groups/cs101/pins/torch"
    assert site.api(STUDENT1).put(pin, json={}).status_code == 403
    made = site.api(TEACHER).put(pin, json={"digest": OLD, "until": "2027-02-15"})
    assert made.json()["sentence"] == "pinned for cs101 until 15 February 2027"
    found = site.api(STUDENT1).get(f"{API}/images").json()
    assert found["choice"]
    assert found["may_pin"] == []
    assert [(each["reference"], each["newest"], each["pinned"]) for each in found["images"]] == [
        (CATALOGUE[0].reference, True, []),
        (f"torch@{NEW}", True, []),
        (f"torch@{OLD}", False, ["pinned for cs101 until 15 February 2027"]),
    ]
    assert site.api(STUDENT1).get(f"{API}/images/needed").status_code == 403
    needed = site.api(ADMIN).get(f"{API}/images/needed").json()["needed"]
    assert needed == [{"image": f"torch@{OLD}", "why": "Pinned for cs101 until 15 February 2027."}]
    assert site.api(TEACHER).delete(pin).status_code == 204
    assert site.api(TEACHER).delete(pin).status_code == 404
    assert site.api(STUDENT1).get(f"{API}/images").json()["pins"] == []


def test_a_missing_digest_is_refused_with_what_there_is(site: Site, engine: FakeBackend) -> None:
    body = job(image="torch@sha256:" + "e" * 64).model_dump(mode="json")
    answer = site.api(STUDENT1).post(f"{API}/requests", json=body)
    assert answer.status_code == 400
    assert answer.json()["detail"] == "No engine has torch@eeeeeeeeeeee."
    assert f"torch@{NEW}" in answer.json()["accepted"]
    assert site.api(STUDENT1).get(f"{API}/requests").json()["requests"] == []


def test_a_request_names_its_image_by_digest(site: Site, engine: FakeBackend) -> None:
    body = job(image="torch").model_dump(mode="json")
    made = site.api(STUDENT1).post(f"{API}/requests", json=body).json()
    assert made["image"] == f"torch@{NEW}"
    page = site.page(STUDENT1).get(f"{PREFIX}requests/{made['id']}").text
    assert f"<code>{NEW}</code>" in page
    again = site.page(STUDENT1).get(f"{PREFIX}submit", params={"again": made["id"]}).text
    assert f'<option value="torch@{NEW}" selected>' in again


def test_forms_offer_images_only_where_there_are_some(site: Site, engine: FakeBackend) -> None:
    for path in ("", "submit"):
        shown = site.page(STUDENT1).get(f"{PREFIX}{path}").text
        assert '<option value="base">base: The base image' in shown
        assert '<option value="torch">torch: The torch image' in shown
    engine.silent = True
    assert 'name="image"' not in site.page(STUDENT1).get(f"{PREFIX}submit").text
    engine.silent, engine.built = False, None
    for path in ("", "submit"):
        assert 'name="image"' not in site.page(STUDENT1).get(f"{PREFIX}{path}").text


def test_a_refused_choice_stands_beside_its_field(site: Site, engine: FakeBackend) -> None:
    fields = {"group": "cs101", "devices": "1", "hours": "1", "image": "julia"}
    answer = site.page(STUDENT1).post(f"{PREFIX}sessions", data=fields)
    assert answer.status_code == 400
    assert 'id="image-problem">There is no image &#39;julia&#39;.' in answer.text
    assert '<option value="julia" selected>' in answer.text


def test_a_session_starts_in_the_chosen_image(site: Site, engine: FakeBackend) -> None:
    fields = {"group": "cs101", "devices": "0", "hours": "1", "image": "torch"}
    site.page(STUDENT1).post(f"{PREFIX}sessions", data=fields)
    (made,) = site.api(STUDENT1).get(f"{API}/requests").json()["requests"]
    shown = site.api(STUDENT1).get(f"{API}/requests/{made['id']}").json()
    assert shown["image"] == f"torch@{NEW}"


def test_a_teacher_pins_on_the_page(site: Site, engine: FakeBackend) -> None:
    page = site.page(TEACHER)
    form = {"do": "pin", "group": "cs101", "image": f"torch@{OLD}", "until": "2027-02-15"}
    assert site.page(STUDENT1).post(f"{PREFIX}images", data=form).status_code == 403
    assert page.post(f"{PREFIX}images", data=form).status_code == 303
    for who in (STUDENT1, TEACHER, ADMIN):
        shown = site.page(who).get(f"{PREFIX}images").text
        assert "pinned for cs101 until 15 February 2027" in shown
        assert ('value="unpin"' in shown) == (who is not STUDENT1)
    wrong = page.post(f"{PREFIX}images", data={**form, "until": "1970-01-01"})
    assert wrong.status_code == 400
    assert "1970-01-01 is over." in wrong.text
    page.post(f"{PREFIX}images", data={"do": "unpin", "group": "cs101", "image": "torch"})
    assert "None: all groups get the newest build" in page.get(f"{PREFIX}images").text


def test_a_form_shows_which_build_a_name_means_for_the_user(
    site: Site, engine: FakeBackend
) -> None:
    """An administrator sees every group's pins, and chooses among their own groups'."""
    ImageCatalogue.of(site.context).pin(TEACHER, "cs101", "torch", PinIn(digest=OLD))
    web = cast(WebContext, SimpleNamespace(images=ImageCatalogue.of(site.context)))
    found = {
        who.name: image_choices(web, who, ("cs101",) if who is STUDENT1 else (), "")
        for who in (STUDENT1, ADMIN)
    }
    assert [choice.text for choice in found[STUDENT1.name]][1].endswith(", pinned for cs101")
    assert [choice.value for choice in found[ADMIN.name]] == ["base", "torch"]
    assert not any("pinned" in choice.text for choice in found[ADMIN.name])


def test_the_page_says_when_there_is_nothing_to_choose(site: Site, engine: FakeBackend) -> None:
    page = site.page(STUDENT1)
    engine.built = ()
    assert "carrel images build base" in page.get(f"{PREFIX}images").text
    engine.built = None
    assert "directly on this machine" in page.get(f"{PREFIX}images").text
    engine.built, engine.silent = (), True
    assert "The engine does not answer." in page.get(f"{PREFIX}images").text
