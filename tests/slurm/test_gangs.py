"""A gang on a real cluster: one job on nodes of different kinds, which start together."""

from __future__ import annotations

import socket
from dataclasses import replace
from pathlib import Path

import pytest

from carrel.hub.interfaces.backend import LaunchOrder, ProcessState
from carrel.hub.interfaces.backend_settings import BackendSettings
from carrel.hub.records.notices import NoticeKind, StopNotice
from carrel.hub.records.requests import JobSpec
from carrel.hub.scheduling.model.snapshot import Health
from carrel.spawners.slurm.backend import SlurmBackend

from ..fake_service import eventually
from ..gang_orders import gang_orders
from .cluster import SlurmCluster

pytestmark = pytest.mark.slurm
LEASE = "j-a.1"
NOTICE = StopNotice(
    kind=NoticeKind.BUDGET, message="Used up.", given_at=0.0, stops_at=1.0, group=""
)


def test_members_start_together_on_all_nodes_and_end_one_by_one(
    slurm: SlurmCluster, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    seen = tmp_path / "seen"
    seen.mkdir()
    note = f'echo $SLURM_JOB_ID $SLURMD_NODENAME $CUDA_VISIBLE_DEVICES >"{seen}/$CARREL_LEASE"'
    with socket.create_server(("127.0.0.1", 0)) as service:
        backend = SlurmBackend(
            BackendSettings(
                state=tmp_path,
                service_url=f"http://127.0.0.1:{service.getsockname()[1]}/services/carrel",
                installation="c0ffee",
                slurm=slurm.options(prologue=note),
            ),
            fresh_seconds=0,
        )
        by_id = {device.id: device for device in backend.inventory()}
        order = LaunchOrder(
            lease_id=LEASE,
            request_id="j-a",
            epoch=1,
            owner="student1",
            devices=(),
            job=JobSpec(notebook_name="", command=("sleep", "600")),
            seconds=60,
            token="token",
            folder=tmp_path / "1",
            input_path=tmp_path / "in.ipynb",
            home=tmp_path,
        )
        names = ("node1-gpu0", "node1-gpu1", "node2-gpu0")
        orders = [
            replace(member, devices=(by_id[name],))
            for member, name in zip(gang_orders(order, 3), names, strict=True)
        ]
        members = {each.lease_id: None for each in orders}

        # Node 1 is free and node 2 is not: no member starts.
        outside = slurm.submit("--gres=gpu:sim:2", "--nodelist=node2")
        eventually(lambda: "RUNNING" in slurm.run("squeue", "-h", "-o", "%T"))
        backend.start_gang(orders)
        eventually(lambda: "Resources" in backend.status({LEASE: None})[LEASE].waiting)
        assert len({status.waiting for status in backend.status(members).values()}) == 1
        assert list(seen.iterdir()) == []

        slurm.run("scancel", str(outside))
        eventually(lambda: len(list(seen.iterdir())) == len(members), 60)
        notes = [(seen / each).read_text().split() for each in members]
        assert [node for _, node, _ in notes] == ["node1", "node1", "node2"]
        assert {index for _, node, index in notes if node == "node1"} == {"0", "1"}
        assert backend.inventory() == tuple(
            replace(device, health=Health.OK, why="") for device in by_id.values()
        )
        ids = {job.ids for job in backend.client.live_jobs("c0ffee").values()}
        assert [len(each) for each in ids] == [2]
        assert set(backend.start_gang(orders)) == set(members)  # adopted

        # The longer time limit holds for all components.
        backend.extend(LEASE, 3600)
        assert set(slurm.run("squeue", "-h", "-o", "%l").split()) == {"1:02:00"}
        for each in orders:
            backend.request_checkpoint(each.lease_id, None, each.folder, NOTICE)
        assert caplog.messages == []  # the process on the node of each member was found

        # A member that ends leaves the others alone, until the lease is stopped.
        assert backend.stop(orders[2].lease_id, None)
        lives = [status.life for status in backend.status(members).values()]
        assert lives == [ProcessState.ALIVE, ProcessState.ALIVE, ProcessState.DEAD]
        assert backend.stop(LEASE, None, patience=20)
        assert backend.status({LEASE: None})[LEASE].life is ProcessState.DEAD
