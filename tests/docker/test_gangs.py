"""Jobs of several members in real containers: they reach each other, and nobody else does."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from carrel.hub.attempts.spec import FILES
from carrel.hub.interfaces.backend import LaunchOrder, ProcessState

from ..fake_service import eventually
from ..gang_orders import gang_orders
from .kit import Site

pytestmark = pytest.mark.docker

ALL_REDUCE = """
import os, pathlib, socket, time
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
address = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
if rank == 0:
    with socket.create_server(address) as server:
        others = [server.accept()[0] for _ in range(size - 1)]
        total = 1 + sum(int(other.recv(100)) for other in others)
        for other in others:
            other.sendall(str(total).encode())
        print("stays at", *address, flush=True)
        while not (pathlib.Path(os.environ["CARREL_OUTPUT_DIR"]) / "leave").exists():
            time.sleep(0.1)
else:
    for _ in range(300):
        try:
            first = socket.create_connection(address, timeout=3)
            break
        except ConnectionRefusedError:
            time.sleep(0.1)
    first.sendall(str(10 ** rank).encode())
    total = int(first.recv(100))
(pathlib.Path(os.environ["CARREL_OUTPUT_DIR"]) / f"{rank}.txt").write_text(str(total))
print("sum", total, flush=True)
"""


def gang(site: Site, members: int) -> list[LaunchOrder]:
    order = site.order(command=("python", "-c", ALL_REDUCE))
    return gang_orders(order, members)


def life(site: Site, group: str) -> ProcessState:
    return site.backend.status({group: None})[group].life


def logged(site: Site, orders: Sequence[LaunchOrder], text: str) -> bool:
    return all(text in site.log(order) for order in orders)


def test_members_add_their_numbers_over_a_network_of_their_own(site: Site) -> None:
    orders = gang(site, 3)
    site.service.members = 3
    site.backend.start_gang(orders)
    eventually(lambda: "stays at" in site.log(orders[0]))
    eventually(lambda: logged(site, orders[1:], "sum 111"))
    files = orders[0].folder / FILES
    eventually(lambda: sorted(each.name for each in files.iterdir()) == ["1.txt", "2.txt"])

    # A job of the same user is not on that network.
    line = next(each for each in site.log(orders[0]).splitlines() if "stays at" in each)
    address, port = line.split()[-2:]
    reaches = (
        "import socket\ntry:\n"
        f"    socket.create_connection(({address!r}, {port}), timeout=3)\n    print('reached')\n"
        "except OSError:\n    print('not reached')"
    )
    other = site.order(command=("python", "-c", reaches))
    site.backend.start(other)
    eventually(lambda: "reached" in site.log(other))
    assert "not reached" in site.log(other)

    lease = orders[0].lease_id.partition(".m")[0]
    assert life(site, lease) is ProcessState.ALIVE
    (files / "leave").write_text("")
    eventually(lambda: life(site, lease) is ProcessState.DEAD)
    assert site.backend.stop(lease, None)


def test_a_killed_member_is_told_apart_from_the_others(site: Site) -> None:
    orders = gang(site, 2)
    site.service.members = 3  # One never joins, so that both wait.
    site.backend.start_gang(orders)
    eventually(lambda: logged(site, orders, "waiting for the other members"))
    names = [order.lease_id for order in orders]
    (killed,) = site.backend.node("local").survey()[names[1]]
    site.engine.kill(killed.id, "SIGKILL")
    eventually(lambda: life(site, names[1]) is ProcessState.DEAD)
    assert site.backend.status({names[1]: None})[names[1]].exit_status == -9
    assert life(site, names[0]) is ProcessState.ALIVE
    lease = names[0].partition(".m")[0]
    assert site.backend.stop(lease, None)
    assert site.backend.node("local").survey() == {}
