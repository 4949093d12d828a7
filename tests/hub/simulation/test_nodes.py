"""``--nodes`` as it is typed."""

from __future__ import annotations

import pytest

from carrel.hub.errors import InvalidInput
from carrel.hub.simulation.nodes import ONE_POOL, parse_nodes


def test_one_pool_of_equal_and_of_different_nodes() -> None:
    layout = parse_nodes("6x8, 2x4")
    devices = layout.pool(ONE_POOL)
    assert (len(devices), layout.devices, str(layout)) == (56, 56, "6x8,2x4")
    assert len({device.id for device in devices}) == 56
    assert [sum(d.node == node for d in devices) for node in sorted({d.node for d in devices})] == [
        *[8] * 6,
        *[4] * 2,
    ]


def test_a_tenant_each_its_own() -> None:
    layout = parse_nodes("vcvGl=20x8,vcvlY=2x8")
    assert {tenant: len(pool) for tenant, pool in layout.pools().items()} == {
        "vcvGl": 160,
        "vcvlY": 16,
    }
    assert str(layout) == "vcvGl=20x8,vcvlY=2x8"


@pytest.mark.parametrize(
    "text",
    ["", "6", "x8", "6x", "0x8", "6x0", "-6x8", "6x8x2", "6x8,", "a=6x8,2x8", "9999999x8"],
)
def test_what_is_no_pool_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse_nodes(text)
    assert refused.value.field == "nodes"
    assert refused.value.accepted
