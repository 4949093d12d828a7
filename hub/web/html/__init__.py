"""Template filters, URLs, plots and sandboxed notebook content."""
