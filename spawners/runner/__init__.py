"""The runner: execute a notebook or a command, and report on it.

An engine starts ``python -m carrel.spawners.runner FOLDER`` for a job, and nothing else. The
attempt's folder contains all inputs and results:

    order.json     the job, and the attempt's token (0600, written by the backend)
    claim          created by the runner of this attempt; a second runner exits at once
    log.txt        the job's output, up to a limit
    events.jsonl   the journal: one event per line, written before it is sent
    output.ipynb   the executed notebook, saved between cells, always complete
    files/         the files that the job keeps: $CARREL_OUTPUT_DIR
    work/          the uploaded folder, if there is one; then it is the working folder
    progress.json  the job's own progress: $CARREL_PROGRESS
    reports.jsonl  the values that it reports: $CARREL_REPORTS
    compiled/      the compiler's folder, if the job uses a compile cache; deleted at its end
    notice.json    the preemption notice, if there is one: $CARREL_NOTICE
    saved          touched by the job when its work is saved: $CARREL_SAVED

With ``--wait`` before the folder, it starts before there is a job (``warm_start``).

It depends on papermill, ipykernel and the standard library, but not on JupyterHub.
"""

from __future__ import annotations
