"""What was sent becomes a request that may be stored, or is refused with advice."""
