"""Spark for the tests of ``carrel.spark``: ``python -m tests.pyspark_packages`` installs it."""

from __future__ import annotations

from carrel.extensions.spark import java
from carrel.hub.errors import Unavailable

from .extra_packages import ROOT, ExtraPackages
from .requirements import need

PACKAGES = ExtraPackages(
    module="pyspark", title="Spark", lock=ROOT / "images" / "spark" / "requirements.txt"
)


def need_spark() -> None:
    """Skip the test where pyspark or Java is missing, or fail where CARREL_REQUIRE names it."""
    PACKAGES.need()
    PACKAGES.available("pyarrow")
    try:
        java.check()
    except Unavailable as error:
        need("java", False, str(error))


if __name__ == "__main__":
    PACKAGES.install()
