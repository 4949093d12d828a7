"""Preemption: select victims so that guaranteed quota is reclaimed and urgent requests start."""
