"""One module a step, named after its number; each knows the one before it."""
