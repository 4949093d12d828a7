"""An installation's range overlaps no network that the host reaches."""

from __future__ import annotations

import ipaddress

import pytest

from carrel.hub.errors import Unavailable
from carrel.spawners.docker.containers.subnets import POOL, free_range, routes

TABLE = """\
Iface	Destination	Gateway 	Flags	RefCnt	Use	Metric	Mask		MTU	Window	IRTT
eth0	00000000	010011AC	0003	0	0	0	00000000	0	0	0
eth0	000011AC	00000000	0001	0	0	0	0000FFFF	0	0	0
wg0	0000C80A	00000000	0001	0	0	0	00F0FFFF	0	0	0
"""


def net(text: str) -> ipaddress.IPv4Network:
    return ipaddress.IPv4Network(text)


def test_routes_are_read_as_the_kernel_prints_them() -> None:
    assert routes(TABLE) == (net("172.17.0.0/16"), net("10.200.0.0/20"))


def test_each_installation_prefers_another_range() -> None:
    one, two = free_range([], "00000a"), free_range([], "00000b")
    assert one == free_range([], "00000a") != two
    assert net(one).subnet_of(POOL)
    assert net(one).prefixlen == 20


def test_ranges_in_use_are_skipped() -> None:
    wanted = free_range([], "00000a")
    other = net(free_range([net(wanted)], "00000a"))
    assert not other.overlaps(net(wanted))
    around = net(wanted).supernet(new_prefix=12)
    assert not net(free_range([around], "00000a")).overlaps(around)


def test_a_host_without_a_free_range_gets_a_message() -> None:
    with pytest.raises(Unavailable, match="docker_subnets in settings"):
        free_range([POOL], "00000a")
