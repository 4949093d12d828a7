"""Start the meter that the engine of a job names: it measures the job's devices from inside."""

from __future__ import annotations

import os
from importlib.metadata import entry_points
from pathlib import Path

from ....hub.attempts.journal import log_line
from ....hub.interfaces.session_meter import JOB_GROUP, JOB_VARIABLE


def start_job_meter(folder: Path) -> None:
    """Load the meter and start it in the folder of the attempt; without one, do nothing."""
    name = os.environ.get(JOB_VARIABLE, "")
    for entry in entry_points(group=JOB_GROUP, name=name) if name else ():
        try:
            entry.load()(folder)
        except Exception as error:  # the job is worth more than its measurement
            log_line(f"this job does not measure its devices: {error}")
