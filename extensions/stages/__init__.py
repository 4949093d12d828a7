"""Training steps that several hyper-parameter schedules share run once: ``carrel.stages``."""
