"""The tree of groups: quotas, members, terms and reservations."""
