"""Due dates, extensions, outages and late penalties."""
