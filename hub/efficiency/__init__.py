"""Signs that something is wrong with running jobs, and what was held and not used."""
