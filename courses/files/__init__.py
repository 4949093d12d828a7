"""File bundles, the blob store for their contents, and nbgrader's course folder."""
