"""A member of a job waits for the others, and learns how to reach them."""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from carrel.hub.attempts.spec import AttemptSpec, MemberSpec, member_folder
from carrel.hub.records.gangs import member_id, split_member_id
from carrel.hub.records.json_value import Json
from carrel.hub.records.requests import JobSpec
from carrel.spawners.runner.attempt import gang_member

MEMBER = MemberSpec(rank=1, size=3, role="worker", number=0, role_size=2)


def order(**changes: object) -> AttemptSpec:
    values: dict[str, object] = {
        "lease_id": "j-a.1.m1",
        "request_id": "j-a",
        "epoch": 1,
        "token": "t",
        "service_url": "http://127.0.0.1:8000/services/carrel",
        "input_path": "",
        "home": "/",
        "devices": ("A", "B"),
        "device_ids": ("D0", "D1"),
        "job": JobSpec(notebook_name="", command=("work",)),
        "member": MEMBER,
    }
    return AttemptSpec(**{**values, **changes})  # type: ignore[arg-type]  # by name


class Service:
    """Answers that not all members have joined, a few times."""

    def __init__(self, waits: int) -> None:
        self.waits = waits
        self.bodies: list[Mapping[str, Json]] = []

    def call_until_answered(self, resource: str, body: Mapping[str, Json]) -> bytes:
        assert resource == "join"
        self.bodies.append(body)
        ready = len(self.bodies) > self.waits
        answer = {"ready": ready, "addresses": ["10.0.0.1", "10.0.0.2", "10.0.0.3"], "port": 4000}
        return json.dumps(answer if ready else {"ready": False}).encode()


def test_a_member_reports_one_address_until_all_have_joined(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(gang_member.time, "sleep", pauses.append)
    service = Service(waits=7)
    found = gang_member.join(order(), MEMBER, service)  # type: ignore[arg-type]  # a double
    assert len({json.dumps(body) for body in service.bodies}) == 1
    assert service.bodies[0]["address"] == "127.0.0.1"
    assert pauses == [0.05, 0.1, 0.2, 0.4, 0.8, 1.0, 1.0]
    assert found == {
        "CARREL_ROLE": "worker",
        "CARREL_MEMBER": "0",
        "CARREL_MEMBERS": "2",
        "CARREL_ADDRESSES": "10.0.0.1,10.0.0.2,10.0.0.3",
        "RANK": "1",
        "WORLD_SIZE": "3",
        "LOCAL_RANK": "0",
        "LOCAL_WORLD_SIZE": "1",
        "NODE_RANK": "1",
        "MASTER_ADDR": "10.0.0.1",
        "MASTER_PORT": "4000",
        "PET_NNODES": "3",
        "PET_NODE_RANK": "1",
        "PET_NPROC_PER_NODE": "2",
        "PET_MASTER_ADDR": "10.0.0.1",
        "PET_MASTER_PORT": "4000",
    }


def test_a_member_with_a_network_of_its_job_reports_its_address_there() -> None:
    inside = replace(MEMBER, subnet="127.0.0.0/27")
    service = Service(waits=0)
    # From a host with another way to the service.
    elsewhere = order(service_url="http://192.0.2.1/services/carrel")
    found = gang_member.join(elsewhere, inside, service)  # type: ignore[arg-type]  # a double
    assert service.bodies[0]["address"] == "127.0.0.1"
    assert {name: value for name, value in found.items() if name.endswith("_IFNAME")} == {
        "GLOO_SOCKET_IFNAME": "lo",
        "TP_SOCKET_IFNAME": "lo",
        "NCCL_SOCKET_IFNAME": "=lo",
    }


def test_a_member_outside_the_network_of_its_job_says_so() -> None:
    with pytest.raises(OSError, match=r"has an address in 127\.9\.0\.0/27|unreachable"):
        gang_member.address_in("127.9.0.0/27")


def test_the_reported_port_is_free() -> None:
    with socket.create_server(("127.0.0.1", gang_member.free_port("127.0.0.1"))) as server:
        assert server.getsockname()[1] > 0


@pytest.mark.parametrize("member", [None, MEMBER])
def test_an_order_keeps_its_member(tmp_path: Path, member: MemberSpec | None) -> None:
    written = order(member=member)
    written.write(tmp_path)
    assert AttemptSpec.read(tmp_path) == written


def test_members_have_ids_and_folders_of_their_own() -> None:
    assert member_id("j-a.1", 12) == "j-a.1.m12"
    assert split_member_id("j-a.1.m12") == ("j-a.1", 12)
    for lease in ("j-a.1", "g-x.m.1", "s-mmm.2", "j-a.1.m", "j-a.1.mx"):
        assert split_member_id(lease) == (lease, None)
    attempt = Path("/outputs/j-a/1")
    assert member_folder(attempt, 0) == attempt
    assert member_folder(attempt, 2) == Path("/outputs/j-a/1.m2")
