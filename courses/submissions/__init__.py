"""What students hand in, and the receipts for it."""
