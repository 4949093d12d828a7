"""Machines of the pool: devices, running containers, warm pool, clean-up."""
