"""Cores and memory that the session or job may use."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from carrel.extensions.spark import lease_limits

GIB = 1 << 30
PRESENT = len(os.sched_getaffinity(0))


@pytest.mark.parametrize(
    ("files", "cores"),
    [
        ({}, PRESENT),
        ({"cpu.max": "max 100000"}, PRESENT),
        ({"cpu.max": "100000 100000"}, 1),
        ({"cpu.max": "50000 100000"}, 1),
        ({"cpu.max": f"{PRESENT * 100_000 + 1} 100000"}, PRESENT),
        ({"cpu.cfs_quota_us": "-1", "cpu.cfs_period_us": "100000"}, PRESENT),
        ({"cpu.cfs_quota_us": "100000", "cpu.cfs_period_us": "100000"}, 1),
        ({"cpu.max": "not a number"}, PRESENT),
    ],
)
def test_a_quota_of_a_control_group_limits_the_cores(
    files: dict[str, str], cores: int, tmp_path: Path
) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert lease_limits.cores({}, groups=tmp_path) == cores


@pytest.mark.parametrize(
    ("given", "cores"), [("1", 1), ("", PRESENT), ("0", PRESENT), ("x", PRESENT)]
)
def test_the_number_of_a_cluster_limits_the_cores(given: str, cores: int, tmp_path: Path) -> None:
    assert lease_limits.cores({"SLURM_CPUS_PER_TASK": given}, groups=tmp_path) == cores


def test_the_memory_limit_of_the_job_counts_where_it_is_the_smallest() -> None:
    present = lease_limits.memory_bytes({})
    assert present > 1 << 20
    assert lease_limits.memory_bytes({"CARREL_MEMORY_BYTES": str(1 << 20)}) == 1 << 20
    assert lease_limits.memory_bytes({"CARREL_MEMORY_BYTES": str(1 << 60)}) < 1 << 60


@pytest.mark.parametrize(
    ("limit", "heap", "cores"),
    [
        (0, GIB, 16),
        (64 * GIB, 16 * GIB, 16),
        (8 * GIB, 3 * GIB, 11),
        (4 * GIB, 3 * GIB // 2, 5),
        (2 * GIB, GIB // 2, 2),
        (3 * GIB // 2, GIB // 2, 1),
        (GIB, GIB, 1),
    ],
)
def test_a_core_without_memory_for_a_python_process_is_not_used(
    limit: int, heap: int, cores: int
) -> None:
    assert lease_limits.cores_within_memory(16, limit, heap) == cores
