"""Homes and outputs on disk, reached without following links."""
