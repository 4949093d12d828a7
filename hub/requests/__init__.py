"""List, show, explain, amend, cancel requests; reports of attempts."""
