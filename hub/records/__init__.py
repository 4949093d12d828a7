"""Frozen values that the store keeps and the services pass on."""
