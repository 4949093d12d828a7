"""List, show, explain, amend and cancel requests; accept the reports of attempts."""
