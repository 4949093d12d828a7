"""Input of a replay: jobs of a trace, nodes, quotas, calendar, and usage while it runs."""
