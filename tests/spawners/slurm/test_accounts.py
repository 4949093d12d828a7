"""The accounts of Slurm that mirror a quota tree."""

from __future__ import annotations

from dataclasses import replace

from carrel.hub.scheduling.model.snapshot import Group
from carrel.spawners.slurm.accounts import TOP, SlurmAccount, steps, wanted_accounts

FACULTY = Group(name="faculty", max_devices=8)
COURSE = Group(name="CS101", parent="faculty", max_devices=4, weight=0.5)


def test_every_group_is_an_account_below_that_of_its_parent() -> None:
    found = wanted_accounts([COURSE, FACULTY], "carrel")
    assert list(found) == [TOP, "carrel_faculty", "carrel_cs101"]
    assert found["carrel_cs101"] == SlurmAccount(
        parent="carrel_faculty",
        tres="gres/gpu=4",
        minutes=8 * 60 + 2,
        shares=50,
        users=frozenset({"carrel"}),
    )


def test_a_group_whose_parent_is_unknown_is_not_lost() -> None:
    assert "carrel_cs101" in wanted_accounts([COURSE], "carrel")


def test_only_differences_are_changed() -> None:
    wanted = wanted_accounts([FACULTY], "carrel")
    assert [" ".join(call) for call in steps(wanted, {})] == [
        "add account carrel parent=root fairshare=1 description=carrel organization=carrel",
        "add account carrel_faculty parent=carrel fairshare=100 GrpTRES=gres/gpu=8 MaxWall=482 "
        "description=carrel_faculty organization=carrel",
        "add user carrel account=carrel_faculty",
    ]
    assert steps(wanted, wanted) == []
    changed = wanted | {"carrel_faculty": replace(wanted["carrel_faculty"], tres="gres/gpu=2")}
    assert steps(wanted, changed) == [
        (
            *("modify", "account", "where", "name=carrel_faculty", "set"),
            *("parent=carrel", "fairshare=100", "GrpTRES=gres/gpu=8", "MaxWall=482"),
        )
    ]
