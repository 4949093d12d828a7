"""The receipt of a notebook: in a session, in a job without credentials, and outside Carrel."""

from __future__ import annotations

import platform
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import carrel

from ...fake_service import FakeService


@pytest.fixture
def outside(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    for name in ("REQUEST", "DEVICES", "URL", "TOKEN"):
        monkeypatch.delenv(f"CARREL_{name}", raising=False)
    monkeypatch.delenv("JUPYTERHUB_API_TOKEN", raising=False)
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return monkeypatch


@pytest.fixture
def service(outside: pytest.MonkeyPatch) -> Iterator[FakeService]:
    with FakeService() as fake:
        outside.setenv("CARREL_URL", fake.url)
        outside.setenv("JUPYTERHUB_API_TOKEN", "of-the-session")
        outside.setenv("CARREL_REQUEST", "s-1")
        outside.setenv("CARREL_DEVICES", "Simulated GPU 0 (simulated)")
        yield fake


def test_in_a_session_it_shows_leased_devices_and_charge(service: FakeService) -> None:
    image = "datascience@sha256:" + "ab" * 32
    service.add(
        "s-1", kind="session", image=image, started_at=time.time() - 8100, device_seconds=90
    )
    receipt = carrel.receipt(packages=["pytest", "no-such-package"])
    assert receipt.device_seconds == 90
    text = str(receipt)
    for part in (
        "in session s-1 of group cs101",
        f"Python {platform.python_version()}, pytest {pytest.__version__}, no-such-package (not",
        "Simulated GPU 0 (simulated)",
        image,
        "2 h 15 min since the start of the session",
        "0.03 device-hours so far; for the total see carrel show s-1",
    ):
        assert part in text
    assert repr(receipt) == text


def test_it_names_the_jobs_that_gave_values(service: FakeService) -> None:
    origin = {"name": "lr", "job": "j-1", "value": "best.lr", "source": "j-2"}
    service.add("s-1", kind="job", parameters={"lr": 0.5, "n": 1}, results=[origin])
    lines = str(carrel.receipt()).splitlines()
    assert "  input    lr = 0.5, best.lr of job j-2" in lines


def test_without_a_device_nothing_is_charged(
    service: FakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.add("s-1", kind="session", devices=0, device_seconds=0)
    monkeypatch.setenv("CARREL_DEVICES", "")
    text = str(carrel.receipt())
    assert "none: it ran on the CPU" in text
    assert "nothing: only devices are charged" in text


def test_a_job_without_credentials_says_where_to_see_its_charge(
    outside: pytest.MonkeyPatch,
) -> None:
    outside.setenv("CARREL_REQUEST", "j-1")
    outside.setenv("CARREL_DEVICES", "NVIDIA H200 #0")
    receipt = carrel.receipt()
    assert receipt.device_seconds is None
    assert "in j-1" in str(receipt)
    assert "unknown (You are not signed in.) See carrel show j-1." in str(receipt)


@pytest.mark.usefixtures("outside")
def test_outside_carrel_it_says_so() -> None:
    receipt = carrel.receipt()
    assert receipt.device_seconds == 0
    assert "ran      outside Carrel" in str(receipt)
    assert "nothing: it did not run on Carrel" in str(receipt)
