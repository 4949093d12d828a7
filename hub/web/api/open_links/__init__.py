"""REST routes for links that open material."""
