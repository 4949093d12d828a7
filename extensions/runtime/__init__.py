"""What a job calls from inside: progress, checkpoint, receipt."""
