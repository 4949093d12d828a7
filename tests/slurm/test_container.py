"""Jobs in a container, with a program that stands in for ``apptainer``."""

from __future__ import annotations

from pathlib import Path

import pytest

from carrel.hub.errors import BackendFailed, Unavailable
from carrel.hub.interfaces.backend_settings import BackendSettings, SlurmImage
from carrel.hub.records.diagnostics import Severity
from carrel.spawners.slurm.backend import SlurmBackend
from carrel.spawners.slurm.batch_script import batch_script
from carrel.spawners.slurm.client import SlurmClient
from carrel.spawners.slurm.container_images import PLACE, with_image
from carrel.spawners.slurm.host import SlurmHostSetup

from ..fake_service import eventually
from .cluster import NODES, SlurmCluster

pytestmark = pytest.mark.slurm
STAND_IN = """#!/bin/sh
# apptainer exec --nv IMAGE COMMAND …
test "$1 $2" = "exec --nv" || exit 255
export INSIDE="$3"
shift 3
exec "$@"
"""


@pytest.fixture
def container(tmp_path: Path) -> tuple[str, ...]:
    program = tmp_path / "apptainer"
    program.write_text(STAND_IN)
    program.chmod(0o755)
    return (str(program), "exec", "--nv", "/images/a course.sif")


def test_the_container_gets_the_command_and_its_variables(
    slurm: SlurmCluster, tmp_path: Path, container: tuple[str, ...]
) -> None:
    seen = tmp_path / "seen"
    command = ("/bin/sh", "-c", f'echo "$INSIDE $GIVEN" >{seen}.new; mv {seen}.new {seen}')
    options = slurm.options(container=container, prologue="GIVEN=later")
    SlurmClient(str(slurm.conf)).submit(
        ["--output=/dev/null", "--chdir=/"], batch_script(command, {"GIVEN": "first"}, options)
    )
    eventually(seen.exists)
    assert seen.read_text() == "/images/a course.sif later\n"


def test_a_job_runs_in_the_build_of_its_lease(
    slurm: SlurmCluster, tmp_path: Path, container: tuple[str, ...]
) -> None:
    seen = tmp_path / "seen"
    command = ("/bin/sh", "-c", f'echo "$INSIDE" >{seen}.new; mv {seen}.new {seen}')
    builds = tuple(
        SlurmImage(name="base", source=f"docker://base@{digest}", digest=digest, built_at=at)
        for at, digest in ((1.0, f"sha256:{'1' * 64}"), (2.0, f"sha256:{'2' * 64}"))
    )
    options = slurm.options(container=(*container[:-1], PLACE), images=builds)
    SlurmClient(str(slurm.conf)).submit(
        ["--output=/dev/null", "--chdir=/"],
        batch_script(command, {}, with_image(options, builds[0].reference)),
    )
    eventually(seen.exists)
    assert seen.read_text() == f"{builds[0].source}\n"


def test_all_nodes_have_the_images_while_the_controller_is_silent(
    slurm: SlurmCluster, tmp_path: Path, container: tuple[str, ...]
) -> None:
    digest = f"sha256:{'1' * 64}"
    build = SlurmImage(name="base", source=f"docker://base@{digest}", digest=digest, built_at=1.0)
    options = slurm.options(container=(*container[:-1], PLACE), images=(build,))
    backend = SlurmBackend(
        BackendSettings(state=tmp_path, service_url="", slurm=options), fresh_seconds=0.0
    )
    with pytest.raises(Unavailable, match="not listed its nodes"):
        backend.images()
    backend.inventory()
    slurm.kill("slurmctld")
    try:
        assert backend.nodes() == ()
        assert [image.nodes for image in backend.images() or ()] == [NODES]
    finally:
        slurm.start_daemon("slurmctld")
        slurm.wait_for_nodes()


def test_a_container_that_does_not_run_on_a_node_is_told(
    slurm: SlurmCluster, tmp_path: Path, container: tuple[str, ...]
) -> None:
    def found(*command: str) -> dict[str, Severity]:
        settings = BackendSettings(
            state=tmp_path,
            service_url="http://127.0.0.1:9/carrel",
            slurm=slurm.options(container=command),
        )
        return {each.subject: each.verdict for each in SlurmHostSetup(settings).findings()}

    fine, missing = found(*container), found("/no/apptainer", *container[1:])
    assert {fine[node] for node in NODES} == {Severity.FINE}
    assert {missing[node] for node in NODES} == {Severity.MISSING}


def test_a_site_on_a_partition_that_does_not_exist_does_not_start(
    slurm: SlurmCluster, tmp_path: Path
) -> None:
    settings = BackendSettings(
        state=tmp_path, service_url="", slurm=slurm.options(partition="gpus")
    )
    with pytest.raises(BackendFailed, match="no node in a partition 'gpus'") as refused:
        SlurmHostSetup(settings).prepare("")
    assert refused.value.accepted.endswith("to one of: main.")
