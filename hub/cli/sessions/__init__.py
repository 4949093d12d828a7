"""Carrel session, carrel quote."""
