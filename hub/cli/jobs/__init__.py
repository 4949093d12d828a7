"""Commands for jobs: submit, run, wait, ps, show, logs, output, why, change, cancel."""
