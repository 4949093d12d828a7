"""JupyterHub spawners that run a session on a lease."""
