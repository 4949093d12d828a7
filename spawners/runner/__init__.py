"""The runner: executes one notebook next to its kernel and reports what happens.

``python -m carrel.spawners.runner FOLDER`` is all that an engine starts for a job. Everything
it needs and leaves lies in the attempt's folder:

    order.json     what to run, and the attempt's token (0600, written by the backend)
    claim          made by the one runner that runs this attempt; a second one exits at once
    log.txt        what the notebook printed
    events.jsonl   the journal: one event per line, written before it is sent
    output.ipynb   the executed notebook, saved after each cell, always whole

It depends on papermill, ipykernel and the standard library, and on nothing of JupyterHub.
"""

from __future__ import annotations
