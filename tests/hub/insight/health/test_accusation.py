"""Failed attempts accuse a device, or the code of their owner."""

from __future__ import annotations

import pytest

from carrel.hub.insight.health.accusation import (
    NODE_SECONDS,
    WINDOW_SECONDS,
    AttemptEnd,
    accused_code,
    accused_devices,
    names_device,
)

NOW = 1_000_000.0


def ends(*written: str) -> list[AttemptEnd]:
    """Attempts in order, as ``OWNER PROGRAM DEVICES OUTCOME``; + is a success, x a failure."""
    found = []
    for number, line in enumerate(written):
        owner, program, devices, outcome = line.split()
        found.append(
            AttemptEnd(
                at=NOW - 1000 + number,
                owner=owner,
                request=f"j-{number}",
                program=program,
                devices=tuple(devices.split(",")),
                suspicious=outcome == "x",
                succeeded=outcome == "+",
            )
        )
    return found


def test_two_users_that_fail_on_one_device_accuse_the_device() -> None:
    (found,) = accused_devices(ends("ann p A x", "bob q A x", "ann p B +"), NOW)
    assert (found.target, found.evidence) == (
        "A",
        "The last 2 attempts on it, of 2 users, failed as a broken device makes them fail.",
    )


@pytest.mark.parametrize(
    "written",
    [
        ["ann p A x", "ann q A x"],
        ["ann p A x", "eve r A +", "bob q A x"],
        ["ann p A x", "bob p A x", "cyd p B x"],
        ["ann p A x", "ann r B x", "ann s C x", "bob q A x"],
        ["ann p A,B x", "bob q A,B x"],
        ["ann p A -", "bob q A -"],
        [],
    ],
    ids=[
        "one user",
        "a success between them",
        "one program that fails elsewhere too",
        "a user that fails everywhere",
        "only ever together with another device",
        "errors of the program",
        "no attempts",
    ],
)
def test_a_device_is_not_accused_by_less(written: list[str]) -> None:
    assert accused_devices(ends(*written), NOW) == ()


def test_one_user_that_fails_on_three_good_devices_is_told_that_it_is_the_code() -> None:
    attempts = ends("bob q A +", "ann p A x", "ann p B x", "ann p C x")
    (found,) = accused_code(attempts, NOW)
    assert (found.owner, found.request) == ("ann", "j-3")
    assert "failed in this way on 3 devices, and other users' work succeeds on 1" in found.sentence
    assert accused_devices(attempts, NOW) == ()


@pytest.mark.parametrize(
    "written",
    [
        ["bob q A +", "ann p A x", "ann p B x"],
        ["ann p A x", "ann p B x", "ann p C x"],
        ["bob q A +", "ann p A x", "ann p B x", "ann p B +", "ann p C x"],
    ],
    ids=["two devices", "nothing succeeds on them", "a success between"],
)
def test_code_is_not_accused_by_less(written: list[str]) -> None:
    assert accused_code(ends(*written), NOW) == ()


def test_attempts_of_another_day_and_of_the_future_do_not_count() -> None:
    attempts = ends("ann p A x", "bob q A x")
    assert accused_devices(attempts, NOW + WINDOW_SECONDS) == ()
    assert accused_devices(attempts, NOW - 2000) == ()


ADVICE = """
CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace \
below might be incorrect.
For debugging consider passing CUDA_LAUNCH_BLOCKING=1
Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.
"""
"""What PyTorch appends to each error of CUDA."""


@pytest.mark.parametrize(
    ("text", "device"),
    [
        ("RuntimeError: CUDA error: unspecified launch failure" + ADVICE, True),
        ("RuntimeError: CUDA error: uncorrectable ECC error encountered" + ADVICE, True),
        (
            "torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/"
            "ProcessGroupNCCL.cpp:1970, unhandled system error (run with NCCL_DEBUG=INFO for "
            "details), NCCL version 2.21.5",
            True,
        ),
        ("RuntimeError: Distributed package doesn't have NCCL built in", False),
        ("torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", False),
        ("RuntimeError: CUDA error: device-side assert triggered" + ADVICE, False),
        ("RuntimeError: CUDA error: an illegal memory access was encountered" + ADVICE, False),
        ("RuntimeError: CUDA error: invalid device ordinal" + ADVICE, False),
        ("RuntimeError: CUDA error: invalid configuration argument" + ADVICE, False),
        (
            "RuntimeError: CUDA error: no kernel image is available for execution on the device"
            + ADVICE,
            False,
        ),
        ("RuntimeError: No CUDA GPUs are available", False),
        ("RuntimeError: CUDA error: no CUDA-capable device is detected" + ADVICE, False),
        (
            "RuntimeError: CUDA error: CUBLAS_STATUS_INVALID_VALUE when calling `cublasSgemm( "
            "handle, opa, opb, m, n, k, &alpha, a, lda, b, ldb, &beta, c, ldc)`",
            False,
        ),
        ("RuntimeError: cuDNN error: CUDNN_STATUS_NOT_SUPPORTED.", False),
        ("NameError: name 'x' is not defined", False),
    ],
)
def test_errors_that_name_the_device_are_told_from_those_of_programs(
    text: str, device: bool
) -> None:
    assert names_device(text) is device


def died(device: str, owner: str, at: float, node: str = "n1") -> AttemptEnd:
    return AttemptEnd(
        at=at, owner=owner, request=owner, devices=(device,), suspicious=True, died=True, node=node
    )


def test_programs_that_die_on_several_devices_at_one_time_accuse_their_node() -> None:
    first, second = NOW - 2 * NODE_SECONDS, NOW - 1
    alone = [died("A", "ann", first), died("A", "bob", second)]
    assert [found.target for found in accused_devices(alone, NOW)] == ["A"]
    elsewhere = died("B", "cyd", second, node="n2")
    assert accused_devices([*alone, elsewhere], NOW)
    assert not accused_devices([*alone, died("B", "cyd", second - NODE_SECONDS)], NOW)


def test_a_user_whose_jobs_died_of_their_node_is_not_told_that_the_code_is_the_cause() -> None:
    others = [
        AttemptEnd(at=NOW - 9, owner="bob", request="j", devices=(name,), succeeded=True)
        for name in "ABC"
    ]
    apart = [died(name, "ann", NOW - 100 * n) for n, name in enumerate("ABC")]
    assert accused_code([*others, *apart], NOW)
    assert not accused_code([*others, *(died(name, "ann", NOW - 5) for name in "ABC")], NOW)
