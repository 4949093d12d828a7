"""The runner: executes one notebook next to its kernel, or one command, and reports on it.

``python -m carrel.spawners.runner FOLDER`` is all that an engine starts for a job. Everything
it needs and leaves lies in the attempt's folder:

    order.json     what to run, and the attempt's token (0600, written by the backend)
    claim          made by the one runner that runs this attempt; a second one exits at once
    log.txt        what the job printed, up to a limit
    events.jsonl   the journal: one event per line, written before it is sent
    output.ipynb   the executed notebook, saved between two cells, always whole
    files/         what the job keeps: $CARREL_OUTPUT_DIR
    work/          the uploaded folder, where there is one; the working folder then
    progress.json  how far the job says it is: $CARREL_PROGRESS
    notice.json  when it will be stopped and why: $CARREL_NOTICE; there only then
    saved        touched by the job when its work is saved: $CARREL_SAVED

``--wait`` before the folder starts it before there is a job (``waiting``).

It depends on papermill, ipykernel and the standard library, and on nothing of JupyterHub.
"""

from __future__ import annotations
