"""Schedules: submit stored jobs at the times of a cron expression."""
