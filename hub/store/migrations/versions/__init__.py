"""The revisions, one module each, named by their number."""
