"""The nodes of a simulated site: ``6x8`` is six nodes with eight devices each.

``2x8:A100@sw1`` adds the device model and the network switch.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from ...errors import InvalidInput
from ...scheduling.model.snapshot import Device

ONE_POOL = ""
"""Key of the pool that all tenants share."""
MOST_DEVICES = 1_000_000

_NAME = r"[^\s=:@](?:[^=:@]*[^\s=:@])?"
_BLOCK = re.compile(
    r"(?:(?P<tenant>[^=,]*)=)?(?P<nodes>[1-9]\d{0,6})x(?P<devices>[1-9]\d{0,3})"
    rf"(?::(?P<model>{_NAME}))?(?:@(?P<switch>{_NAME}))?"
)
_ACCEPTED = (
    "6x8 is six nodes of eight devices; vcvGl=20x8,vcvlY=2x8 gives each tenant its own; "
    "2x8:A100@sw1,2x8:A100@sw2 adds the model, and the network switch of the nodes."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Equal nodes.

    Attributes:
        devices: number of devices of one node.
        model: model of the devices; empty if not given.
        switch: network switch of the nodes; empty if not given.
    """

    nodes: int
    devices: int
    model: str = ""
    switch: str = ""

    def __str__(self) -> str:
        model, switch = self.model and f":{self.model}", self.switch and f"@{self.switch}"
        return f"{self.nodes}x{self.devices}{model}{switch}"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeLayout:
    """The nodes, and the tenants that own them.

    Attributes:
        blocks: by tenant; under ``ONE_POOL`` if all tenants share them.
    """

    blocks: Mapping[str, tuple[Block, ...]]

    @property
    def devices(self) -> int:
        blocks = (block for each in self.blocks.values() for block in each)
        return sum(block.nodes * block.devices for block in blocks)

    def __str__(self) -> str:
        return ",".join(
            f"{tenant and f'{tenant}='}{block}"
            for tenant, blocks in self.blocks.items()
            for block in blocks
        )

    def pools(self) -> Mapping[str, tuple[Device, ...]]:
        """Return the devices by tenant, or of all tenants under ``ONE_POOL``."""
        return {tenant: self.pool(tenant) for tenant in self.blocks}

    def pool(self, tenant: str) -> tuple[Device, ...]:
        """Return the devices of one tenant, or of ``ONE_POOL``."""
        made: list[Device] = []
        number = 0
        for block in self.blocks[tenant]:
            for _ in range(block.nodes):
                number += 1
                made.extend(_node(f"{tenant and f'{tenant}-'}node{number:05}", block))
        return tuple(made)


def _node(name: str, block: Block) -> list[Device]:
    return [
        Device(
            id=f"SIM-{name}-{index}",
            node=name,
            index=index,
            model=block.model,
            memory_bytes=0,
            simulated=True,
            switch=block.switch,
        )
        for index in range(block.devices)
    ]


def one_pool(nodes: int, devices: int) -> NodeLayout:
    """Return a layout of equal nodes that all tenants share."""
    return NodeLayout(blocks=MappingProxyType({ONE_POOL: (Block(nodes=nodes, devices=devices),)}))


def parse_nodes(text: str) -> NodeLayout:
    """Parse ``6x8``, ``6x8,2x4``, ``vcvGl=20x8,vcvlY=2x8`` or ``2x8:A100@sw1,2x8:A100@sw2``."""
    blocks: dict[str, tuple[Block, ...]] = {}
    for part in text.split(","):
        found = _BLOCK.fullmatch(part.strip())
        if found is None:
            raise InvalidInput(f"Nodes cannot be {part!r}.", accepted=_ACCEPTED, field="nodes")
        block = Block(
            nodes=int(found["nodes"]),
            devices=int(found["devices"]),
            model=found["model"] or "",
            switch=found["switch"] or "",
        )
        tenant = found["tenant"] or ONE_POOL
        blocks[tenant] = (*blocks.get(tenant, ()), block)
    if ONE_POOL in blocks and len(blocks) > 1:
        raise InvalidInput(
            "Some nodes name a tenant and others do not.", accepted=_ACCEPTED, field="nodes"
        )
    layout = NodeLayout(blocks=MappingProxyType(blocks))
    if layout.devices > MOST_DEVICES:
        raise InvalidInput(
            f"{layout.devices} devices are too many.",
            accepted=f"At most {MOST_DEVICES} are accepted.",
            field="nodes",
        )
    return layout
