"""REST routes for programs."""
