"""The bodies of create calls, and the firewall rules."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import cast

import pytest

from carrel.hub.errors import BackendFailed
from carrel.hub.interfaces.backend_settings import DockerHost, DockerOptions
from carrel.hub.records.json_value import Json
from carrel.hub.scheduling.model.snapshot import Device, DeviceFile
from carrel.spawners.devices.simulated import simulated_devices
from carrel.spawners.docker.containers.firewall import FirewallRules, ruleset
from carrel.spawners.docker.containers.networks import MOST_GANGS, Networks
from carrel.spawners.docker.containers.template import ContainerBounds, Mount, Task, container
from carrel.spawners.docker.engine.client import DockerClient, NameTaken, Network
from carrel.spawners.docker.nodes.node import firewall_rules

GPU = Device(id="GPU-1", node="n", index=0, model="H200", memory_bytes=1)
MIG = replace(GPU, id="MIG-2", index=1)
GIB = 1 << 30

TASK = Task(
    installation="abc123",
    lease_id="j-1.2",
    request_id="j-1",
    epoch=2,
    owner="ada",
    kind="job",
    image="sha256:1",
    command=("run",),
    uid=1000,
    network="carrel-abc123-u-ada",
    bounds=ContainerBounds(memory=4 * GIB, cpus=1.5, pids=256, tmp=GIB),
    mounts=(Mount(source="/state/x", target="/x", read_only=True),),
    workdir="/home/ada",
)


def host(task: Task) -> Mapping[str, Json]:
    return cast(Mapping[str, Json], container(task)["HostConfig"])


def environment(task: Task) -> dict[str, str]:
    lines = cast(list[str], container(task)["Env"])
    return dict(line.split("=", 1) for line in lines)


def test_the_whole_create_call() -> None:
    assert container(TASK) == {
        "Image": "sha256:1",
        "Entrypoint": [],
        "Cmd": ["run"],
        "User": "1000:1000",
        "WorkingDir": "/home/ada",
        "Hostname": "carrel",
        "Env": [
            "ROCR_VISIBLE_DEVICES=",
            "HIP_VISIBLE_DEVICES=-1",
            "CUDA_VISIBLE_DEVICES=",
            "CUDA_DEVICE_ORDER=PCI_BUS_ID",
            "NVIDIA_VISIBLE_DEVICES=void",
            "CARREL_DEVICES=",
        ],
        "Labels": {
            "carrel.installation": "abc123",
            "carrel.lease": "j-1.2",
            "carrel.epoch": "2",
            "carrel.request": "j-1",
            "carrel.owner": "ada",
            "carrel.kind": "job",
        },
        "Healthcheck": {"Test": ["NONE"]},
        "HostConfig": {
            "NetworkMode": "carrel-abc123-u-ada",
            "Dns": [],
            "Mounts": [
                {
                    "Type": "bind",
                    "Source": "/state/x",
                    "Target": "/x",
                    "ReadOnly": True,
                    "BindOptions": {"Propagation": "rprivate"},
                }
            ],
            "Tmpfs": {
                "/tmp": f"rw,nosuid,nodev,size={GIB},mode=1777",
                "/run": f"rw,nosuid,nodev,noexec,size={16 << 20},mode=1777",
            },
            "ShmSize": GIB,
            "Memory": 4 * GIB,
            "MemorySwap": 4 * GIB,
            "NanoCpus": 1_500_000_000,
            "PidsLimit": 256,
            "Init": True,
            "ReadonlyRootfs": True,
            "Privileged": False,
            "CapDrop": ["ALL"],
            "SecurityOpt": ["no-new-privileges:true"],
            "IpcMode": "private",
            "CgroupnsMode": "private",
            "PublishAllPorts": False,
            "PortBindings": {},
            "RestartPolicy": {"Name": "no"},
            "LogConfig": {"Type": "json-file", "Config": {"max-size": "10m", "max-file": "3"}},
            "DeviceRequests": [],
            "Devices": [],
            "GroupAdd": [],
        },
    }


def test_devices_and_mig_instances_are_requested_by_uuid() -> None:
    task = replace(TASK, devices=(GPU, MIG))
    assert host(task)["DeviceRequests"] == [
        {"Driver": "nvidia", "DeviceIDs": ["GPU-1", "MIG-2"], "Capabilities": [["gpu"]]}
    ]
    assert environment(task)["NVIDIA_VISIBLE_DEVICES"] == "GPU-1,MIG-2"


def test_with_cdi_devices_are_requested_by_name_and_only_once() -> None:
    known = frozenset({"nvidia.com/gpu=GPU-1", "nvidia.com/gpu=MIG-2", "nvidia.com/gpu=all"})
    task = replace(TASK, devices=(GPU, MIG), cdi=known)
    assert host(task)["DeviceRequests"] == [
        {"Driver": "cdi", "DeviceIDs": ["nvidia.com/gpu=GPU-1", "nvidia.com/gpu=MIG-2"]}
    ]
    assert environment(task)["NVIDIA_VISIBLE_DEVICES"] == "void"
    # If CDI does not know one device by its UUID, all are requested in the older way.
    partly = replace(task, cdi=frozenset({"nvidia.com/gpu=GPU-1", "nvidia.com/gpu=0"}))
    assert host(partly)["DeviceRequests"] == host(replace(task, cdi=frozenset()))["DeviceRequests"]


def test_devices_of_two_makers_are_requested_each_in_its_own_way() -> None:
    files = (
        DeviceFile(path="/dev/kfd", group=109),
        DeviceFile(path="/dev/dri/renderD128", group=44),
    )
    amd = replace(GPU, id="GPU-ab", driver="amd", files=files)
    task = replace(TASK, devices=(GPU, amd))
    assert host(task)["DeviceRequests"] == host(replace(TASK, devices=(GPU,)))["DeviceRequests"]
    assert host(task)["Devices"] == [
        {"PathOnHost": path, "PathInContainer": path, "CgroupPermissions": "rw"}
        for path in ("/dev/kfd", "/dev/dri/renderD128")
    ]
    assert host(task)["GroupAdd"] == ["109", "44"]
    assert environment(task)["ROCR_VISIBLE_DEVICES"] == "GPU-ab"
    assert environment(task)["CUDA_VISIBLE_DEVICES"] == "GPU-1"


def test_a_session_on_another_machine_listens_at_that_address() -> None:
    bindings = host(replace(TASK, published="10.1.2.4"))["PortBindings"]
    assert bindings == {"8888/tcp": [{"HostIp": "10.1.2.4", "HostPort": ""}]}


def test_simulated_devices_are_named_and_not_requested() -> None:
    pretended = simulated_devices("n", 1)
    task = replace(TASK, devices=pretended)
    assert host(task)["DeviceRequests"] == []
    assert environment(task)["CUDA_VISIBLE_DEVICES"] == pretended[0].id
    assert environment(task)["NVIDIA_VISIBLE_DEVICES"] == "void"


@pytest.mark.parametrize("devices", [(), (GPU,)])
def test_environment_values_cannot_open_a_device(devices: tuple[Device, ...]) -> None:
    wants = {"NVIDIA_VISIBLE_DEVICES": "all", "CUDA_VISIBLE_DEVICES": "0,1,2"}
    task = replace(TASK, devices=devices, environment=wants)
    allowed = ",".join(device.id for device in devices)
    assert environment(task)["NVIDIA_VISIBLE_DEVICES"] == (allowed or "void")
    assert environment(task)["CUDA_VISIBLE_DEVICES"] == allowed


def test_without_internet_there_is_no_dns() -> None:
    assert host(replace(TASK, outside=False))["Dns"] == ["127.0.0.1"]


# -- firewall ---------------------------------------------------------------------------------


def test_firewall_rules_allow_one_address_and_reject_others() -> None:
    rules = FirewallRules(
        installation="abc123",
        address="10.1.0.1",
        ports=(8001, 8002, 8001),
        blocked=("10.0.0.0/8", "fd00::/8"),
    )
    text = ruleset(rules)
    first, second, *_ = text.splitlines()
    assert (first, second) == ("table inet carrel_abc123", "delete table inet carrel_abc123")
    assert text.count("ip daddr 10.1.0.1 tcp dport { 8001, 8002 } accept") == 2
    order = [
        "ct state established,related accept",
        "ip daddr 10.1.0.1 tcp dport",
        "udp dport 4789 drop",
        'iifname . oifname { "crgabc123-0001" . "crgabc123-0001", ',
        'oifname { "crl*", "crg*", "crn*", "crh*", "docker*", "br-*" } drop',
        "ip daddr 169.254.0.0/16 drop",
        "ip daddr 10.0.0.0/8 drop",
        "ip6 daddr fd00::/8 drop",
        'iifname { "crnabc123*", "crhabc123*" } drop',
    ]
    elsewhere = text[text.index("chain to_elsewhere") : text.index("chain to_containers")]
    places = [elsewhere.index(each) for each in order]
    assert places == sorted(places)


def test_on_another_machine_only_the_hubs_proxy_reaches_sessions() -> None:
    rules = FirewallRules(installation="abc123", address="10.1.0.1", ports=(8001,))
    opening = "ip saddr 10.1.0.1 tcp dport 8888 ct status dnat accept"
    assert opening not in ruleset(rules)
    there = ruleset(replace(rules, guest=True))
    into = there[there.index("chain to_containers") :].split("  }")[0].splitlines()
    assert [line.strip() for line in into[1:]] == [
        "ct state established,related accept", opening, "drop",
    ]  # fmt: skip  # as one chain


def test_services_of_a_machine_are_open_to_the_hub_and_to_no_container() -> None:
    here = DockerHost(node="local", url="unix:///a")
    there = DockerHost(node="far", url="ssh://b", address="10.1.0.2")
    options = DockerOptions(
        hosts=(here, there), subnets="", internal_ip="10.1.0.1", hub_port=1, service_port=2,
        image="base", uid=1, memory=1, cpus=1.0, pids=1, tmp=1, blocked=("10.9.0.0/16",),
    )  # fmt: skip  # grouped by meaning
    all_rules = [firewall_rules("abc123", options, host) for host in options.hosts]
    assert [(rules.guest, rules.blocked) for rules in all_rules] == [
        (False, ("10.9.0.0/16", "10.1.0.2")),
        (True, ("10.9.0.0/16", "10.1.0.2", "10.1.0.1")),
    ]


# -- networks ---------------------------------------------------------------------------------


@dataclass
class FakeEngine:
    """Networks of an engine in memory: neither ranges nor bridges overlap."""

    node: str = "local"
    made: dict[str, Network] = field(default_factory=dict)
    bridges: dict[str, str] = field(default_factory=dict)
    in_use: set[str] = field(default_factory=set)
    shared: set[str] = field(default_factory=set)

    def networks(self, label: str = "") -> tuple[Network, ...]:
        return tuple(self.made.values())

    def create_network(
        self,
        name: str,
        *,
        bridge: str,
        subnet: str,
        gateway: str,
        outside: bool,
        shared: bool,
        labels: Mapping[str, str],
    ) -> None:
        if shared:
            self.shared.add(name)
        if name in self.made or any(subnet in each.subnets for each in self.made.values()):
            raise NameTaken("Pool overlaps with other one on this address space")
        assert len(bridge) <= 15, "the longest name of an interface"
        self.bridges[name] = bridge
        self.made[name] = Network(
            id=name, name=name, labels=labels, subnets=(subnet,), created=float(len(self.made))
        )

    def users_of(self, network: str) -> int:
        return int(network in self.in_use)

    def remove_network(self, network: str) -> bool:
        del self.made[network]
        return True


def networks(engine: FakeEngine, subnets: str = "10.200.0.0/20") -> Networks:
    asked = cast(DockerClient, engine)
    return Networks(engine=asked, installation="abc123", subnets=subnets, clock=lambda: 0.0)


def test_each_user_has_and_keeps_a_network() -> None:
    engine = FakeEngine()
    ours = networks(engine)
    names = ["ada", "Ada", "ada--x", "../ada", "ada ", "bob"]
    made = [ours.ensure(name) for name in names]
    assert len(set(made)) == len(names)
    assert [ours.ensure(name) for name in names] == made
    assert ours.ensure("ada", outside=False) not in made
    assert re.fullmatch(r"crlabc123-\d{4}", engine.bridges[made[0]])
    assert engine.bridges[ours.name("ada", outside=False)].startswith("crnabc123-")


def test_only_the_members_of_a_gang_share_a_network_in_which_they_reach_each_other() -> None:
    engine = FakeEngine()
    ours = networks(engine)
    user = ours.ensure("ada")
    gang = ours.ensure_gang("ada", "j-a.1")
    assert ours.ensure_gang("ada", "j-a.1") == gang
    closed = ours.ensure_gang("ada", "j-b.1", outside=False)
    assert len({user, gang, closed}) == 3
    assert engine.shared == {gang, closed}
    assert re.fullmatch(r"crgabc123-\d{4}", engine.bridges[gang])
    assert re.fullmatch(r"crhabc123-\d{4}", engine.bridges[closed])
    ours.remove_unused(now=100.0)
    assert set(engine.made) == {user}


def test_networks_of_gangs_are_among_those_that_the_firewall_lists() -> None:
    engine = FakeEngine()
    ours = networks(engine, subnets="10.192.0.0/12")
    for number in range(20):
        name = ours.ensure_gang("ada", f"j-{number}.1")
        assert 1 <= int(engine.bridges[name][-4:]) <= MOST_GANGS


def test_the_hub_has_the_first_address() -> None:
    engine = FakeEngine()
    ours = networks(engine)
    ours.ensure("ada")
    assert ours.ensure_hub() == ours.ensure_hub() == "10.200.0.1"
    assert engine.bridges["carrel-abc123-hub"] == "crlabc123-hub"


def test_engines_that_share_a_host_begin_at_different_places() -> None:
    first, second = FakeEngine(), FakeEngine()
    networks(first).ensure("ada")
    replace(networks(second), engine_index=1, engine_count=2).ensure("ada")
    assert set(first.bridges.values()).isdisjoint(second.bridges.values())


def test_an_exhausted_range_is_reported() -> None:
    ours = networks(FakeEngine(), "10.200.0.0/27")
    ours.ensure_hub()
    ours.ensure("ada")
    with pytest.raises(BackendFailed, match=r"All networks in 10\.200\.0\.0/27 are in use"):
        ours.ensure("bob")


def test_unused_networks_are_removed_but_not_the_hubs() -> None:
    engine = FakeEngine()
    ours = networks(engine)
    ours.ensure_hub()
    kept, gone = ours.ensure("ada"), ours.ensure("bob")
    engine.in_use = {kept}
    ours.remove_unused(now=30.0)
    assert gone in engine.made, "one that was just made waits for its first container"
    ours.remove_unused(now=3600.0)
    assert set(engine.made) == {"carrel-abc123-hub", kept}
