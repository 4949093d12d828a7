"""JupyterHub spawners on a lease."""
