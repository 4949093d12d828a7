"""Receipts of jobs: signed documents that can be checked without the service."""
