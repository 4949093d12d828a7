"""Comparisons of two runs: their files are read here and compared in a process with limits."""
