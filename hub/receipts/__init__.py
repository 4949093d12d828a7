"""Receipts of this site's jobs: write and sign them, and run a job again from one."""
