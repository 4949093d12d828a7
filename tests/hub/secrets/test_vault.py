"""Tests of the rules for secrets: who sets them, who uses them, and what is accepted."""

from __future__ import annotations

import pytest

from carrel.hub.errors import CarrelError, Forbidden, InvalidInput, NotAMember, NotFound, TooLarge
from carrel.hub.records.audit import AuditAction, ChangeFilter
from carrel.hub.requests.jobs import JobService
from carrel.hub.schemas import RequestOut
from carrel.hub.schemas.secrets.bodies import SecretIn
from carrel.hub.secrets.delivery import SecretDelivery
from carrel.hub.secrets.references import SecretUse
from carrel.hub.secrets.vault import SecretVault

from ..doubles import STRANGER, STUDENT1, TEACHER
from ..requests.samples import job
from ..world import World, world

__all__ = ["world"]


@pytest.fixture
def vault(world: World) -> SecretVault:
    return SecretVault(world.context)


def put(
    vault: SecretVault, name: str = "TOKEN", value: object = "s3cret-value", **more: str
) -> None:
    who = TEACHER if more.get("group") else STUDENT1
    vault.put(who, name, SecretIn.model_validate({"value": value, **more}))


def launched(world: World, *secrets: str) -> RequestOut:
    made = JobService(world.context).submit(STUDENT1, job(secrets=list(secrets)))
    world.settle()
    return made


def test_a_job_gets_its_values_at_the_start_and_each_use_is_in_the_audit_log(
    world: World, vault: SecretVault
) -> None:
    put(vault)
    put(vault, "SHARED", "of-the-group", group="cs101")
    made = launched(world, "TOKEN:env=HF_TOKEN", "SHARED")
    assert made.secrets == ["TOKEN:env=HF_TOKEN", "SHARED:file@cs101"]
    found = SecretDelivery(world.context).to_attempt(world.lease(made))
    assert (found.variables, found.files) == (
        {"HF_TOKEN": "s3cret-value"},
        {"SHARED": "of-the-group"},
    )
    used = world.context.store.changes(ChangeFilter(action=AuditAction.SECRET_USE))
    assert {(each.who, each.target, each.after["request"]) for each in used} == {
        ("student1", "student1/TOKEN", made.id),
        ("student1", "cs101/SHARED", made.id),
    }
    listed = {each.name: each for each in vault.all(STUDENT1).secrets}
    assert (listed["TOKEN"].used_in, listed["SHARED"].used_in) == (made.id, "")
    (shared,) = vault.all(TEACHER).secrets
    assert (shared.used_by, shared.used_in) == ("student1", made.id)


def test_no_value_is_in_the_database_or_in_an_audit_entry(world: World, vault: SecretVault) -> None:
    put(vault)
    stored = world.context.store.secrets(owner="student1", groups=[])
    assert "s3cret-value" not in repr([each.token for each in stored])
    assert "s3cret-value" not in repr(world.context.store.changes(ChangeFilter()))


def test_a_secret_of_a_group_ends_with_the_membership(world: World, vault: SecretVault) -> None:
    put(vault, "SHARED", group="cs101")
    made = launched(world, "SHARED:env")
    world.hub.members["cs101"] = world.hub.members["cs101"] - {"student1"}
    found = SecretDelivery(world.context).to_attempt(world.lease(made))
    assert "not a member any more" in found.missing
    assert not found.variables


def test_a_secret_that_was_removed_or_has_no_key_is_missing_at_the_start(
    world: World, vault: SecretVault
) -> None:
    put(vault)
    put(vault, "OTHER")
    made = launched(world, "TOKEN:env", "OTHER:env")
    world.context.cipher.key_file.unlink()  # type: ignore[attr-defined]  # of the test's cipher
    delivery = SecretDelivery(world.context)
    assert "encryption.keys" in delivery.to_attempt(world.lease(made)).missing
    vault.remove(STUDENT1, "TOKEN")
    found = delivery.to_attempt(world.lease(made))
    assert found.missing == "The secret TOKEN of student1 has been removed."


def test_an_attempt_that_has_ended_gets_no_value(world: World, vault: SecretVault) -> None:
    put(vault)
    made = launched(world, "TOKEN")
    lease = world.lease(made)
    world.claim(made)
    world.report(made, "ended", code="succeeded", message="Done.")
    with pytest.raises(CarrelError, match="has ended"):
        SecretDelivery(world.context).to_attempt(lease)


def test_submission_names_the_secrets_that_exist(world: World, vault: SecretVault) -> None:
    put(vault, "OTHER")
    put(vault, "SHARED", group="cs101")
    with pytest.raises(NotFound, match=r"You have no secret 'TOKEN'.*: OTHER, SHARED@cs101\."):
        launched(world, "TOKEN")
    with pytest.raises(NotAMember):
        launched(world, "TOKEN@physics")


def test_only_teachers_and_administrators_set_secrets_of_a_group(vault: SecretVault) -> None:
    with pytest.raises(Forbidden, match="Only teachers of cs101"):
        vault.put(STUDENT1, "TOKEN", SecretIn(value="value", group="cs101"))
    put(vault, group="cs101")
    with pytest.raises(Forbidden):
        vault.remove(STUDENT1, "TOKEN", "cs101")
    assert vault.all(STRANGER).secrets == []


@pytest.mark.parametrize(
    ("value", "error", "says"),
    [
        ("", InvalidInput, "empty"),
        (" \n", InvalidInput, "empty"),
        ("a\0b", InvalidInput, "not text"),
        ("\ud800", InvalidInput, "not text"),
        (["s3cret-value"], InvalidInput, "not text"),
        ("x" * (1 << 20), TooLarge, "1,024 KiB"),
    ],
)
def test_a_value_that_is_not_accepted_is_not_repeated(
    vault: SecretVault, value: object, error: type[CarrelError], says: str
) -> None:
    with pytest.raises(error, match=says) as raised:
        put(vault, value=value)
    assert "s3cret" not in str(raised.value)


@pytest.mark.parametrize(
    "name", ["", "1A", "A-B", "A" * 65, "PATH", "LD_PRELOAD", "CARREL_TOKEN", "A/../B", "Ä"]
)
def test_a_name_is_an_environment_name_that_no_program_depends_on(
    vault: SecretVault, name: str
) -> None:
    with pytest.raises(InvalidInput):
        put(vault, name)
    with pytest.raises(InvalidInput):
        SecretUse.parse(f"TOKEN:env={name}")


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        ("A", "A:file"),
        ("A:file", "A:file"),
        ("A:env", "A:env=A"),
        ("A:env=B@g", "A:env=B@g"),
        ("A@g-1", "A:file@g-1"),
    ],
)
def test_references_have_one_complete_form(text: str, complete: str) -> None:
    use = SecretUse.parse(text)
    assert str(use) == complete
    assert SecretUse.parse(complete) == use


@pytest.mark.parametrize("text", ["A:b", "A:file=B", "A:", ":env", "A:env="])
def test_other_references_are_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        SecretUse.parse(text)


def test_two_secrets_in_one_variable_are_refused(world: World, vault: SecretVault) -> None:
    put(vault, "A")
    put(vault, "B")
    with pytest.raises(InvalidInput, match="Two secrets are to be TOKEN"):
        launched(world, "A:env=TOKEN", "B:env=TOKEN")


def test_a_repeated_job_uses_the_same_secrets(world: World, vault: SecretVault) -> None:
    put(vault)
    made = launched(world, "TOKEN:env")
    assert JobService(world.context).same_job(STUDENT1, made.id).secrets == ["TOKEN:env=TOKEN"]
