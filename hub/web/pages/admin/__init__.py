"""Pages of administrators: quotas, people, pool, calendar, images and audit log."""
