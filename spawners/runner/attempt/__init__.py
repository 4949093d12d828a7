"""The execution of an attempt: monitor, memory, working folder, reports, outcome."""
