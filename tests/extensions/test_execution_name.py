"""``carrel.execution`` is one module, however a program imports it."""

from __future__ import annotations

import subprocess
import sys

import pytest

CHECK = (
    "import carrel.extensions.execution as same; assert found is same and explain is same.explain"
)


@pytest.mark.parametrize(
    "imports",
    [
        "from carrel.execution import explain; import carrel.execution as found",
        "from carrel import execution as found; from carrel.execution import explain",
        "import carrel; found = carrel.execution; explain = found.explain",
        "import carrel.execution; found = carrel.execution; from carrel.execution import explain",
    ],
)
def test_it_is_imported_under_its_short_name(imports: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", f"{imports}; {CHECK}"], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
