"""What other devices or quotas would have changed: the ledger of the site, replayed."""
