"""What ``carrel slurm check`` finds on a real cluster, and ``carrel slurm sync`` does there."""

from __future__ import annotations

from pathlib import Path

import pytest

from carrel.hub.interfaces.backend_settings import BackendSettings
from carrel.hub.records.diagnostics import Severity
from carrel.hub.scheduling.model.snapshot import Group
from carrel.spawners.slurm.accounts import SlurmAccounts
from carrel.spawners.slurm.doctor import extension_finding, gang_findings
from carrel.spawners.slurm.host import SlurmHostSetup

from ..fake_service import eventually
from .cluster import NODES, SlurmCluster

pytestmark = pytest.mark.slurm


def found(cluster: SlurmCluster, folder: Path, **options: object) -> dict[str, tuple[str, str]]:
    """Return severity and sentence of the findings by subject.

    A node where a job did not start within 10 s, as on a busy machine, is tried again.
    """
    settings = BackendSettings(
        state=folder, service_url="http://127.0.0.1:9/carrel", slurm=cluster.options(**options)
    )
    for _ in range(3):
        findings = list(SlurmHostSetup(settings).findings())
        if all(each.verdict is not Severity.UNKNOWN for each in findings):
            break
    return {each.subject: (each.verdict.value, f"{each.what} {each.mend}") for each in findings}


def test_a_good_cluster_lacks_nothing_and_no_job_is_left(
    slurm: SlurmCluster, tmp_path: Path
) -> None:
    findings = found(slurm, tmp_path)
    assert {severity for severity, _ in findings.values()} == {Severity.FINE}
    assert {*NODES, "comment", "extensions"} <= set(findings)
    assert findings["devices"][1].strip() == "2 nodes with 4 x sim (simulated)."
    eventually(lambda: slurm.run("squeue", "-h") == "")
    assert list(tmp_path.iterdir()) == []


def test_an_account_that_is_no_operator_cannot_extend_time_limits() -> None:
    assert extension_finding("carrel", "Operator").verdict is Severity.FINE
    finding = extension_finding("carrel", "None")
    assert finding.verdict is Severity.WARNING
    assert finding.mend == "sudo sacctmgr modify user where name=carrel set adminlevel=Operator"


def test_a_scheduler_that_starts_no_heterogeneous_jobs_is_told() -> None:
    assert list(gang_findings({"SchedulerType": "sched/backfill"})) == []
    (finding,) = gang_findings({"SchedulerType": "sched/builtin"})
    assert finding.verdict is Severity.WARNING
    assert finding.mend == "Set SchedulerType=sched/backfill in slurm.conf."


def test_a_partition_that_does_not_exist_is_named_with_those_that_do(
    slurm: SlurmCluster, tmp_path: Path
) -> None:
    findings = found(slurm, tmp_path, partition="gpus")
    assert findings["partition"] == (
        Severity.MISSING,
        "No node is in a partition 'gpus'. Set partition below [slurm] to one of: main.",
    )
    assert findings["submission"][0] is not None
    assert "invalid partition" in findings["submission"][1].lower()


def test_a_drained_node_and_options_that_slurm_refuses_are_told(
    slurm: SlurmCluster, tmp_path: Path
) -> None:
    slurm.run("scontrol", "update", "NodeName=node2", "State=DRAIN", "Reason=new fan")
    findings = found(slurm, tmp_path, options=("--gres=gpu:h100:1",))
    assert findings["node2"] == (
        Severity.WARNING,
        "Nothing can start there: node2 is drained in Slurm (new fan). "
        "sudo scontrol update NodeName=node2 State=RESUME",
    )
    severity, told = findings["submission"]
    assert severity == Severity.MISSING
    assert told.startswith("Slurm would refuse Carrel's jobs: ")


def test_a_prologue_that_fails_on_a_node_is_told(slurm: SlurmCluster, tmp_path: Path) -> None:
    findings = found(slurm, tmp_path, prologue='test "$SLURMD_NODENAME" = node2')
    severity, told = findings["node1"]
    assert severity == Severity.MISSING, told
    assert told.startswith("The prologue of sessions and jobs fails there. ")


def test_a_controller_that_does_not_answer_is_the_only_finding(
    slurm: SlurmCluster, tmp_path: Path
) -> None:
    conf = tmp_path / "slurm.conf"
    text = slurm.conf.read_text()
    port = next(line for line in text.splitlines() if line.startswith("SlurmctldPort"))
    conf.write_text(text.replace(port, "SlurmctldPort=9"))
    settings = BackendSettings(state=tmp_path, service_url="", slurm=slurm.options(conf=str(conf)))
    (finding,) = SlurmHostSetup(settings).findings()
    assert finding.verdict is Severity.MISSING
    assert "does not answer" in finding.what


def test_quotas_are_mirrored_to_accounts_and_a_second_run_changes_nothing(
    slurm: SlurmCluster, tmp_path: Path
) -> None:
    accounts = SlurmAccounts(BackendSettings(state=tmp_path, service_url="", slurm=slurm.options()))
    groups = [Group(name="faculty", max_devices=4), Group(name="cs1", parent="faculty")]
    shown = accounts.sync(groups, dry_run=True)
    assert shown
    assert accounts.sync(groups, dry_run=True) == shown
    assert accounts.sync(groups, dry_run=False) == shown
    assert accounts.sync(groups, dry_run=True) == ()
    (changed,) = accounts.sync([groups[0], Group(name="cs1", max_devices=2)], dry_run=False)
    assert "parent=carrel" in changed
    assert "GrpTRES=gres/gpu=2" in changed
    (left,) = accounts.sync(groups[:1], dry_run=True)
    assert left == "# carrel_cs1 has no group any more, and is left as it is"
    # Slurm itself keeps a group within its max quota.
    slurm.submit("--account=carrel_faculty", "--gres=gpu:sim:2", script="sleep 60")
