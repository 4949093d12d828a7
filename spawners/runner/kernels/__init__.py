"""How kernels start (forked and resumed ones to come)."""
