"""What is refused before Java starts."""

from __future__ import annotations

import importlib.util
from importlib.machinery import ModuleSpec
from typing import Any

import pytest

import carrel
from carrel.extensions.spark import lease_limits
from carrel.hub.errors import InvalidInput

GIB = 1 << 30
MODULES = (
    "carrel.extensions.spark.session",
    "carrel.extensions.spark.sklearn_stages",
    "carrel.extensions.spark.torch_scores",
)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Two cores, 8 GiB and all packages; no Java."""
    has(monkeypatch)
    monkeypatch.setattr(lease_limits, "cores", lambda: 2)
    monkeypatch.setattr(lease_limits, "memory_bytes", lambda: 8 * GIB)
    return monkeypatch


def has(monkeypatch: pytest.MonkeyPatch, *missing: str) -> None:
    def find(name: str) -> ModuleSpec | None:
        return None if name in missing else importlib.util.find_spec("json")

    for module in MODULES:
        monkeypatch.setattr(f"{module}.find_spec", find)


@pytest.mark.parametrize(
    ("missing", "words"),
    [
        (("pyspark",), "needs pyspark. Install with: pip install 'carrel[spark]'"),
        (("pyspark", "pyarrow"), "needs pyspark and pyarrow. Install with"),
    ],
)
def test_missing_packages_are_named(
    machine: pytest.MonkeyPatch, missing: tuple[str, ...], words: str
) -> None:
    has(machine, *missing)
    with pytest.raises(ModuleNotFoundError) as refused:
        carrel.spark()
    assert words in str(refused.value)
    assert "or use the image spark" in str(refused.value)
    with pytest.raises(ModuleNotFoundError, match="A stage of SparkML needs pyspark"):
        carrel.spark_estimator(object(), features="a")
    with pytest.raises(ModuleNotFoundError, match="A stage of SparkML needs pyspark"):
        carrel.spark_model(object(), features="a")


def test_missing_pytorch_is_named(machine: pytest.MonkeyPatch) -> None:
    has(machine, "torch")
    with pytest.raises(ModuleNotFoundError, match="spark_scores needs PyTorch"):
        carrel.spark_scores(object(), object(), "a")


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (
            {"cores": 3},
            "Spark cannot use 3 cores. A whole number from 1 to 2, the cores of this session or "
            "job.",
        ),
        (
            {"cores": 0},
            "Spark cannot use 0 cores. A whole number from 1 to 2, the cores of this session or "
            "job.",
        ),
        (
            {"memory": "9GiB"},
            "The Java process of Spark cannot have 9.0 GiB. From 512 MiB to 8.0 GiB, the memory of "
            "this session or job.",
        ),
        (
            {"memory": "1MiB"},
            "The Java process of Spark cannot have 1.0 MiB. From 512 MiB to 8.0 GiB, the memory of "
            "this session or job.",
        ),
        (
            {"options": {"spark.ui.enabled": "true", "spark.master": "local[9]"}},
            "carrel.spark() sets spark.master, spark.ui.enabled itself. Use its arguments cores "
            "and memory, and other options of Spark.",
        ),
    ],
)
def test_more_than_the_lease_has_is_refused(
    machine: pytest.MonkeyPatch, given: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        carrel.spark(**given)
    assert str(refused.value) == sentence


def test_a_job_with_too_little_memory_is_told_so(machine: pytest.MonkeyPatch) -> None:
    machine.setattr(lease_limits, "memory_bytes", lambda: GIB)
    with pytest.raises(InvalidInput) as refused:
        carrel.spark()
    assert str(refused.value) == (
        "Spark needs at least 1.5 GiB of memory; there are 1.0 GiB. Submit the job with more, such "
        "as --memory 4GiB."
    )
