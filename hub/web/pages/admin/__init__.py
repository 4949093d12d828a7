"""Quotas, people, pool, calendar, images, audit."""
