"""What a job calls while it runs: progress, checkpoint, receipt."""
