"""Carrel course."""
