"""Why a request waits, what would help, what a change would mean."""
