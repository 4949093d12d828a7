"""One attempt: monitor, memory, working folder, reports to the service, outcome."""
