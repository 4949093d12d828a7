"""When something is due, for whom, and what lateness costs."""
