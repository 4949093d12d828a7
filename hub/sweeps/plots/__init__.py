"""Plots of the trials of a sweep, which pages and widgets draw."""
