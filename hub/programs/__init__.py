"""Programs as tenants: tokens with a budget of their own, approval by the owner, and limits."""
