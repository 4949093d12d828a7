"""Papermill's engine ``carrel`` and the addresses ``carrel://JOB/…``, for the stock papermill."""
