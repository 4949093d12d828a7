"""Benchmarks of detection: what is found of injected faults, and what is found without one."""
