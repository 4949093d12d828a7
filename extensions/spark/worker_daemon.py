"""Start Spark's Python processes with the folders of modules that the notebook has.

Spark runs this module instead of ``pyspark.daemon``. The folders come last, so that a file such as
``random.py`` beside a notebook hides no module of the standard library.
"""

from __future__ import annotations

import os
import runpy
import sys
from typing import Final

FOLDERS_VARIABLE: Final = "CARREL_SPARK_FOLDERS"


def add_folders() -> None:
    """Append the folders in the environment to those from which modules are imported."""
    for folder in os.environ.get(FOLDERS_VARIABLE, "").split(os.pathsep):
        if folder and folder not in sys.path:
            sys.path.append(folder)


if __name__ == "__main__":
    add_folders()
    runpy.run_module("pyspark.daemon", run_name="__main__", alter_sys=True)
