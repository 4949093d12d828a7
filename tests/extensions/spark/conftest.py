"""One Spark session for the tests of this folder: a process has one Java process at most."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import carrel
from carrel.extensions.spark import lease_limits

from ...pyspark_packages import need_spark
from ...torch_packages import available


@pytest.fixture(scope="session")
def session() -> Iterator[Any]:
    need_spark()
    available("torch")  # Spark's processes import from the folders that are known at its start
    made = carrel.spark(cores=min(2, lease_limits.cores()))
    yield made
    made.stop()
