"""Join the other members of a gang: report an address, and wait until all have done so.

Programs find the others by the variables that PyTorch, Lightning and torchrun read. ``torchrun``
takes its options from ``PET_…``; options on its command line have precedence. Where the members
have a network beside the one to the service, the libraries for collective operations learn which
interface is on it: they would take the first one, at which other nodes do not reach the member.
"""

from __future__ import annotations

import ipaddress
import json
import os
import socket
import time
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

import psutil

from ....hub.attempts.journal import log_line
from ....hub.attempts.service_client import AttemptClient
from ....hub.attempts.spec import AttemptSpec, MemberSpec

_FIRST_PAUSE: Final = 0.05
_LAST_PAUSE: Final = 1.0


def join(order: AttemptSpec, member: MemberSpec, service: AttemptClient) -> Mapping[str, str]:
    """Wait until all members have joined; return the environment of this one.

    The service ends the wait if a member does not start.

    Raises:
        Fenced, Rejected: the service refused the member.
        Away: the service did not answer.
    """
    address = address_in(member.subnet) if member.subnet else own_address(order.service_url)
    process = psutil.Process()
    body = {
        "pid": os.getpid(),
        "started_at": process.create_time(),
        "address": address,
        "port": free_port(address),
    }
    pause = _FIRST_PAUSE
    while True:
        found = json.loads(service.call_until_answered("join", body))
        if found["ready"]:
            return {
                **environment(
                    member, tuple(found["addresses"]), found["port"], len(order.device_ids)
                ),
                **(interface_environment(interface_of(address)) if member.subnet else {}),
            }
        if pause == _FIRST_PAUSE:
            log_line("waiting for the other members")
        time.sleep(pause)
        pause = min(_LAST_PAUSE, pause * 2)


def environment(
    member: MemberSpec, addresses: tuple[str, ...], port: int, devices: int
) -> dict[str, str]:
    """Return the variables of a member.

    Args:
        addresses: of all members, by rank.
        port: of member 0, for the members to connect to.
        devices: of this member; torchrun starts a process for each.
    """
    size, rank, master = str(member.size), str(member.rank), addresses[0]
    return {
        "CARREL_ROLE": member.role,
        "CARREL_MEMBER": str(member.number),
        "CARREL_MEMBERS": str(member.role_size),
        "CARREL_ADDRESSES": ",".join(addresses),
        "RANK": rank,
        "WORLD_SIZE": size,
        "LOCAL_RANK": "0",
        "LOCAL_WORLD_SIZE": "1",
        "NODE_RANK": rank,
        "MASTER_ADDR": master,
        "MASTER_PORT": str(port),
        "PET_NNODES": size,
        "PET_NODE_RANK": rank,
        "PET_NPROC_PER_NODE": str(max(1, devices)),
        "PET_MASTER_ADDR": master,
        "PET_MASTER_PORT": str(port),
    }


def interface_environment(interface: str) -> dict[str, str]:
    """Return the variables by which libraries for collective operations choose an interface."""
    return {
        "GLOO_SOCKET_IFNAME": interface,
        "TP_SOCKET_IFNAME": interface,
        "NCCL_SOCKET_IFNAME": f"={interface}",  # eth1, but not eth10
    }


def interface_of(address: str) -> str:
    """Return the name of the interface with this address, such as ``eth1``.

    Raises:
        OSError: no interface has it.
    """
    for name, addresses in psutil.net_if_addrs().items():
        if any(each.address == address for each in addresses):
            return str(name)
    raise OSError(f"no network interface has the address {address}")


def address_in(subnet: str) -> str:
    """Return the address of this host in a subnet; nothing is sent.

    Raises:
        OSError: this host has no address in it.
    """
    network = ipaddress.ip_network(subnet)
    address = own_address(f"//{network[1]}")
    if ipaddress.ip_address(address) not in network:
        raise OSError(f"no network interface has an address in {subnet}")
    return address


def own_address(service_url: str) -> str:
    """Return the address with which this host reaches the service; nothing is sent.

    Raises:
        OSError: the host of the service has no address.
    """
    parts = urlsplit(service_url)
    found = socket.getaddrinfo(parts.hostname, parts.port or 80, type=socket.SOCK_DGRAM)
    family, kind, protocol, _, target = found[0]
    with socket.socket(family, kind, protocol) as probe:
        probe.connect(target)
        return str(probe.getsockname()[0])


def free_port(address: str) -> int:
    """Return a port that no program on this host uses now."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.bind((address, 0))
        return int(probe.getsockname()[1])
