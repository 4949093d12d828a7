"""How values look in a page: filters, addresses, plots, sandboxed content."""
