"""Submit, run, wait, list, show, output, why, change, cancel."""
