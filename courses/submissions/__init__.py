"""Accept submissions and issue receipts for them."""
