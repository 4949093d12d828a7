"""The page of secrets, the forms that name them, and the calls of sessions for their values."""

from __future__ import annotations

import pytest

from carrel.hub.controller.loop import Loop
from carrel.hub.errors import CarrelError
from carrel.hub.requests.attempt_reports import AttemptReports
from carrel.hub.schemas import SessionIn
from carrel.hub.secrets.cipher import Cipher

from ...doubles import STUDENT1, TEACHER, no_time
from ...requests.samples import job
from ..fakes import API, PREFIX
from ..page_checks import check_page
from ..site import Site, site

__all__ = ["site"]

PAGE = f"{PREFIX}secrets"
VALUE = "hf_unique-value-1"


def press(site: Site, do: str, **fields: str) -> tuple[int, str]:
    answer = site.page(STUDENT1).post(PAGE, data={"do": do, **fields})
    page = site.page(STUDENT1).get(PAGE) if answer.status_code == 303 else answer
    return answer.status_code, page.text


def test_set_list_and_remove_on_the_page(site: Site) -> None:
    status, text = press(site, "set", name="HF_TOKEN", value=VALUE)
    assert status == 303
    assert "HF_TOKEN" in text
    assert VALUE not in text
    check_page(text)
    status, text = press(site, "set", name="PATH", value=VALUE)
    assert status == 400
    assert "belongs to a variable" in text
    assert VALUE not in text
    status, text = press(site, "remove", name="HF_TOKEN")
    assert status == 303
    assert "There are no secrets" in text


def test_members_see_names_of_the_secrets_of_a_group_and_cannot_change_them(site: Site) -> None:
    body = {"value": VALUE, "group": "cs101"}
    assert site.api(TEACHER).put(f"{API}/secrets/SHARED", json=body).status_code == 200
    text = site.page(STUDENT1).get(PAGE).text
    assert "SHARED" in text
    assert "Remove" not in text
    assert site.api(STUDENT1).delete(f"{API}/secrets/SHARED?group=cs101").status_code == 403
    assert site.api(TEACHER).delete(f"{API}/secrets/SHARED?group=cs101").status_code == 204


@pytest.mark.parametrize("value", [VALUE.split("-"), {"a": VALUE}, None])
def test_a_value_of_another_type_is_refused_without_it(site: Site, value: object) -> None:
    answer = site.api(STUDENT1).put(f"{API}/secrets/HF_TOKEN", json={"value": value})
    assert answer.status_code == 400
    assert "hf_unique" not in answer.text


def test_a_session_fetches_its_values_once(site: Site) -> None:
    site.api(STUDENT1).put(f"{API}/secrets/HF_TOKEN", json={"value": VALUE})
    delivery = site.world.app.state.web.secret_delivery
    sessions = site.world.app.state.web.sessions
    from_body = sessions.start(STUDENT1, "", _options("HF_TOKEN:env"))
    with pytest.raises(CarrelError, match="has ended or is being stopped"):
        delivery.ticket(_granted(site, from_body.id))
    lease = site.context.store.request(from_body.id).lease
    assert lease is not None
    AttemptReports(site.context).launch(lease.id)
    ticket = delivery.ticket(lease.id).ticket
    call = f"{API}/leases/{lease.id}/secrets/redeem"
    found = site.world.program("x").post(call, headers={"Authorization": f"token {ticket}"})
    assert found.json()["variables"] == {"HF_TOKEN": VALUE}
    again = site.world.program("x").post(call, headers={"Authorization": f"token {ticket}"})
    assert again.status_code == 403


def test_values_are_readable_after_a_rotation_of_the_keys(site: Site) -> None:
    site.api(STUDENT1).put(f"{API}/secrets/HF_TOKEN", json={"value": VALUE})
    cipher, store = site.context.cipher, site.context.store
    assert isinstance(cipher, Cipher)
    cipher.add_key()
    assert store.renew_secrets(cipher.renew) == 1
    cipher.drop_keys(keep=1)
    (stored,) = store.secrets(owner="student1", groups=[])
    purpose = "secret/student1//HF_TOKEN"
    assert cipher.decrypt(stored.token, purpose=purpose) == VALUE.encode()


def _options(*secrets: str) -> SessionIn:
    return SessionIn(devices=0, hours=1.0, group="cs101", secrets=list(secrets))


def _granted(site: Site, request_id: str) -> str:
    site.context.spawner_listeners.attach(request_id)
    loop = Loop(site.context, node="local", decision_clock=no_time)
    loop.cycle()
    assert loop.wait_for_actions(60)
    loop.close()
    lease = site.context.store.request(request_id).lease
    assert lease is not None
    return lease.id


def test_forms_from_another_owner_name_the_secrets_that_are_not_copied(site: Site) -> None:
    site.api(STUDENT1).put(f"{API}/secrets/HF_TOKEN", json={"value": VALUE})
    body = job(devices=0, secrets=["HF_TOKEN:env"]).model_dump(mode="json", exclude_unset=True)
    made = site.api(STUDENT1).post(f"{API}/requests", json=body).json()["id"]
    again = f"{PREFIX}submit?again={made}"
    said = f"{made} of student1 used secrets of its owner, which are not copied: HF_TOKEN"
    assert said in site.page(TEACHER).get(again).text
    assert "not copied" not in site.page(STUDENT1).get(again).text
    kept = {"kind": "notebook", "source": f"again:{made}", "group": "cs101", "time": "never"}
    refused = site.page(TEACHER).post(f"{PREFIX}submit", data=kept)
    assert (refused.status_code, said in refused.text) == (400, True)
    item = site.api(STUDENT1).post(f"{API}/gallery", json={"request": made, "title": "T"}).json()
    form = site.page(TEACHER).get(f"{PREFIX}submit?gallery={item['id']}").text
    assert "It used secrets of its owner, which are not copied: HF_TOKEN" in form
    check_page(form)
