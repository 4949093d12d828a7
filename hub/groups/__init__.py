"""The tree of groups: quotas, members and teachers, terms and reservations."""
