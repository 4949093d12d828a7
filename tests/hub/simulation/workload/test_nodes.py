"""Parsing of ``--nodes``."""

from __future__ import annotations

import pytest

from carrel.hub.errors import InvalidInput
from carrel.hub.simulation.workload.nodes import ONE_POOL, parse_nodes


def test_one_pool_of_equal_and_of_different_nodes() -> None:
    layout = parse_nodes("6x8, 2x4")
    devices = layout.pool(ONE_POOL)
    assert (len(devices), layout.devices, str(layout)) == (56, 56, "6x8,2x4")
    assert len({device.id for device in devices}) == 56
    assert [sum(d.node == node for d in devices) for node in sorted({d.node for d in devices})] == [
        *[8] * 6,
        *[4] * 2,
    ]


def test_each_tenant_has_nodes_of_its_own() -> None:
    layout = parse_nodes("vcvGl=20x8,vcvlY=2x8")
    assert {tenant: len(pool) for tenant, pool in layout.pools().items()} == {
        "vcvGl": 160,
        "vcvlY": 16,
    }
    assert str(layout) == "vcvGl=20x8,vcvlY=2x8"


@pytest.mark.parametrize(
    "text",
    [
        "2x8@sw1,2x8@sw2",
        "2x4:V100,1x8:NVIDIA A100-SXM4-80GB@rack 7",
        "lab=2x8:A100@sw1,lab=1x8,cs101=1x4:V100",
        "a:b@c=2x8",
    ],
)
def test_nodes_may_say_their_model_and_their_switch(text: str) -> None:
    layout = parse_nodes(text)
    assert str(layout) == text


def test_each_device_knows_the_model_and_the_switch_of_its_node() -> None:
    devices = parse_nodes("2x1:A100@sw1, 1x2@sw2,1x1:V100").pool(ONE_POOL)
    assert [(device.node[-1], device.model, device.switch) for device in devices] == [
        *[("1", "A100", "sw1"), ("2", "A100", "sw1")],
        *[("3", "", "sw2")] * 2,
        ("4", "V100", ""),
    ]


def test_names_of_tenants_are_free() -> None:
    assert [*parse_nodes("2x8@sw1=1x4:V100,b=1x1").blocks] == ["2x8@sw1", "b"]


def test_an_invalid_part_is_named_with_what_is_accepted() -> None:
    with pytest.raises(InvalidInput, match="Nodes cannot be '2x8@sw2:A100'") as refused:
        parse_nodes("2x8:A100@sw1,2x8@sw2:A100")
    assert (
        "2x8:A100@sw1,2x8:A100@sw2 adds the model, and the network switch" in refused.value.accepted
    )


@pytest.mark.parametrize(
    "text",
    [
        *("", "6", "x8", "6x", "0x8", "6x0", "-6x8", "6x8x2", "6x8,", "a=6x8,2x8", "9999999x8"),
        *("6x8@", "6x8:", "6x8:@sw1", "6x8@ ", "6x8@a@b", "6x8:a:b", "6x8@sw1=", "6x8 @sw1"),
    ],
)
def test_an_invalid_pool_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse_nodes(text)
    assert refused.value.field == "nodes"
    assert refused.value.accepted
