"""Spark sessions by ``carrel.spark()``: within the lease, on the loopback interface only."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

import carrel
from carrel.extensions.spark import lease_limits
from carrel.hub.errors import Conflict

from ...pyspark_packages import PACKAGES, need_spark

pytestmark = pytest.mark.slow

WORK = """
spark = carrel.spark(**{options!r})

def work(frames):
    for frame in frames:
        yield frame.assign(value={value})

found = spark.range(4).mapInPandas(work, "id long, value string").toPandas()
context = spark.sparkContext
print(json.dumps(dict(
    ids=sorted(map(int, found.id)),
    values=sorted(set(found.value)),
    master=context.master,
    heap=context._jvm.java.lang.Runtime.getRuntime().maxMemory(),
    scratch=context.getConf().get("spark.local.dir"),
    variables=[os.environ.get(name) for name in ("SPARK_LOCAL_IP", "SPARK_LOCAL_DIRS")],
)))
"""


@pytest.fixture(autouse=True)
def _spark() -> None:
    need_spark()


def printed_by(code: str, folder: Path, variables: dict[str, str] | None = None) -> str:
    """Return what a program prints that, like a notebook, imports from its folder first."""
    begin = f"""
import random, socket, sys, tempfile
sys.path.insert(0, "")
sys.path.append({str(PACKAGES.folder)!r})
import carrel, json, os
"""
    done = subprocess.run(
        [sys.executable, "-P", "-c", begin + code],
        cwd=folder,
        env={**os.environ, "TMPDIR": str(folder), **(variables or {})},
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def in_a_process(
    folder: Path,
    *,
    begin: str = "",
    options: dict[str, Any] | None = None,
    value: str = "str(os.getpid())",
    variables: dict[str, str] | None = None,
) -> dict[str, Any]:
    """Return what such a program sees of Spark."""
    code = begin + WORK.format(options=options or {}, value=value)
    found: dict[str, Any] = json.loads(printed_by(code, folder, variables))
    return found


def test_all_its_ports_are_on_the_loopback_interface(session: Any) -> None:
    session.range(100).repartition(2).mapInPandas(lambda frames: frames, "id long").count()
    processes = psutil.Process().children(recursive=True)
    assert any("java" in each.name() for each in processes)
    listening = [
        each.laddr.ip
        for process in processes
        for each in process.net_connections(kind="inet")
        if each.status == psutil.CONN_LISTEN
    ]
    assert listening
    addresses = {ip.removeprefix("::ffff:") for ip in listening}
    assert addresses <= {"127.0.0.1", "::1"}


def test_it_has_the_cores_of_the_lease_and_a_secret_but_no_page(session: Any) -> None:
    context = session.sparkContext
    assert context.defaultParallelism == min(2, lease_limits.cores())
    assert context.uiWebUrl is None
    configuration = dict(context.getConf().getAll())
    assert configuration["spark.authenticate"] == "true"
    assert configuration["spark.sql.execution.arrow.pyspark.enabled"] == "true"
    assert not [name for name in configuration if name.startswith("spark.jars")]


def test_the_same_call_returns_the_running_session_and_another_is_refused(session: Any) -> None:
    cores = min(2, lease_limits.cores())
    assert carrel.spark(cores=cores) is session
    with pytest.raises(Conflict) as refused:
        carrel.spark("another", cores=cores)
    assert str(refused.value) == (
        "A Spark session with other options runs in this process. Call its stop() first."
    )
    with pytest.raises(Conflict, match="which cannot change"):
        carrel.spark(cores=cores, memory="513MiB")


def test_a_stopped_session_is_followed_by_another(tmp_path: Path) -> None:
    found = in_a_process(tmp_path, begin="carrel.spark(cores=1).stop()\n", options={"cores": 1})
    assert found["ids"] == [0, 1, 2, 3]


def test_a_session_that_carrel_did_not_start_is_refused(tmp_path: Path) -> None:
    code = """
from pyspark.sql import SparkSession
other = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
for _ in range(2):
    try:
        carrel.spark()
    except Exception as error:
        print(type(error).__name__, error)
    other.stop()
"""
    assert printed_by(code, tmp_path).split("\n") == [
        "Conflict A Spark session with other options runs in this process. Call its stop() first.",
        "Conflict The Java process of another Spark session runs in this process. Restart the "
        "kernel, and call carrel.spark() first.",
        "",
    ]


def test_memory_and_cores_follow_the_limits_of_the_job(tmp_path: Path) -> None:
    found = in_a_process(
        tmp_path, variables={"CARREL_MEMORY_BYTES": str(2 << 30), "SLURM_CPUS_PER_TASK": "1"}
    )
    assert found["master"] == "local[1]"
    assert found["heap"] < 0.41 * (2 << 30)
    assert found["ids"] == [0, 1, 2, 3]


def test_fewer_cores_are_used_where_the_memory_has_no_room_for_more(tmp_path: Path) -> None:
    code = """
import warnings
from carrel.extensions.spark import lease_limits
lease_limits.cores = lambda: 8
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    spark = carrel.spark()
    lease_limits.memory_bytes = lambda: 1 << 30
    assert carrel.spark() is spark, "the memory that Spark itself uses does not count"
print(spark.sparkContext.master)
print(*(each.message for each in caught if "cores" in str(each.message)))
spark.stop()
print(carrel.spark(cores=3).sparkContext.master)
"""
    variables = {"CARREL_MEMORY_BYTES": str(3 << 30)}
    assert printed_by(code, tmp_path, variables).split("\n") == [
        "local[3]",
        "Spark uses 3 of 8 cores: 3.0 GiB of memory have no room for a Python process on each. "
        "Submit the job with more, such as --memory 7GiB, or name the cores: "
        "carrel.spark(cores=3).",
        "local[3]",
        "",
    ]


def test_temporary_files_are_in_a_folder_that_ends_with_the_process(tmp_path: Path) -> None:
    found = in_a_process(tmp_path)
    assert Path(found["scratch"]).parent == tmp_path
    assert not list(tmp_path.glob("carrel-spark-*"))
    assert found["variables"] == [None, None]


def test_modules_beside_the_notebook_are_found_and_hide_no_others(tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text("WORD = 'from the helper'\n")
    for name in ("random", "tempfile", "socket"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('the wrong module')\n")
    found = in_a_process(tmp_path, begin="import helper\n", value="helper.WORD")
    assert found["values"] == ["from the helper"]
