"""A learned order in shadow: record what it would have decided on live load."""
