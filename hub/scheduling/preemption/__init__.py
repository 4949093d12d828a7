"""Who is asked to give devices back, at what cost."""
