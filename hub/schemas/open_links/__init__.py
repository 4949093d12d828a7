"""Bodies of calls for links that open material."""
