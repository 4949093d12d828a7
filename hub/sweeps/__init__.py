"""Sweeps: spaces of parameters, and the stages that trials of one notebook have in common."""
